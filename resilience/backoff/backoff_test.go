package backoff_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience/backoff"
)

const ms = time.Millisecond

func fixed(u float64) func() float64 { return func() float64 { return u } }

func TestFormulas(t *testing.T) {
	f := func(c backoff.Config, want ...time.Duration) {
		t.Helper()
		p, err := backoff.New(c)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		prev := time.Duration(0)
		for k := range want {
			prev = p.Next(k, prev)
			got = append(got, prev)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.Jitter, d)
		}
	}
	f(backoff.Config{Jitter: backoff.None}, 100*ms, 200*ms, 400*ms, 800*ms, 1600*ms, 3200*ms, 6400*ms, 10*time.Second, 10*time.Second)
	f(backoff.Config{Base: 10 * ms, Max: 35 * ms, Factor: 1.5, Jitter: backoff.None}, 10*ms, 15*ms, 22500*time.Microsecond, 33750*time.Microsecond, 35*ms)
	f(backoff.Config{Jitter: backoff.Full, Rand: fixed(.25)}, 25*ms, 50*ms, 100*ms)
	f(backoff.Config{Jitter: backoff.Equal, Rand: fixed(.25)}, 62500*time.Microsecond, 125*ms, 250*ms)
	f(backoff.Config{Jitter: backoff.Decorrelated, Rand: fixed(.5)}, 100*ms, 200*ms, 350*ms, 575*ms)
	f(backoff.Config{Jitter: backoff.Decorrelated, Max: 200 * ms, Rand: fixed(.5)}, 100*ms, 200*ms, 200*ms, 200*ms)
	f(backoff.Config{Max: 50 * ms, Jitter: backoff.None}, 50*ms, 50*ms) // a small max pulls the default base down
	f(backoff.Config{Base: time.Minute, Jitter: backoff.None}, time.Minute, time.Minute)
	f(backoff.Config{Rand: fixed(math.NaN())}, 0, 0)
	f(backoff.Config{Base: 1 << 62, Max: math.MaxInt64, Jitter: backoff.None}, 1<<62, math.MaxInt64, math.MaxInt64)
}

func TestZeroPolicy(t *testing.T) {
	if d := (backoff.Policy{}).Next(3, time.Hour); d != 0 {
		t.Errorf("zero policy waits %v", d)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []backoff.Config{
		{Base: -1}, {Base: 2, Max: 1}, {Max: -1}, {Factor: .5}, {Factor: math.NaN()}, {Factor: math.Inf(1)}, {Jitter: 9},
	} {
		if _, err := backoff.New(c); !errors.Is(err, backoff.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
}

func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := backoff.Config{
			Base:   time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "base")),
			Factor: rapid.Float64Range(1, 1e300).Draw(t, "factor"),
			Jitter: backoff.Jitter(rapid.IntRange(0, 3).Draw(t, "jitter")),
			Rand:   fixed(rapid.Float64Range(-.1, 1.1).Draw(t, "u")),
		}
		c.Max = time.Duration(rapid.Int64Range(int64(max(1, c.Base)), math.MaxInt64).Draw(t, "max"))
		p, err := backoff.New(c)
		if err != nil {
			t.Fatal(err)
		}
		prev := time.Duration(rapid.Int64().Draw(t, "previous"))
		if d := p.Next(rapid.Int().Draw(t, "k"), prev); d < 0 || d > c.Max {
			t.Fatalf("wait %v outside [0, %v]", d, c.Max)
		}
	})
}

// TestSpread draws each jitter many times: the range is used up to its ends.
func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f := func(j backoff.Jitter, lo, hi, mean time.Duration) {
		t.Helper()
		p, _ := backoff.New(backoff.Config{Base: 100 * ms, Jitter: j, Rand: rng.Float64})
		least, most, sum := time.Duration(math.MaxInt64), time.Duration(0), time.Duration(0)
		const n = 20000
		for range n {
			d := p.Next(0, 100*ms)
			least, most, sum = min(least, d), max(most, d), sum+d
		}
		near := func(a, b time.Duration) bool { return (a - b).Abs() <= 2*ms }
		if !near(least, lo) || !near(most, hi) || !near(sum/n, mean) {
			t.Errorf("jitter %d: [%v, %v], mean %v; want [%v, %v], %v", j, least, most, sum/n, lo, hi, mean)
		}
	}
	f(backoff.Full, 0, 100*ms, 50*ms)
	f(backoff.Equal, 50*ms, 100*ms, 75*ms)
	f(backoff.Decorrelated, 100*ms, 300*ms, 200*ms)
}

func ExamplePolicy_Next() {
	p, err := backoff.New(backoff.Config{Base: 50 * time.Millisecond, Max: time.Second, Jitter: backoff.None})
	if err != nil {
		panic(err)
	}
	wait := time.Duration(0)
	for k := range 6 {
		wait = p.Next(k, wait)
		fmt.Print(wait, " ")
	}
	// Output: 50ms 100ms 200ms 400ms 800ms 1s
}

func BenchmarkNext(b *testing.B) {
	b.ReportAllocs()
	p, _ := backoff.New(backoff.Config{})
	for b.Loop() {
		p.Next(5, 0)
	}
}
