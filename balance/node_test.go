package balance

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

func TestNodeLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	var n Node
	if size, first := unsafe.Sizeof(n), unsafe.Offsetof(n.id); size != cacheLine || first != cacheLine/2 {
		t.Errorf("a node has %d bytes and its second line starts at %d; want %d and %d", size, first, cacheLine, cacheLine/2)
	}
}

// TestSlots opens and closes thousands of requests on one node in random order:
// words never clash, ages are right and the table stays small.
func TestSlots(t *testing.T) {
	n := NewNode("a", 0)
	c := &candidate{node: n, weight: 1}
	r := rand.New(rand.NewPCG(1, 2))
	var open []Ticket
	now := time.Duration(0)
	for step := range 50_000 {
		now += time.Duration(r.IntN(1e6))
		if grow := step < 5000 || step > 20_000 && step < 22_000; grow || len(open) == 0 {
			open = append(open, c.take(now))
		} else {
			k := r.IntN(len(open))
			if !open[k].Done(now, Outcome{}) {
				t.Fatal("the first Done does not count")
			}
			open[k] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		if n.InFlight() != len(open) {
			t.Fatalf("%d in flight, %d open", n.InFlight(), len(open))
		}
		if step%5000 == 0 {
			checkAges(t, n, open, now)
		}
	}
	if size := len(n.far.Load().slots); size > 4*5000 {
		t.Errorf("a table of %d slots for 5000 requests", size)
	}
}

func checkAges(t *testing.T, n *Node, open []Ticket, now time.Duration) {
	t.Helper()
	oldest, late := time.Duration(0), 0
	for _, tk := range open {
		oldest = max(oldest, now-tk.start)
		if now-tk.start > 100*time.Millisecond {
			late++
		}
	}
	if got := n.Oldest(now); (got - oldest).Abs() > 2*time.Millisecond {
		t.Errorf("the oldest of %d is %v old, want %v", len(open), got, oldest)
	}
	got, mean := n.OlderThan(now, 100*time.Millisecond)
	if math.Abs(float64(got-late)) > 0.05*float64(late)+3 || got > 0 && mean <= 100*time.Millisecond {
		t.Errorf("%d requests are older than 100 ms (mean %v), want %d", got, mean, late)
	}
}

// TestSlotsReused: the word of an ended request does not close the next one in
// its slot.
func TestSlotsReused(t *testing.T) {
	c := &candidate{node: NewNode("a", 0), weight: 1}
	stale := c.take(0)
	stale.Done(0, Outcome{})
	for range 1000 {
		tk := c.take(0)
		if stale.Done(0, Outcome{}) || c.node.InFlight() != 1 {
			t.Fatal("a late copy closed another request")
		}
		tk.Done(0, Outcome{})
	}
	if got := c.node.Stats(); got.Repeated != 1000 || got.InFlight != 0 {
		t.Errorf("stats %+v, want 1000 repeated", got)
	}
}

// TestOneDoneWins: of many copies' Dones at once one counts.
func TestOneDoneWins(t *testing.T) {
	c := &candidate{node: NewNode("a", 0), weight: 1}
	for range 200 {
		tk := c.take(0)
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if tk.Done(0, Outcome{}) {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || c.node.InFlight() != 0 {
			t.Fatalf("%d of 4 Dones counted, %d in flight", won.Load(), c.node.InFlight())
		}
	}
}

func TestAgeAcrossJumps(t *testing.T) {
	f := func(start, now, want time.Duration) {
		t.Helper()
		if got := age(taken(0, start), now); (got - want).Abs() > 2*time.Millisecond {
			t.Errorf("age of %v at %v: %v, want %v", start, now, got, want)
		}
	}
	f(0, time.Hour, time.Hour)
	f(time.Hour, 0, 0)
	f(-time.Hour, time.Hour, 2*time.Hour)
	f(math.MaxInt64-int64ns, math.MaxInt64, int64ns)
}

const int64ns = time.Minute

// Requests without a Done are closed although the clock has gone back since they
// began.
func TestExpireClockBack(t *testing.T) {
	n := NewNode("a", 0)
	set := must(NewSet([]Member{{Node: n, Weight: 1}}))
	lost := set.Take(0, time.Hour)
	if got := set.Expire(59*time.Minute, 5*time.Minute); got != 0 {
		t.Errorf("%d closed a minute before they began", got)
	}
	if got := set.Expire(0, 5*time.Minute); got != 1 || n.InFlight() != 0 || lost.Done(0, Outcome{}) {
		t.Errorf("%d closed an hour before they began, %d in flight", got, n.InFlight())
	}
}
