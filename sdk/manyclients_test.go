package sdk_test

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// world is 20 nodes and 100 clients of them: Poisson arrivals, 1000 in a mean
// service time; exponential service without queueing; 1000 keys by Zipf's law
// with exponent 1; each request at a client drawn uniformly.
type world struct {
	clients []*sdk.Client
	keys    []string
	sums    []float64 // of the keys' frequencies
	rng     *rand.Rand
	load    map[string]int64
	total   int64
	open    requests
	start   time.Time
	// loop, if it is there, is called every tenth of a unit of time.
	loop func(w *world)

	home, seen  int
	peaks, last float64
}

type request struct {
	ends   float64
	ticket *sdk.Ticket
}

type requests []request

func (h requests) Len() int           { return len(h) }
func (h requests) Less(i, j int) bool { return h[i].ends < h[j].ends }
func (h requests) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *requests) Push(x any)        { *h = append(*h, x.(request)) }
func (h *requests) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

const (
	unit             = 100 * time.Millisecond // the mean service time
	warmUp, runs     = 20.0, 60.0             // units
	arrivals         = 1000.0                 // a unit
	hosts, observers = 20, 100
)

func newWorld(t *testing.T, seed uint64, b sdk.BoundedLoad) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), load: map[string]int64{}, start: time.Now()}
	sum := 0.0
	for k := range 1000 {
		sum += 1 / float64(k+1)
		w.sums = append(w.sums, sum)
		w.keys = append(w.keys, fmt.Sprintf("key-%d-%d", seed, k))
	}
	topo := newLine(t).publish(topology.Spec{Algorithm: topology.Rendezvous}, nodes(hosts)...)
	for range observers {
		c, f := start(t, sdk.WithBoundedLoad(b))
		mustGive(t, f, topo)
		w.clients = append(w.clients, c)
	}
	return w
}

// account adds up the largest load over the mean until now.
func (w *world) account(now float64) {
	from, to := max(w.last, warmUp), min(now, runs)
	if from < to && w.total > 0 {
		most := int64(0)
		for _, l := range w.load {
			most = max(most, l)
		}
		w.peaks += (to - from) * float64(most) * hosts / float64(w.total)
	}
	w.last = now
}

// run returns the mean over time of largest load over mean load, and the share
// of requests that went home.
func (w *world) run(t *testing.T) (peak, home float64) {
	next, tick := w.rng.ExpFloat64()/arrivals, 0.1
	for {
		now := next
		if len(w.open) > 0 {
			now = min(now, w.open[0].ends)
		}
		now = min(now, tick)
		if now >= runs {
			break
		}
		time.Sleep(time.Until(w.start.Add(time.Duration(now * float64(unit)))))
		w.account(now)
		switch now {
		case tick:
			tick += 0.1
			if w.loop != nil {
				w.loop(w)
			}
		case next:
			w.arrive(t, now)
			next += w.rng.ExpFloat64() / arrivals
		default:
			w.finish()
		}
	}
	w.account(runs)
	for len(w.open) > 0 {
		w.finish()
	}
	return w.peaks / (runs - warmUp), float64(w.home) / float64(w.seen)
}

func (w *world) arrive(t *testing.T, now float64) {
	k, _ := slices.BinarySearch(w.sums, w.rng.Float64()*w.sums[len(w.sums)-1])
	c := w.clients[w.rng.IntN(len(w.clients))]
	ticket := new(sdk.Ticket)
	var err error
	if *ticket, err = c.Acquire(t.Context(), w.keys[k], 1); err != nil {
		t.Fatal(err)
	}
	w.load[ticket.ID()]++
	w.total++
	if now >= warmUp {
		w.seen++
		if ticket.ID() == ticket.Route().Owner().ID {
			w.home++
		}
	}
	heap.Push(&w.open, request{now + w.rng.ExpFloat64(), ticket})
}

func (w *world) finish() {
	r := heap.Pop(&w.open).(request)
	w.load[r.ticket.ID()]--
	w.total--
	r.ticket.Report(w.load[r.ticket.ID()])
	r.ticket.Done(sdk.Success)
}

var allPlacements = flag.Bool("all-placements", false, "TestManyClients: medians of five placements for all views")

// With load in the replies 100 clients keep the fullest node within 1.40 of the
// mean and 58 % of the requests at home (the median of 5 placements, in virtual
// time); with own counts alone they send half of them away and bound less; without
// a bound the fullest has three times the mean.
func TestManyClients(t *testing.T) {
	placements := uint64(5)
	if raceEnabled {
		placements = 1
	}
	measure := func(b sdk.BoundedLoad, loop func(*world)) (peak, home float64) {
		var peaks, homes []float64
		for seed := range placements {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed+1, b)
				w.loop = loop
				p, h := w.run(t)
				peaks, homes = append(peaks, p), append(homes, h)
			})
		}
		slices.Sort(peaks)
		slices.Sort(homes)
		return peaks[len(peaks)/2], homes[len(homes)/2]
	}
	f := func(name string, b sdk.BoundedLoad, loop func(*world), low, high, homeLow, homeHigh float64) {
		t.Helper()
		peak, home := measure(b, loop)
		t.Logf("%-14s largest/mean %.3f, at home %.1f %%", name, peak, 100*home)
		if peak < low || peak > high || home < homeLow || home > homeHigh {
			t.Errorf("%s: largest/mean %.3f, at home %.3f; want %v..%v and %v..%v", name, peak, home, low, high, homeLow, homeHigh)
		}
	}
	if raceEnabled { // once through, slowly
		f("reported", sdk.BoundedLoad{Factor: 1.25, View: sdk.ReportedLoad}, nil, 1, 2, 0.5, 0.9)
		return
	}
	f("reported", sdk.BoundedLoad{Factor: 1.25, View: sdk.ReportedLoad}, nil, 1.25, 1.40, 0.58, 0.80)
	if testing.Short() {
		return
	}
	if !*allPlacements { // for comparison one is enough
		placements = 1
	}
	f("own", sdk.BoundedLoad{Factor: 1.25}, nil, 1.38, 1.52, 0.46, 0.53)
	f("none", sdk.BoundedLoad{Factor: -1}, nil, 2.9, 3.7, 1, 1)
	f("spill", sdk.BoundedLoad{Factor: 1.25, View: sdk.SpillLoad}, spillLoop(), 1.25, 1.60, 0.55, 0.85)
}

// spillLoop is a control loop that sees the load of all every tenth of a unit.
func spillLoop() func(*world) {
	shares := make([]float64, hosts)
	weights := make([]float64, hosts)
	for i := range weights {
		weights[i] = 1
	}
	spill := bounded.Spill{Factor: 1.25}
	var of *world
	return func(w *world) {
		if of != w {
			of = w
			clear(shares)
		}
		own, all := make([]float64, hosts), make([]float64, hosts)
		ids := map[string]int{}
		for i, n := range w.clients[0].Topology().Nodes() {
			ids[n.ID] = i
			all[i] = float64(w.load[n.ID])
		}
		for _, r := range w.open {
			if r.ticket.ID() == r.ticket.Route().Owner().ID {
				own[ids[r.ticket.ID()]]++
			}
		}
		shares = spill.Next(shares, own, all, weights)
		published := map[string]float64{}
		for id, i := range ids {
			published[id] = shares[i]
		}
		for _, c := range w.clients {
			c.SetSpill(published)
		}
	}
}
