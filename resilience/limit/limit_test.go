package limit_test

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
	"github.com/shardd/shardd/resilience/limit"
)

const sec, ms = time.Second, time.Millisecond

func must(t testing.TB, c limit.Config) *limit.Limiter {
	t.Helper()
	l, err := limit.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestFixed(t *testing.T) {
	l := must(t, limit.Config{Initial: 10})
	f := func(cost int, want error) limit.Ticket {
		t.Helper()
		tk, err := l.Admit(0, cost)
		if !errors.Is(err, want) {
			t.Errorf("Admit(%d) at %d in flight = %v; want %v", cost, l.InFlight(), err, want)
		}
		return tk
	}
	f(0, limit.ErrCost)
	f(-1, limit.ErrCost)
	f(65536, limit.ErrCost)
	a := f(4, nil)
	b := f(6, nil)
	f(1, limit.ErrLimited)
	a.Done(0, resilience.Failure)
	f(5, limit.ErrLimited)
	c := f(4, nil)
	for _, o := range []limit.Ticket{a, b, c, a, b, c, {}} {
		o.Done(0, resilience.Success)
	}
	if l.InFlight() != 0 {
		t.Errorf("%d in flight after all ended, some twice", l.InFlight())
	}
	big := f(500, nil) // alone
	f(1, limit.ErrLimited)
	big.Done(0, resilience.Timeout)
	if l.Limit() != 10 || l.InFlight() != 0 {
		t.Errorf("limit %d, in flight %d; want 10, 0", l.Limit(), l.InFlight())
	}
}

func TestLost(t *testing.T) {
	l := must(t, limit.Config{Initial: 3, Lost: 10 * sec})
	lost, _ := l.Admit(0, 3)
	if _, err := l.Admit(9*sec, 1); !errors.Is(err, limit.ErrLimited) {
		t.Fatal(err)
	}
	tk, err := l.Admit(13*sec, 2)
	if err != nil {
		t.Fatalf("the room of a lost admission stays taken: %v", err)
	}
	lost.Done(14*sec, resilience.Success)
	tk.Done(14*sec, resilience.Success)
	if l.InFlight() != 0 {
		t.Errorf("%d in flight; want 0", l.InFlight())
	}
}

// TestLaws takes random steps with an account beside.
func TestLaws(t *testing.T) {
	algorithms := []func() limit.Algorithm{
		func() limit.Algorithm { return nil },
		func() limit.Algorithm { return &limit.AIMD{} },
		func() limit.Algorithm { return &limit.Vegas{Rand: func() float64 { return .5 }} },
		func() limit.Algorithm { return &limit.Gradient{} },
		func() limit.Algorithm { return wild{} },
	}
	rapid.Check(t, func(t *rapid.T) {
		a := algorithms[rapid.IntRange(0, len(algorithms)-1).Draw(t, "algorithm")]()
		l, err := limit.New(limit.Config{Initial: 5, Min: 2, Max: 9, Algorithm: a, MinSamples: 1, Window: 10 * ms, Lost: -1})
		if err != nil {
			t.Fatal(err)
		}
		open, account := map[limit.Ticket]int{}, 0
		var all []limit.Ticket
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now := time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "now"))
			if rapid.Bool().Draw(t, "admit") || len(all) == 0 {
				cost := rapid.IntRange(1, 12).Draw(t, "cost")
				before, bound := l.InFlight(), l.Limit()
				tk, err := l.Admit(now, cost)
				if want := before == 0 || before+cost <= bound; want != (err == nil) {
					t.Fatalf("Admit(%d) at %d of %d: %v", cost, before, bound, err)
				}
				if err == nil {
					open[tk], account = cost, account+cost
					all = append(all, tk)
				}
			} else {
				tk := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				tk.Done(now, resilience.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")))
				account -= open[tk]
				delete(open, tk)
			}
			if l.InFlight() != account || l.Limit() < 2 || l.Limit() > 9 {
				t.Fatalf("in flight %d, account %d, limit %d", l.InFlight(), account, l.Limit())
			}
		}
	})
}

// wild is an algorithm that returns anything.
type wild struct{}

func (wild) Update(l float64, s limit.Sample) float64 {
	switch s.Count % 4 {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1)
	case 2:
		return math.Inf(-1)
	}
	return -l
}

func TestRace(t *testing.T) {
	l := must(t, limit.Config{Initial: 5, Max: 10, Algorithm: &limit.Vegas{}, MinSamples: 1, Window: 10, Lost: 1 << 22})
	var clock, in atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 1000 {
				now := time.Duration(clock.Add(1 << 12))
				tk, err := l.Admit(now, 1+i%2)
				if err != nil {
					continue
				}
				if m := in.Add(1); m > 10 {
					t.Errorf("%d admitted at once with a limit of at most 10", m)
				}
				in.Add(-1)
				if n%50 == 0 {
					continue // lost
				}
				func() {
					defer func() { _ = recover() }()
					defer tk.Done(now+ms, resilience.Outcome(n%5))
					if n%7 == 0 {
						panic("in the request")
					}
				}()
				tk.Done(now, resilience.Failure)
				if l.InFlight() < 0 {
					t.Error("negative")
				}
			}
		})
	}
	wg.Wait()
	now := time.Duration(clock.Load()) + time.Hour
	for range 3 {
		tk, _ := l.Admit(now, 1)
		tk.Done(now, resilience.Ignored)
		now += time.Hour
	}
	if l.InFlight() != 0 {
		t.Errorf("%d in flight when idle", l.InFlight())
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []limit.Config{
		{Min: -1}, {Initial: -1}, {Initial: 1, Min: 2}, {Initial: 5, Max: 4}, {Max: -1}, {Window: -1}, {MinSamples: -1},
	} {
		if _, err := limit.New(c); !errors.Is(err, limit.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
	for _, c := range []limit.Config{{Max: 5}, {Min: 50}, {Initial: 5000}} {
		must(t, c)
	}
}

func Example() {
	l, err := limit.New(limit.Config{Initial: 2})
	if err != nil {
		panic(err)
	}
	now := time.Duration(0)
	a, _ := l.Admit(now, 1)
	_, _ = l.Admit(now, 1)
	_, err = l.Admit(now, 1)
	fmt.Println(err)
	a.Done(now, resilience.Success)
	_, err = l.Admit(now, 1)
	fmt.Println(err, l.InFlight())
	// Output:
	// limit: too much in flight
	// <nil> 2
}

func BenchmarkLimiter(b *testing.B) {
	f := func(name string, c limit.Config) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			l, now := must(b, c), time.Duration(0)
			for b.Loop() {
				now += 100
				t, _ := l.Admit(now, 1)
				t.Done(now, resilience.Success)
			}
		})
	}
	f("fixed", limit.Config{})
	f("aimd", limit.Config{Algorithm: &limit.AIMD{}})
	f("vegas", limit.Config{Algorithm: &limit.Vegas{}})
	f("gradient", limit.Config{Algorithm: &limit.Gradient{}})
	b.Run("parallel", func(b *testing.B) {
		l := must(b, limit.Config{Algorithm: &limit.Vegas{}})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				t, _ := l.Admit(time.Second, 1)
				t.Done(time.Second, resilience.Success)
			}
		})
	})
}

// The same windows under each algorithm: latency has doubled and nothing is
// refused; then a request was dropped.
func ExampleAlgorithm() {
	for _, a := range []limit.Algorithm{
		&limit.AIMD{},
		&limit.Vegas{Rand: func() float64 { return 0.5 }},
		&limit.Gradient{},
	} {
		at := 50.0
		for range 20 { // well
			at = a.Update(at, limit.Sample{Latency: 10 * time.Millisecond, Least: 10 * time.Millisecond, Count: 100, InFlight: int(at)})
		}
		well := at
		for range 20 { // twice as slow
			at = a.Update(at, limit.Sample{Latency: 20 * time.Millisecond, Least: 20 * time.Millisecond, Count: 100, InFlight: int(at)})
		}
		slow := at
		at = a.Update(at, limit.Sample{Latency: 20 * time.Millisecond, Least: 20 * time.Millisecond, Count: 100, InFlight: int(at), Dropped: true})
		fmt.Printf("%T: %.0f, %.0f, %.0f\n", a, well, slow, at)
	}
	// Output:
	// *limit.AIMD: 70, 90, 81
	// *limit.Vegas: 224, 184, 182
	// *limit.Gradient: 66, 37, 34
}
