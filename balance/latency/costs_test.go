package latency

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/balance"
)

const ms = time.Millisecond

func ok(service time.Duration) balance.Outcome {
	return balance.Outcome{Result: balance.Success, Service: service}
}

func wantCost(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: cost %v, want %v", what, got, want)
	}
}

// bound binds a cost to a set and returns both, bound to each other.
func bound(t *testing.T, c balance.Cost, err error, weights ...float64) (balance.Cost, *balance.Set) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, weights...)
	c = c.Bind(set, nil)
	return c, set.Observed(c)
}

func TestPeakEWMAErrors(t *testing.T) {
	peak, err := NewPeakEWMA(PeakConfig{Default: 10 * ms, ErrorCap: 100 * ms})
	c, set := bound(t, peak, err, 1, 1, 1)
	estimate := c.(*PeakEWMA).Estimate
	f := func(o balance.Outcome, took, want time.Duration) {
		t.Helper()
		set.Take(0, 0).Done(took, o)
		if got := estimate(0); got != want {
			t.Errorf("%v after %v: estimate %v, want %v", o.Result, took, got, want)
		}
	}
	f(balance.Outcome{Result: balance.Ignored}, 5*ms, 10*ms)                      // less than known: says nothing
	f(balance.Outcome{Result: balance.Ignored}, 12*ms, 12*ms)                     // it took that long at least
	f(balance.Outcome{Result: balance.Failure}, 12*ms, 24*ms)                     // twice the estimate
	f(balance.Outcome{Result: balance.Failure, Timeout: 70 * ms}, 12*ms, 70*ms)   // the time-out
	f(balance.Outcome{Result: balance.Timeout, Timeout: 500 * ms}, 12*ms, 100*ms) // the cap
}

func TestPeakEWMAByWeight(t *testing.T) {
	peak, err := NewPeakEWMA(PeakConfig{Default: 10 * ms, ByWeight: true})
	c, set := bound(t, peak, err, 1, 4)
	set.Take(1, 0)
	wantCost(t, "idle, weight 1", c.Cost(0, 0), 10e6)
	wantCost(t, "one in flight, weight 4", c.Cost(1, 0), 10e6*2/4)
}

// TestPeakEWMAForgets: an estimate that has faded away is unknown again: one
// probe, no flood.
func TestPeakEWMAForgets(t *testing.T) {
	peak, err := NewPeakEWMA(PeakConfig{Default: 10 * ms})
	c, set := bound(t, peak, err, 1)
	c.Cost(0, 0)
	if idle := c.Cost(0, time.Hour); idle != 1 {
		t.Errorf("idle cost %v after an hour, want 1", idle)
	}
	set.Take(0, time.Hour)
	if busy := c.Cost(0, time.Hour); busy < 1e14 {
		t.Errorf("busy cost %v after an hour, want Finagle's penalty", busy)
	}
}

// TestEstimatesOutliveSets: a node that stays keeps its estimate, one that comes
// back does not.
func TestEstimatesOutliveSets(t *testing.T) {
	peak, err := NewPeakEWMA(PeakConfig{})
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, 1, 1)
	var p balance.Picker
	if p, err = balance.NewP2C(set, peak); err != nil {
		t.Fatal(err)
	}
	p.(*balance.P2C).Set().Take(0, 0).Done(80*ms, ok(0))
	next := func(members ...balance.Member) balance.Cost {
		t.Helper()
		s, err := balance.NewSet(members)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = p.Next(s); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	picks := func() (a int) {
		for k := range 100 {
			tk, err := p.Pick(80*ms, uint64(k), nil)
			if err != nil {
				t.Fatal(err)
			}
			if tk.Node() == set.Node(0) {
				a++
			}
			tk.Done(81*ms, ok(0))
		}
		return a
	}
	next(set.Member(1), set.Member(0))
	if got := picks(); got != 0 {
		t.Errorf("the slow node got %d of 100 picks after a change of the set", got)
	}
	next(set.Member(1))
	next(set.Member(1), set.Member(0)) // the same Node, but the policy has forgotten it
	if got := picks(); got == 0 {
		t.Error("a node that came back still has its old estimate")
	}
}

func TestSquaredEWMA(t *testing.T) {
	sq, err := NewSquaredEWMA(SquaredConfig{Alpha: 0.25, Default: 30 * ms})
	c, set := bound(t, sq, err, 1)
	wantCost(t, "unknown and idle", c.Cost(0, 0), 1)
	first := set.Take(0, 0)
	wantCost(t, "unknown and busy", c.Cost(0, 0), 30e6*4)
	first.Done(8*ms, ok(0))
	wantCost(t, "first sample", c.Cost(0, 0), 8e6)
	set.Take(0, 8*ms).Done(20*ms, ok(0))
	wantCost(t, "second sample", c.Cost(0, 0), .25*12e6+.75*8e6)
	set.Take(0, 0)
	set.Take(0, 0)
	wantCost(t, "two in flight", c.Cost(0, 0), 9e6*9)
	for _, cfg := range []SquaredConfig{{Alpha: 2}, {Alpha: math.NaN()}, {Default: -1}} {
		if _, err := NewSquaredEWMA(cfg); !errors.Is(err, balance.ErrInvalid) {
			t.Errorf("%+v: error %v, want ErrInvalid", cfg, err)
		}
	}
}

func TestServerQueue(t *testing.T) {
	q, err := NewServerQueue(QueueConfig{Decay: time.Second})
	c, set := bound(t, q, err, 1, 1)
	report := func(i int, now time.Duration, queue float64) {
		set.Take(i, now).Done(now, balance.Outcome{Result: balance.Success, Queue: queue, HasQueue: true})
	}
	report(0, time.Hour, 4)
	wantCost(t, "one report is the mean", c.Cost(1, time.Hour), 4)
	report(1, time.Hour+10*time.Second, 10) // the mean follows
	late := time.Hour + 10*time.Second
	mean := 4*math.Exp(-10) + 10*(1-math.Exp(-10))
	wantCost(t, "a fresh report", c.Cost(1, late), 10)
	wantCost(t, "an old one has faded to the mean", c.Cost(0, late), mean)
	own := set.Take(1, late)
	wantCost(t, "own requests count", c.Cost(1, late), 11)
	report(1, late, 3) // of which one is our own
	wantCost(t, "own requests count once", c.Cost(1, late), 3)
	own.Done(late, balance.Outcome{})
	report(1, late, -5)
	report(1, late, math.NaN())
	wantCost(t, "nonsense is passed over", c.Cost(1, late), 2)
}

// TestSuccessForces: a node that loses every comparison gets a request each
// Force.
func TestSuccessForces(t *testing.T) {
	p, err := NewSuccess(newSet(t, 1, 1), Kratos())
	if err != nil {
		t.Fatal(err)
	}
	slow := 0
	for k := range 30_000 {
		now := time.Duration(k) * ms
		tk, err := p.Pick(now, uint64(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		if tk.Index() == 0 {
			slow++
			tk.Done(now+900*ms, ok(0))
			continue
		}
		tk.Done(now+ms, ok(0))
	}
	if slow < 8 || slow > 15 {
		t.Errorf("the slow node got %d of 30000 picks in 30 s, want about one in 3 s", slow)
	}
}

// TestSuccessRate: errors lower the share of a node that fails fast.
func TestSuccessRate(t *testing.T) {
	for name, cfg := range map[string]SuccessConfig{"kratos": Kratos(), "go-zero": GoZero()} {
		p, err := NewSuccess(newSet(t, 1, 1, 1, 1), cfg)
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		for k := range 20_000 {
			now := time.Duration(k) * ms
			tk, err := p.Pick(now, uint64(k), nil)
			if err != nil {
				t.Fatal(err)
			}
			if tk.Index() == 0 {
				bad++
				tk.Done(now+ms, balance.Outcome{Result: balance.Failure})
				continue
			}
			tk.Done(now+10*ms, ok(0))
		}
		// go-zero draws three pairs in the hope of two healthy ones, and then takes
		// the last: (1/2)^3 of the picks compare the sick node, and it looks fast.
		if most := map[string]int{"kratos": 500, "go-zero": 20_000 * 14 / 100}[name]; bad > most {
			t.Errorf("%s: the failing node got %d of 20000 picks, want at most %d", name, bad, most)
		}
	}
}

// TestSuccessPredicts: requests that are long in flight raise the cost before
// they end.
func TestSuccessPredicts(t *testing.T) {
	p, err := NewSuccess(newSet(t, 1, 1), Kratos())
	if err != nil {
		t.Fatal(err)
	}
	p.Set().Take(0, 0).Done(10*ms, ok(0))
	before := p.cost(0, 10*ms)
	for range 4 {
		p.Set().Take(0, 20*ms)
	}
	got := p.cost(0, 520*ms)
	want := math.Sqrt(float64(500*ms+5*ms)) * 5
	if math.Abs(got-want) > 0.01*want {
		t.Errorf("cost %v with four requests 500 ms in flight, want %v (%v before)", got, want, before)
	}
}

// TestCostsAreNumbers: whatever the clock and the outcomes do, a cost is a number
// of 0 or more, and never 0 for a node that nothing is known of.
func TestCostsAreNumbers(t *testing.T) {
	errs := balance.ErrorLoad{Each: 10}
	costs := func(t *rapid.T) []balance.Cost {
		peak, err := NewPeakEWMA(PeakConfig{Errors: errs, ErrorCap: time.Minute, ByWeight: true})
		if err != nil {
			t.Fatal(err)
		}
		squared, err := NewSquaredEWMA(SquaredConfig{Errors: errs})
		if err != nil {
			t.Fatal(err)
		}
		queue, err := NewServerQueue(QueueConfig{Errors: errs})
		if err != nil {
			t.Fatal(err)
		}
		return []balance.Cost{peak, squared, queue, &balance.InFlight{Errors: errs}}
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range costs(t) {
			members := []balance.Member{{Node: balance.NewNode("a", 0), Weight: 2}, {Node: balance.NewNode("b", 0)}}
			set, err := balance.NewSet(members)
			if err != nil {
				t.Fatal(err)
			}
			c = c.Bind(set, nil)
			set = set.Observed(c)
			for range rapid.IntRange(1, 20).Draw(t, "steps") {
				tk := set.Take(rapid.IntRange(0, 1).Draw(t, "node"), time.Duration(rapid.Int64().Draw(t, "start")))
				tk.Done(time.Duration(rapid.Int64().Draw(t, "end")), balance.Outcome{
					Result:  balance.Result(rapid.IntRange(0, 4).Draw(t, "result")),
					Timeout: time.Duration(rapid.Int64().Draw(t, "time-out")),
					Queue:   rapid.Float64().Draw(t, "queue"), HasQueue: true,
				})
				for i := range 2 {
					if got := c.Cost(i, time.Duration(rapid.Int64().Draw(t, "now"))); !(got >= 0) {
						t.Fatalf("%T: cost %v", c, got)
					}
				}
			}
		}
	})
}
