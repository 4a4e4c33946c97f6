package resilience_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/breaker"
	"github.com/shardd/shardd/resilience/budget"
	"github.com/shardd/shardd/resilience/drain"
	"github.com/shardd/shardd/resilience/guard"
	"github.com/shardd/shardd/resilience/limit"
	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/resilience/ratelimit"
	"github.com/shardd/shardd/resilience/slowstart"
	"github.com/shardd/shardd/resilience/throttle"
)

func TestOutcome(t *testing.T) {
	f := func(o resilience.Outcome, name string, bad bool) {
		t.Helper()
		if o.String() != name || o.Bad() != bad {
			t.Errorf("%d: %q, bad %v; want %q, %v", o, o, o.Bad(), name, bad)
		}
	}
	f(0, "ignored", false)
	f(resilience.Ignored, "ignored", false)
	f(resilience.Success, "success", false)
	f(resilience.Failure, "failure", true)
	f(resilience.Timeout, "timeout", true)
	f(resilience.Overload, "overload", true)
	f(99, "unknown", false)
}

// must is the value of a constructor that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// operations are an admission and its end, or what stands for them, of each part.
func operations() map[string]func(now time.Duration) {
	br := must(breaker.New(breaker.Config{}))
	open := must(breaker.New(breaker.Config{OpenFor: time.Hour}))
	open.Trip(0)
	fixed := must(limit.New(limit.Config{}))
	full := must(limit.New(limit.Config{Initial: 1}))
	_ = must(full.Admit(0, 1))
	adaptive := must(limit.New(limit.Config{Algorithm: &limit.Vegas{}}))
	th := must(throttle.New(throttle.Config{}))
	tok := must(ratelimit.NewToken(ratelimit.Config{Rate: 1e9}))
	lk := must(ratelimit.NewLeaky(ratelimit.Config{Rate: 1e9}))
	bud := must(budget.New(budget.Config{}))
	node := must(outlier.New(outlier.Config{})).Add("n", outlier.Up, 0)
	ramp := must(slowstart.New(slowstart.Config{})).Start(0)
	gate := &drain.Gate{}
	gd := must(guard.New(guard.Config{Breaker: &breaker.Config{}, Limit: &limit.Config{}}))
	return map[string]func(now time.Duration){
		"breaker": func(now time.Duration) {
			t, _ := br.Admit(now)
			t.Done(now, resilience.Success)
		},
		"breaker-open":   func(now time.Duration) { _, _ = open.Admit(now) },
		"limit-fixed":    func(now time.Duration) { t, _ := fixed.Admit(now, 1); t.Done(now, resilience.Success) },
		"limit-full":     func(now time.Duration) { _, _ = full.Admit(now, 1) },
		"limit-vegas":    func(now time.Duration) { t, _ := adaptive.Admit(now, 1); t.Done(now, resilience.Success) },
		"throttle":       func(now time.Duration) { t, _ := th.Admit(now); t.Done(now, resilience.Success) },
		"token":          func(now time.Duration) { _ = tok.Admit(now, 1) },
		"leaky":          func(now time.Duration) { _, _ = lk.Admit(now, 1) },
		"budget-request": func(now time.Duration) { bud.Request(now) },
		"budget-retry":   func(now time.Duration) { bud.Retry(now) },
		"outlier":        func(now time.Duration) { node.Record(now, resilience.Success) },
		"outlier-usable": func(time.Duration) { node.Usable() },
		"slowstart":      func(now time.Duration) { ramp.Tick(now) },
		"drain":          func(time.Duration) { t, _ := gate.Admit(); t.Done() },
		"guard":          func(now time.Duration) { t, _ := gd.Admit(now, 1); t.Done(now, resilience.Success) },
	}
}

// TestNoAllocations holds the promise of every admission.
func TestNoAllocations(t *testing.T) {
	for name, op := range operations() {
		now := time.Duration(0)
		op(now) // the first may make a table
		if n := testing.AllocsPerRun(1000, func() {
			now += time.Microsecond
			op(now)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func Example() {
	br := must(breaker.New(breaker.Config{}))
	start := time.Now()
	request := func() (o resilience.Outcome) { return resilience.Success }

	t, err := br.Admit(time.Since(start))
	if err != nil {
		return // ask another node
	}
	o := resilience.Failure // what it is if request panics
	defer func() { t.Done(time.Since(start), o) }()
	o = request()
	fmt.Println(o)
	// Output: success
}

func BenchmarkOperation(b *testing.B) {
	ops := operations()
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		op := ops[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := time.Duration(0)
			for b.Loop() {
				now += 100
				op(now)
			}
		})
	}
}

// BenchmarkBesideFailsafe has failsafe-go's own policies beside ours in one run:
// x/failsafe is our time over theirs.
func BenchmarkBesideFailsafe(b *testing.B) {
	ours := operations()
	cb := circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(.5, 20, 10*time.Second).Build()
	bh := bulkhead.New[any](20)
	rl := ratelimiter.NewSmooth[any](1e9, time.Second)
	f := func(name string, theirs func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := time.Now()
			for b.Loop() {
				ours[name](time.Since(start)) // they read the clock too
			}
			b.StopTimer()
			mine := b.Elapsed()
			begin := time.Now()
			for range b.N {
				theirs()
			}
			b.ReportMetric(float64(mine)/float64(time.Since(begin)), "x/failsafe")
		})
	}
	f("breaker", func() {
		if cb.TryAcquirePermit() {
			cb.RecordSuccess()
		}
	})
	f("limit-fixed", func() {
		if bh.TryAcquirePermit() {
			bh.ReleasePermit()
		}
	})
	f("token", func() { rl.TryAcquirePermit() })
}
