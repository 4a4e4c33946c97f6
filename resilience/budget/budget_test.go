package budget_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience/budget"
)

func must(t testing.TB, c budget.Config) *budget.Budget {
	t.Helper()
	b, err := budget.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAllowed(t *testing.T) {
	f := func(c budget.Config, requests, want int) {
		t.Helper()
		b := must(t, c)
		for range requests {
			b.Request(0)
		}
		got := 0
		for b.Retry(0) {
			got++
		}
		if got != want || b.Stats(0).Retries != uint64(want) {
			t.Errorf("%+v: %d retries of %d requests, want %d; %+v", c, got, requests, want, b.Stats(0))
		}
	}
	f(budget.Config{}, 0, 3)
	f(budget.Config{}, 15, 3)
	f(budget.Config{}, 19, 3)
	f(budget.Config{}, 20, 4)
	f(budget.Config{}, 1000, 200)
	f(budget.Config{Share: .1}, 1000, 100)
	f(budget.Config{Share: .1, Min: 10}, 50, 10)
	f(budget.Config{Max: 50}, 1000, 50)
	f(budget.Config{Min: -1}, 4, 0)
	f(budget.Config{Share: -1}, 1000, 3)
	f(budget.Config{Share: -1, Min: -1}, 1000, 0)
	f(budget.Config{Min: 9, Max: 5}, 0, 5)
	f(budget.Config{Share: 2}, 10, 20)
}

func TestWindow(t *testing.T) {
	b := must(t, budget.Config{Min: -1})
	for range 100 {
		b.Request(0)
	}
	for b.Retry(0) {
	}
	f := func(now time.Duration, want budget.Stats) {
		t.Helper()
		if d := cmp.Diff(want, b.Stats(now)); d != "" {
			t.Errorf("at %v (-want +got):\n%s", now, d)
		}
	}
	f(0, budget.Stats{Requests: 100, Retries: 20, Allowed: 20})
	f(9*time.Second, budget.Stats{Requests: 100, Retries: 20, Allowed: 20})
	f(10*time.Second, budget.Stats{})
	if b.Retry(10 * time.Second) {
		t.Error("credit of an old window was spent")
	}
}

func TestRefund(t *testing.T) {
	b := must(t, budget.Config{})
	for b.Retry(0) {
	}
	b.Refund(time.Second) // found in an older tenth
	if !b.Retry(time.Second) || b.Retry(time.Second) {
		t.Error("a refund is worth one retry")
	}
	for range 9 {
		b.Refund(time.Second)
	}
	if s := b.Stats(time.Second); s.Retries != 0 {
		t.Errorf("retries %d after more refunds than retries; want 0", s.Retries)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []budget.Config{{Share: math.NaN()}, {Share: math.Inf(1)}, {Max: -1}, {Window: -1}} {
		if _, err := budget.New(c); !errors.Is(err, budget.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
}

// TestLoadBound is the law, against a list of events: whenever a retry is
// admitted, the retries of the window with it are within the share of the
// window's requests, or within the floor; and one is refused only then.
func TestLoadBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := budget.New(budget.Config{Share: .1})
		if err != nil {
			t.Fatal(err)
		}
		var requests, retries []int64 // seconds, which are the tenths of the window
		within := func(events []int64, now int64) (n int) {
			for _, e := range events {
				if now-e < 10 {
					n++
				}
			}
			return n
		}
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3).Draw(t, "dt")
			for range rapid.IntRange(0, 50).Draw(t, "requests") {
				b.Request(time.Duration(now) * time.Second)
				requests = append(requests, now)
			}
			for range rapid.IntRange(0, 10).Draw(t, "retries") {
				want := within(retries, now) < max(3, within(requests, now)/10)
				if got := b.Retry(time.Duration(now) * time.Second); got != want {
					t.Fatalf("at %d: admitted %v, want %v; %d retries of %d requests",
						now, got, want, within(retries, now), within(requests, now))
				}
				if want {
					retries = append(retries, now)
				}
			}
		}
	})
}

func TestRace(t *testing.T) {
	b := must(t, budget.Config{Min: -1})
	var wg sync.WaitGroup
	var retries atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				b.Request(time.Second)
				for range 3 {
					if b.Retry(time.Second) {
						retries.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if s := b.Stats(time.Second); s.Requests != 8000 || s.Retries != uint64(retries.Load()) || s.Retries > 1600 {
		t.Errorf("%+v, %d admitted; want 8000 requests and at most 1600 retries", s, retries.Load())
	}
}

func Example() {
	b, err := budget.New(budget.Config{Share: 0.1})
	if err != nil {
		panic(err)
	}
	start := time.Now()
	for range 100 {
		b.Request(time.Since(start))
	}
	sent := 0
	for range 100 { // everything fails and wants a second try
		if b.Retry(time.Since(start)) {
			sent++
		}
	}
	fmt.Println(sent, "retries")
	// Output: 10 retries
}

func BenchmarkBudget(b *testing.B) {
	bud := must(b, budget.Config{})
	b.Run("Request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bud.Request(time.Second)
		}
	})
	b.Run("Retry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bud.Retry(time.Second)
		}
	})
}

// How much of the budget is spent, for a metric.
func ExampleStats() {
	b, err := budget.New(budget.Config{Share: 0.2})
	if err != nil {
		panic(err)
	}
	for range 50 {
		b.Request(time.Second)
	}
	b.Retry(time.Second)
	s := b.Stats(time.Second)
	fmt.Println(s.Retries, "of", s.Allowed, "retries for", s.Requests, "requests")
	// Output: 1 of 10 retries for 50 requests
}
