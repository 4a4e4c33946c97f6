package limit_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/limit"
)

// TestRules has each rule of the types, one row each.
func TestRules(t *testing.T) {
	f := func(name string, a limit.Algorithm, from float64, s limit.Sample, want float64) {
		t.Helper()
		if got := a.Update(from, s); got != want {
			t.Errorf("%s: %v -> %v; want %v", name, from, got, want)
		}
	}
	full := func(d time.Duration) limit.Sample { return limit.Sample{Latency: d, Count: 10, InFlight: 100} }
	idle := limit.Sample{Latency: ms, Count: 10, InFlight: 9}
	f("aimd up", &limit.AIMD{}, 20, full(ms), 21)
	f("aimd idle", &limit.AIMD{}, 20, idle, 20)
	f("aimd drop", &limit.AIMD{}, 20, limit.Sample{Dropped: true}, 18)
	f("aimd drop by at least 1", &limit.AIMD{}, 5, limit.Sample{Dropped: true}, 4)
	f("aimd slow", &limit.AIMD{Timeout: ms}, 20, full(2*ms), 18)
	f("aimd backoff", &limit.AIMD{Backoff: .5}, 20, limit.Sample{Dropped: true}, 10)

	vegas := func() limit.Algorithm {
		v := &limit.Vegas{Rand: func() float64 { return .5 }}
		f("vegas first window takes the latency", v, 100, full(10*ms), 100)
		return v
	}
	f("vegas no queue", vegas(), 100, full(10*ms), 112)
	f("vegas queue of 2 = t", vegas(), 100, full(10200*time.Microsecond), 112)
	f("vegas queue of 5 < a", vegas(), 100, full(10500*time.Microsecond), 102)
	f("vegas queue of 10, between", vegas(), 100, full(11*ms), 100)
	f("vegas queue of 17 > b", vegas(), 100, full(12*ms), 98)
	f("vegas drop", vegas(), 100, limit.Sample{Dropped: true}, 98)
	f("vegas idle", vegas(), 100, idle, 100)
	f("vegas nothing seen", vegas(), 100, limit.Sample{InFlight: 100}, 100)
	f("vegas better latency", vegas(), 100, full(5*ms), 100)

	f("gradient steady", &limit.Gradient{}, 100, full(10*ms), 100.8)
	f("gradient idle", &limit.Gradient{}, 100, idle, 100)
	f("gradient drop", &limit.Gradient{}, 100, limit.Sample{Dropped: true}, 90.8)
	f("gradient nothing seen", &limit.Gradient{}, 100, limit.Sample{InFlight: 100}, 100)
	g := &limit.Gradient{Smoothing: 1, Queue: 1}
	f("gradient first", g, 100, full(10*ms), 101)
	f("gradient within tolerance", g, 100, full(19*ms), 101) // mean 14.5, x 1.5 > 19
	for range 4 {
		g.Update(100, full(10*ms))
	}
	f("gradient at most halved", g, 100, full(time.Hour), 51)

	v := &limit.Vegas{Probe: 1, Rand: func() float64 { return 0 }}
	l := 10.
	for range 4 {
		l = v.Update(l, limit.Sample{Latency: ms, Count: 1})
	}
	f("vegas takes a fresh latency in window 5 of 10/2", v, l, full(50*ms), l)
	f("and has no queue by it", v, l, full(50*ms), l+6)
}

// node is a server of some workers with a queue in virtual time.
type node struct {
	workers []time.Duration // free at
	room    int             // queue places; 0 means any number
	queued  int
}

type ending struct {
	at time.Duration
	t  limit.Ticket
	o  resilience.Outcome
	q  bool // had a place in the node's queue
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func (n *node) serve(now, service time.Duration) (done time.Duration, o resilience.Outcome) {
	if n.room > 0 && n.queued >= n.room {
		return now + ms, resilience.Overload
	}
	first := 0
	for i := range n.workers {
		if n.workers[i] < n.workers[first] {
			first = i
		}
	}
	n.workers[first] = max(now, n.workers[first]) + service
	n.queued++
	return n.workers[first], resilience.Success
}

// overload offers twice what 10 workers of 10 ms can do for a minute and returns
// the mean limit of the second half, and goodput and mean latency there.
func overload(t *testing.T, c limit.Config, room int) (mean, goodput float64, latency time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	l := must(t, c)
	n := &node{workers: make([]time.Duration, 10), room: room}
	var due endings
	good, sum, limits, steps := 0, time.Duration(0), 0, 0
	for now := time.Duration(0); now < 60*sec; now += time.Duration(rng.ExpFloat64() * float64(500*time.Microsecond)) {
		for len(due) > 0 && due[0].at <= now {
			e := heap.Pop(&due).(ending)
			if e.q {
				n.queued--
			}
			e.t.Done(e.at, e.o)
		}
		tk, err := l.Admit(now, 1)
		if err != nil {
			continue
		}
		at, o := n.serve(now, time.Duration((.5+rng.Float64())*10*float64(ms)))
		heap.Push(&due, ending{at, tk, o, o == resilience.Success})
		if now > 30*sec {
			limits, steps = limits+l.Limit(), steps+1
			if o == resilience.Success {
				good, sum = good+1, sum+at-now
			}
		}
	}
	return float64(limits) / float64(steps), float64(good) / 30, sum / time.Duration(good)
}

// TestFindsTheLimit: under twice the load the node can take, each algorithm
// keeps it busy and the queue short. Without a limit the latency would reach 30 s.
func TestFindsTheLimit(t *testing.T) {
	f := func(name string, a limit.Algorithm, room int, low, high float64, slowest time.Duration) {
		t.Helper()
		mean, goodput, latency := overload(t, limit.Config{Algorithm: a, Window: 100 * ms}, room)
		t.Logf("%s: limit %.1f, goodput %.0f of 1000 a second, latency %v", name, mean, goodput, latency)
		if mean < low || mean > high || goodput < 900 || latency > slowest {
			t.Errorf("%s: limit %.1f, want %v to %v; goodput %.0f, want 900; latency %v, want at most %v",
				name, mean, low, high, goodput, latency, slowest)
		}
	}
	f("aimd", &limit.AIMD{}, 20, 10, 30, 25*ms)
	f("vegas", &limit.Vegas{Rand: func() float64 { return .5 }}, 0, 10, 40, 40*ms)
	f("gradient", &limit.Gradient{}, 0, 10, 120, 120*ms)
}
