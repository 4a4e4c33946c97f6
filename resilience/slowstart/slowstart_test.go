package slowstart_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience/slowstart"
)

const sec = time.Second

func must(t testing.TB, c slowstart.Config) *slowstart.Policy {
	t.Helper()
	p, err := slowstart.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFactor(t *testing.T) {
	f := func(c slowstart.Config, at time.Duration, want float64) {
		t.Helper()
		if got := must(t, c).Factor(at); math.Abs(got-want) > 1e-12 {
			t.Errorf("%+v at %v: %v; want %v", c, at, got, want)
		}
	}
	f(slowstart.Config{}, -sec, .1)
	f(slowstart.Config{}, 0, .1)
	f(slowstart.Config{}, 6*sec, .1)
	f(slowstart.Config{}, 30*sec, .5)
	f(slowstart.Config{}, 60*sec, 1)
	f(slowstart.Config{}, time.Hour, 1)
	f(slowstart.Config{Min: .01}, 0, .01)
	f(slowstart.Config{Aggression: 2}, 15*sec, .5)
	f(slowstart.Config{Aggression: .5}, 30*sec, .25)
	f(slowstart.Config{Min: 1}, 0, 1)
	f(slowstart.Config{Window: 1}, 1, 1)
}

func TestWeight(t *testing.T) {
	f := func(factor time.Duration, weight, scale, want uint32) {
		t.Helper()
		r := must(t, slowstart.Config{Min: .001}).Start(0)
		for now := time.Duration(0); now <= factor; now += sec {
			r.Tick(now)
		}
		if got := r.Weight(weight, scale); got != want {
			t.Errorf("Weight(%d, %d) at %v = %d; want %d", weight, scale, r.Factor(), got, want)
		}
	}
	f(30*sec, 4, 100, 200)
	f(30*sec, 0, 100, 0)
	f(30*sec, 4, 0, 0)
	f(0, 1, 100, 1) // 0.1 rounds to 0, but no weight is lost
	f(60*sec, 3, 100, 300)
	f(60*sec, math.MaxUint32, 2, math.MaxUint32)
}

func TestClockJumps(t *testing.T) {
	r := must(t, slowstart.Config{}).Start(100 * sec)
	step := func(now time.Duration, want float64) {
		t.Helper()
		if got := r.Tick(now); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v; want %v", now, got, want)
		}
	}
	now := 100 * sec
	for range 30 {
		now += sec
		r.Tick(now)
	}
	step(now, .5)
	step(now+time.Hour, 31./60)       // forward: one step
	step(now, 31./60)                 // back: none
	step(now+sec, 32./60)             // and on
	step(now+sec/2, 32./60)           // a goroutine a little behind
	step(now+sec, 32./60)             // whose time is not counted twice
	step(math.MinInt64/2, 32./60)     // back as far as it goes
	step(math.MinInt64/2+sec, 33./60) // and on
	r.Finish()
	step(0, 1)
	r.Restart(0)
	step(0, .1)
}

// TestOthersAreNotTouched: a node that flaps restarts its own ramp only.
func TestOthersAreNotTouched(t *testing.T) {
	p := must(t, slowstart.Config{})
	a, b, old := p.Start(0), p.Start(0), p.Full()
	for now := time.Duration(0); now <= 40*sec; now += sec {
		if now == 20*sec || now == 30*sec {
			b.Restart(now)
		}
		a.Tick(now)
		b.Tick(now)
	}
	if a.Factor() != p.Factor(40*sec) || b.Factor() != p.Factor(10*sec) || old.Factor() != 1 || !old.Done() || a.Done() {
		t.Errorf("a %v, b %v, old %v", a.Factor(), b.Factor(), old.Factor())
	}
}

func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := slowstart.Config{
			Window:     time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "window")),
			Min:        rapid.Float64Range(1e-6, 1).Draw(t, "min"),
			Aggression: rapid.Float64Range(1e-3, 1e3).Draw(t, "aggression"),
		}
		p, err := slowstart.New(c)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(rapid.Int64().Draw(t, "start"))
		r := p.Start(now)
		before := r.Factor()
		for range 50 {
			if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
				now = time.Duration(rapid.Int64().Draw(t, "now"))
			} else {
				now += time.Duration(rapid.Int64Range(0, int64(c.Window)).Draw(t, "dt"))
			}
			f := r.Tick(now)
			if !(f >= before && f >= c.Min && f <= 1) || r.Done() && f != 1 {
				t.Fatalf("factor %v after %v, min %v", f, before, c.Min)
			}
			before = f
		}
	})
}

func TestRace(t *testing.T) {
	// MaxStep is long, so that a goroutine that is not scheduled for a while is
	// late and not a clock that went back.
	r := must(t, slowstart.Config{MaxStep: 60 * sec}).Start(0)
	var clock atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				now := time.Duration(clock.Add(int64(time.Millisecond)))
				if now > 30*sec {
					return
				}
				r.Tick(now)
			}
		})
	}
	wg.Wait()
	if f := r.Factor(); f > .5 || f < .45 {
		t.Errorf("factor %v after 30 s of eight goroutines; want .5: time was lost or counted twice", f)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []slowstart.Config{
		{Window: -1}, {MaxStep: -1}, {Min: -1}, {Min: 2}, {Min: math.NaN()}, {Aggression: -1}, {Aggression: math.NaN()}, {Aggression: math.Inf(1)},
	} {
		if _, err := slowstart.New(c); !errors.Is(err, slowstart.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
}

func Example() {
	p, err := slowstart.New(slowstart.Config{Window: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	r := p.Start(0)
	for now := time.Duration(0); now <= 10*time.Second; now += 100 * time.Millisecond {
		if f := r.Tick(now); now%(2*time.Second) == 0 {
			fmt.Printf("%.2f ", f)
		}
	}
	// Output: 0.10 0.20 0.40 0.60 0.80 1.00
}

func BenchmarkRamp(b *testing.B) {
	r := must(b, slowstart.Config{Window: time.Hour, Aggression: 2}).Start(0)
	b.Run("Factor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Factor()
		}
	})
	b.Run("Tick", func(b *testing.B) {
		b.ReportAllocs()
		now := time.Duration(0)
		for b.Loop() {
			now++
			r.Tick(now)
		}
	})
}
