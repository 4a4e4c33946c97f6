package balancetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
)

// world is what the goroutines of randomSteps share.
type world struct {
	t      *testing.T
	make   Make
	pool   *balance.Pool
	picker atomic.Pointer[balance.Picker]
	clock  atomic.Int64

	mu    sync.Mutex
	ids   map[string]uint64 // present, with their incarnation
	nodes map[*balance.Node]bool
}

// randomSteps: 1,000 steps of add, remove, start, finish, cancel, panic and
// double Done by five goroutines, with a clock that jumps; run it under -race.
// Counts are never negative, add up, and are zero in the end.
func randomSteps(t *testing.T, make Make) {
	w := &world{t: t, make: make, pool: balance.NewPool(), ids: map[string]uint64{}, nodes: map[*balance.Node]bool{}}
	for k := range 4 {
		w.ids[fmt.Sprint("n", k)] = 0
	}
	w.publish()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { w.user(rand.New(rand.NewPCG(uint64(g), 1)), 220) })
	}
	wg.Go(func() { w.operator(rand.New(rand.NewPCG(9, 9)), 120) })
	wg.Wait()
	for n := range w.nodes {
		if n.InFlight() != 0 {
			t.Errorf("%s/%d has %d in flight when idle", n.ID(), n.Incarnation(), n.InFlight())
		}
	}
}

// publish makes a set of who is present and the next picker over it.
func (w *world) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []balance.Identity
	for k := range 8 {
		id := fmt.Sprint("n", k)
		if inc, ok := w.ids[id]; ok {
			ids = append(ids, balance.Identity{ID: id, Incarnation: inc})
		}
	}
	nodes, err := w.pool.Update(ids)
	if err != nil {
		w.t.Error(err)
		return
	}
	var members []balance.Member
	for k, n := range nodes {
		w.nodes[n] = true
		members = append(members, balance.Member{Node: n, Weight: float64(1 + k%3), Down: k == 3})
	}
	set, err := balance.NewSet(members)
	if err != nil {
		w.t.Error(err)
		return
	}
	var p balance.Picker
	if old := w.picker.Load(); old != nil {
		p, err = (*old).Next(set)
	} else {
		p, err = w.make(set)
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.picker.Store(&p)
}

// operator adds, removes and restarts nodes.
func (w *world) operator(r *rand.Rand, steps int) {
	for range steps {
		id := fmt.Sprint("n", r.IntN(8))
		w.mu.Lock()
		inc, ok := w.ids[id]
		switch {
		case !ok:
			w.ids[id] = inc
		case r.IntN(3) == 0:
			w.ids[id] = inc + 1
		case len(w.ids) > 1:
			delete(w.ids, id)
		}
		w.mu.Unlock()
		w.publish()
		if p := *w.picker.Load(); r.IntN(10) == 0 {
			p.(setter).Set().Expire(w.now(r), time.Hour)
		}
	}
}

// now moves the clock: mostly forwards, sometimes far, sometimes back.
func (w *world) now(r *rand.Rand) time.Duration {
	switch r.IntN(50) {
	case 0:
		return time.Duration(w.clock.Add(-int64(time.Hour)))
	case 1:
		return time.Duration(w.clock.Add(int64(time.Hour)))
	}
	return time.Duration(w.clock.Add(int64(r.IntN(int(time.Millisecond)))))
}

// user starts requests and ends them in every way there is.
func (w *world) user(r *rand.Rand, steps int) {
	var open []balance.Ticket
	for range steps {
		if r.IntN(2) == 0 || len(open) == 0 {
			if tk, ok := w.start(r); ok {
				open = append(open, tk)
			}
			continue
		}
		k := r.IntN(len(open))
		w.end(r, open[k])
		open[k] = open[len(open)-1]
		open = open[:len(open)-1]
	}
	for _, tk := range open {
		w.end(r, tk)
	}
}

func (w *world) start(r *rand.Rand) (balance.Ticket, bool) {
	p := *w.picker.Load()
	set := p.(setter).Set()
	var exclude []*balance.Node
	if set.Len() > 0 && r.IntN(4) == 0 {
		exclude = append(exclude, set.Node(r.IntN(set.Len())))
	}
	tk, err := p.Pick(w.now(r), r.Uint64(), exclude)
	if err != nil {
		return tk, false // the only live node is excluded, limited or barred
	}
	w.check(tk.Node())
	return tk, true
}

// end finishes a request: well, badly, by a panic, or twice.
func (w *world) end(r *rand.Rand, tk balance.Ticket) {
	defer w.check(tk.Node())
	switch r.IntN(5) {
	case 0:
		tk.Done(w.now(r), balance.Outcome{Result: balance.Success, HasQueue: true, Queue: float64(r.IntN(9)), Service: time.Duration(r.IntN(1e6))})
	case 1:
		tk.Done(w.now(r), balance.Outcome{Result: balance.Timeout, Timeout: time.Second, Left: 2})
	case 2:
		tk.Done(w.now(r), balance.Outcome{}) // cancelled
	case 3:
		func() {
			defer func() { _ = recover() }()
			defer func() { tk.Done(w.now(r), balance.Outcome{Result: balance.Failure}) }()
			panic("the request's code") //nolint:forbidigo // a panic between pick and Done is what is tested
		}()
	case 4:
		twin := tk
		tk.Done(w.now(r), success)
		twin.Done(w.now(r), success)
	}
}

func (w *world) check(n *balance.Node) {
	if got := n.InFlight(); got < 0 {
		w.t.Errorf("%s has %d in flight", n.ID(), got)
	}
}

func clockJumps(t *testing.T, make Make) { jump(t, mustMake(t, make, NewSet(t, 1, 1, 1))) }

// jump takes picks at times that go anywhere.
func jump(t *testing.T, p balance.Picker) {
	t.Helper()
	for _, now := range []time.Duration{
		0, time.Hour, -time.Hour, math.MaxInt64 / 2, 0, math.MinInt64 / 2, math.MaxInt64, math.MinInt64, 0,
	} {
		for k := range 50 {
			tk := mustPick(t, p, now, uint64(k))
			tk.Done(now, balance.Outcome{Result: balance.Success + balance.Result(k%2)})
		}
	}
}
