package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec, ms = time.Second, time.Millisecond

func token(t testing.TB, rate float64, bucket int) *ratelimit.Token {
	t.Helper()
	l, err := ratelimit.NewToken(ratelimit.Config{Rate: rate, Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func leaky(t testing.TB, rate float64, bucket int) *ratelimit.Leaky {
	t.Helper()
	l, err := ratelimit.NewLeaky(ratelimit.Config{Rate: rate, Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestToken(t *testing.T) {
	l := token(t, 10, 5)
	f := func(now time.Duration, cost int, want error) {
		t.Helper()
		if err := l.Admit(now, cost); !errors.Is(err, want) {
			t.Errorf("Admit(%v, %d) = %v; want %v", now, cost, err, want)
		}
	}
	f(0, 0, ratelimit.ErrCost)
	f(0, -3, ratelimit.ErrCost) // would give tokens
	f(0, 6, ratelimit.ErrCost)
	f(0, 5, nil)
	f(0, 1, ratelimit.ErrLimited)
	f(99*ms, 1, ratelimit.ErrLimited)
	f(100*ms, 1, nil)
	f(400*ms, 4, ratelimit.ErrLimited)
	f(400*ms, 3, nil)
	f(time.Hour, 5, nil) // no more than the burst, however long it was
	f(time.Hour, 1, ratelimit.ErrLimited)
}

func TestLeaky(t *testing.T) {
	l := leaky(t, 10, 5)
	f := func(now time.Duration, cost int, wait time.Duration, want error) {
		t.Helper()
		got, err := l.Admit(now, cost)
		if !errors.Is(err, want) || (got-wait).Abs() > time.Microsecond {
			t.Errorf("Admit(%v, %d) = %v, %v; want %v, %v", now, cost, got, err, wait, want)
		}
	}
	f(0, 6, 0, ratelimit.ErrCost)
	f(0, 0, 0, ratelimit.ErrCost)
	f(0, 1, 0, nil)
	f(0, 3, 100*ms, nil)
	f(0, 1, 400*ms, nil)
	f(0, 1, 0, ratelimit.ErrLimited)
	f(50*ms, 1, 0, ratelimit.ErrLimited)
	f(100*ms, 1, 400*ms, nil)
	f(time.Hour, 2, 0, nil)
	f(time.Hour, 1, 200*ms, nil)
}

// TestTokenLaw: over any stretch, at most Burst + Rate * t.
func TestTokenLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate, burst = 100., 20
		l, err := ratelimit.NewToken(ratelimit.Config{Rate: rate, Bucket: burst})
		if err != nil {
			t.Fatal(err)
		}
		type ev struct {
			at   time.Duration
			cost int
		}
		var evs []ev
		now := time.Duration(0)
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			now += time.Duration(rapid.IntRange(0, 100).Draw(t, "dt")) * ms
			c := rapid.IntRange(1, burst).Draw(t, "cost")
			if l.Admit(now, c) == nil {
				evs = append(evs, ev{now, c})
			}
		}
		for i := range evs {
			sum := 0
			for _, e := range evs[i:] {
				sum += e.cost
				if most := burst + rate*(e.at-evs[i].at).Seconds(); float64(sum) > most+1e-6 {
					t.Fatalf("%d in %v; want at most %v", sum, e.at-evs[i].at, most)
				}
			}
		}
	})
}

// TestLeakyLaw: what is let out is in order and spaced by its cost.
func TestLeakyLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate = 100.
		l, err := ratelimit.NewLeaky(ratelimit.Config{Rate: rate, Bucket: 20})
		if err != nil {
			t.Fatal(err)
		}
		now, free := time.Duration(0), time.Duration(0) // free: when the bucket has run out
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			now += time.Duration(rapid.IntRange(0, 100).Draw(t, "dt")) * ms
			c := rapid.IntRange(1, 20).Draw(t, "cost")
			wait, err := l.Admit(now, c)
			if err != nil {
				if level := l.Level(now); level+float64(c) <= 20-1e-6 {
					t.Fatalf("refused %d at level %v", c, level)
				}
				continue
			}
			if out := now + wait; (out - max(now, free)).Abs() > time.Microsecond {
				t.Fatalf("out at %v; want %v", out, max(now, free))
			}
			free = max(now, free) + time.Duration(float64(c)/rate*1e9)
		}
	})
}

// TestClock: a clock that goes back neither gives tokens nor stops them.
func TestClock(t *testing.T) {
	l := token(t, 10, 10)
	for i := range 10 { // two goroutines' times, out of order
		if err := l.Admit(100*sec-time.Duration(i%2)*500*ms, 1); err != nil {
			t.Fatalf("call %d of ten tokens: %v", i, err)
		}
	}
	if n := l.Tokens(100 * sec); n > 1e-9 {
		t.Errorf("times out of order gave %v tokens", n)
	}
	if n := l.Tokens(-time.Hour); n > 1e-9 {
		t.Errorf("going back gave %v tokens", n)
	}
	if n := l.Tokens(-time.Hour + 500*ms); math.Abs(n-5) > 1e-6 {
		t.Errorf("half a second after going back: %v tokens; want 5", n)
	}
	q := leaky(t, 10, 10)
	if w, err := q.Admit(sec, 1); err != nil || w != 0 {
		t.Fatal(w, err)
	}
	if w, err := q.Admit(500*ms, 1); err != nil || (w-600*ms).Abs() > time.Microsecond {
		t.Errorf("half a second behind: wait %v, %v; want 600ms, until the same instant", w, err)
	}
}

func TestRace(t *testing.T) {
	l := token(t, 1, 1000)
	q := leaky(t, 1, 1000)
	var wg sync.WaitGroup
	var tokens, places atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 400 {
				if l.Admit(0, 1) == nil {
					tokens.Add(1)
				}
				if _, err := q.Admit(0, 1); err == nil {
					places.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if tokens.Load() != 1000 || places.Load() != 1000 {
		t.Errorf("admitted %d and %d; want 1000", tokens.Load(), places.Load())
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		l := token(t, 10, 5)
		f := func(cost int, timeout, takes time.Duration, want error) {
			t.Helper()
			began := clock()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if err := l.Wait(ctx, clock, cost); !errors.Is(err, want) {
				t.Errorf("Wait(%d) = %v; want %v", cost, err, want)
			}
			if took := clock() - began; took != takes {
				t.Errorf("Wait(%d) took %v; want %v", cost, took, takes)
			}
		}
		f(6, sec, 0, ratelimit.ErrCost)
		f(5, sec, 0, nil)
		f(5, sec, 500*ms, nil)
		f(5, 400*ms, 0, ratelimit.ErrLimited) // would end first
		f(5, sec, 500*ms, nil)                // and took nothing

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*ms, cancel)
		if err := l.Wait(ctx, clock, 5); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled Wait = %v", err)
		}
		f(5, sec, 400*ms, nil) // given back: 100 ms of 500 had passed

		q := leaky(t, 10, 5)
		began := clock()
		for range 3 {
			if err := q.Wait(t.Context(), clock, 1); err != nil {
				t.Fatal(err)
			}
		}
		if took := clock() - began; (took - 200*ms).Abs() > time.Microsecond {
			t.Errorf("three leave in %v; want 200ms", took)
		}
		if err := q.Wait(t.Context(), clock, 9); !errors.Is(err, ratelimit.ErrCost) {
			t.Error(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if err := q.Wait(ctx, clock, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait with a dead context = %v", err)
		}
	})
}

func TestRefused(t *testing.T) {
	for _, c := range []ratelimit.Config{{}, {Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: 1, Bucket: -1}} {
		if _, err := ratelimit.NewToken(c); !errors.Is(err, ratelimit.ErrConfig) {
			t.Errorf("NewToken(%+v) = %v; want ErrConfig", c, err)
		}
		if _, err := ratelimit.NewLeaky(c); !errors.Is(err, ratelimit.ErrConfig) {
			t.Errorf("NewLeaky(%+v) = %v; want ErrConfig", c, err)
		}
	}
	if err := token(t, .5, 0).Admit(0, 1); err != nil {
		t.Errorf("a rate under one a second has a bucket of 1: %v", err)
	}
}

func Example() {
	l, err := ratelimit.NewToken(ratelimit.Config{Rate: 100, Bucket: 10})
	if err != nil {
		panic(err)
	}
	now := time.Duration(0)
	fmt.Println(l.Admit(now, 8), l.Admit(now, 3), l.Admit(now+10*time.Millisecond, 3))

	q, err := ratelimit.NewLeaky(ratelimit.Config{Rate: 100, Bucket: 10})
	if err != nil {
		panic(err)
	}
	for range 3 {
		wait, err := q.Admit(now, 2)
		fmt.Println(wait, err)
	}
	// Output:
	// <nil> ratelimit: limited <nil>
	// 0s <nil>
	// 20ms <nil>
	// 40ms <nil>
}

func BenchmarkRateLimit(b *testing.B) {
	b.Run("token", func(b *testing.B) {
		b.ReportAllocs()
		l, now := token(b, 1e9, 1e9), time.Duration(0)
		for b.Loop() {
			now += 10
			_ = l.Admit(now, 1)
		}
	})
	b.Run("leaky", func(b *testing.B) {
		b.ReportAllocs()
		l, now := leaky(b, 1e9, 1e9), time.Duration(0)
		for b.Loop() {
			now += 10
			_, _ = l.Admit(now, 1)
		}
	})
}
