package guard_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/breaker"
	"github.com/shardd/shardd/resilience/drain"
	"github.com/shardd/shardd/resilience/guard"
	"github.com/shardd/shardd/resilience/limit"
	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/resilience/ratelimit"
	"github.com/shardd/shardd/resilience/throttle"
)

const sec = time.Second

func must(t testing.TB, c guard.Config) *guard.Guard {
	t.Helper()
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func admit(t testing.TB, g *guard.Guard, now time.Duration, want error) guard.Ticket {
	t.Helper()
	tk, err := g.Admit(now, 1)
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Fatalf("at %v: %v; want %v", now, err, want)
	}
	return tk
}

func TestEachPartRefuses(t *testing.T) {
	g := must(t, guard.Config{})
	g.Gate().Drain(0, 0)
	admit(t, g, 0, drain.ErrDraining)

	g = must(t, guard.Config{Breaker: &breaker.Config{}})
	g.Breaker().Trip(0)
	admit(t, g, 0, breaker.ErrOpen)

	g = must(t, guard.Config{Throttle: &throttle.Config{MinRequests: -1, Rand: func() float64 { return 0 }}})
	admit(t, g, 0, nil).Done(0, resilience.Overload)
	admit(t, g, 0, throttle.ErrDropped)

	g = must(t, guard.Config{Limit: &limit.Config{Initial: 1}})
	admit(t, g, 0, nil)
	admit(t, g, 0, limit.ErrLimited)

	g = must(t, guard.Config{Rate: &ratelimit.Config{Rate: 1}})
	admit(t, g, 0, nil)
	admit(t, g, 0, ratelimit.ErrLimited)
}

// TestRefusalFreesTheProbe is the field case of the probe that a later check
// refuses after it got its slot: the slot is free at once.
func TestRefusalFreesTheProbe(t *testing.T) {
	g := must(t, guard.Config{
		Breaker: &breaker.Config{OpenFor: sec},
		Limit:   &limit.Config{},
		Rate:    &ratelimit.Config{Rate: .1},
	})
	admit(t, g, 0, nil).Done(0, resilience.Success) // the only token
	g.Breaker().Trip(0)
	for range 10 {
		admit(t, g, sec, ratelimit.ErrLimited) // not ErrProbing
	}
	if s, _ := g.Breaker().State(); s != breaker.HalfOpen || !g.Ready(sec) {
		t.Fatalf("breaker %v, ready %v; want half-open with a free slot", s, g.Ready(sec))
	}
	if g.Limiter().InFlight() != 0 || g.Gate().Status(0).InFlight != 0 {
		t.Errorf("a refusal left %d in the limit, %+v at the gate", g.Limiter().InFlight(), g.Gate().Status(0))
	}
	admit(t, g, 10*sec, nil).Done(10*sec, resilience.Success)
	if s, _ := g.Breaker().State(); s != breaker.Closed {
		t.Errorf("breaker %v; want closed", s)
	}
}

func TestOutcomeReachesAllOnce(t *testing.T) {
	d, err := outlier.New(outlier.Config{Limit: 1, Consecutive: 2})
	if err != nil {
		t.Fatal(err)
	}
	n := d.Add("n", outlier.Up, 0)
	g := must(t, guard.Config{Breaker: &breaker.Config{Consecutive: 2}, Limit: &limit.Config{}, Outlier: n})
	tk := admit(t, g, 0, nil)
	again := tk
	for range 10 {
		tk.Done(0, resilience.Failure)
		again.Done(0, resilience.Failure)
	}
	if s, _ := g.Breaker().State(); s != breaker.Closed || n.Ejected() {
		t.Fatalf("one failure counted as two: breaker %v, ejected %v", s, n.Ejected())
	}
	admit(t, g, 0, nil).Done(0, resilience.Timeout)
	if s, _ := g.Breaker().State(); s != breaker.Open || !n.Ejected() {
		t.Errorf("two failures: breaker %v, ejected %v", s, n.Ejected())
	}
	guard.Ticket{}.Done(0, resilience.Failure)
}

func TestDo(t *testing.T) {
	g := must(t, guard.Config{Breaker: &breaker.Config{Consecutive: 1}, Limit: &limit.Config{}})
	clock := func() time.Duration { return 0 }
	if err := g.Do(clock, 1, func() resilience.Outcome { return resilience.Success }); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic did not go on")
			}
		}()
		_ = g.Do(clock, 1, func() resilience.Outcome { panic("boom") })
	}()
	if err := g.Do(clock, 1, nil); !errors.Is(err, breaker.ErrOpen) || g.Limiter().InFlight() != 0 {
		t.Errorf("after a panic: %v, %d in flight", err, g.Limiter().InFlight())
	}
}

func TestRefused(t *testing.T) {
	f := func(c guard.Config, want error) {
		t.Helper()
		if _, err := guard.New(c); !errors.Is(err, want) {
			t.Errorf("%v; want %v", err, want)
		}
	}
	f(guard.Config{Breaker: &breaker.Config{Probes: 99}}, breaker.ErrConfig)
	f(guard.Config{Throttle: &throttle.Config{K: math.NaN()}}, throttle.ErrConfig)
	f(guard.Config{Limit: &limit.Config{Min: -1}}, limit.ErrConfig)
	f(guard.Config{Rate: &ratelimit.Config{}}, ratelimit.ErrConfig)
}

func full(d *outlier.Detector) guard.Config {
	return guard.Config{
		Breaker:  &breaker.Config{Consecutive: 4, OpenFor: 50 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond, Lost: sec},
		Throttle: &throttle.Config{Window: sec},
		Limit:    &limit.Config{Initial: 8, Algorithm: &limit.AIMD{}, Lost: sec, Window: 10 * time.Millisecond},
		Rate:     &ratelimit.Config{Rate: 1000, Bucket: 20},
		Outlier:  d.Add("n", outlier.Up, 0),
	}
}

// TestLaws takes random steps of start, finish, cancel, panic, double Done and
// loss: the counters are never negative and zero when idle.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := outlier.New(outlier.Config{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(full(d))
		if err != nil {
			t.Fatal(err)
		}
		var all []guard.Ticket
		now := time.Duration(0)
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(-5, 30).Draw(t, "dt")) * time.Millisecond
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 5:
				if tk, err := g.Admit(now, rapid.IntRange(1, 3).Draw(t, "cost")); err == nil {
					all = append(all, tk)
				}
			case op == 5:
				func() {
					defer func() { _ = recover() }()
					_ = g.Do(func() time.Duration { return now }, 1, func() resilience.Outcome { panic("in the request") })
				}()
			case len(all) > 0:
				tk := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				tk.Done(now, resilience.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")))
			}
			if g.Limiter().InFlight() < 0 || g.Gate().Status(now).InFlight < 0 {
				t.Fatal("negative")
			}
		}
		for _, tk := range all {
			tk.Done(now, resilience.Success)
		}
		if n, s := g.Limiter().InFlight(), g.Gate().Status(now); n != 0 || s.InFlight != 0 {
			t.Fatalf("idle with %d, %+v", n, s)
		}
	})
}

func TestRace(t *testing.T) {
	d, err := outlier.New(outlier.Config{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := must(t, full(d))
	var clock atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 500 {
				now := time.Duration(clock.Add(int64(time.Millisecond)))
				tk, err := g.Admit(now, 1)
				if err != nil {
					continue
				}
				tk.Done(now, resilience.Outcome((n+i)%5))
				tk.Done(now, resilience.Failure)
				if g.Limiter().InFlight() < 0 {
					t.Error("negative")
				}
			}
		})
	}
	wg.Wait()
	if n, s := g.Limiter().InFlight(), g.Gate().Status(0); n != 0 || s.InFlight != 0 {
		t.Errorf("idle with %d, %+v", n, s)
	}
}

func Example() {
	g, err := guard.New(guard.Config{
		Breaker: &breaker.Config{},
		Limit:   &limit.Config{Initial: 100},
	})
	if err != nil {
		panic(err)
	}
	start := time.Now()
	t, err := g.Admit(time.Since(start), 1)
	if err != nil {
		return // another node
	}
	defer func() { t.Done(time.Since(start), resilience.Success) }()
	fmt.Println("in flight:", g.Limiter().InFlight())
	// Output: in flight: 1
}

func BenchmarkGuard(b *testing.B) {
	f := func(name string, c guard.Config) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			g := must(b, c)
			now := time.Duration(0)
			for b.Loop() {
				now += 100
				t, err := g.Admit(now, 1)
				if err != nil {
					b.Fatal(err)
				}
				t.Done(now, resilience.Success)
			}
		})
	}
	f("gate", guard.Config{})
	f("gate+breaker", guard.Config{Breaker: &breaker.Config{}})
	f("gate+breaker+limit", guard.Config{Breaker: &breaker.Config{}, Limit: &limit.Config{}})
	f("all", guard.Config{
		Breaker: &breaker.Config{}, Limit: &limit.Config{}, Throttle: &throttle.Config{},
		Rate: &ratelimit.Config{Rate: 1e9, Bucket: 1e9},
	})
}
