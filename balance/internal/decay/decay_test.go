package decay

import (
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const tau = 10 * time.Second

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFormulas(t *testing.T) {
	e := math.Exp(-0.1) // of a second
	var d Value
	d.Init(100)
	near(t, "first touch starts the clock", d.Touch(5*time.Second, tau), 100)
	near(t, "touch", d.Touch(6*time.Second, tau), 100*e)
	near(t, "read", d.Read(7*time.Second, tau), 100*e*e)
	near(t, "read changes nothing", d.Raw(), 100*e)
	near(t, "add", d.Add(7*time.Second, tau, 1), 100*e*e+1)
	d.Set(8*time.Second, 10)
	near(t, "mean", d.Mean(9*time.Second, tau, 20), 10*e+20*(1-e))
	near(t, "peak above", d.Peak(10*time.Second, tau, 50), 50)
	near(t, "peak below", d.Peak(11*time.Second, tau, 20), 50*e+20*(1-e))
	near(t, "peak at once", d.Peak(11*time.Second, tau, 0), 50*e+20*(1-e))
}

// TestOneFactorPerNanosecond: however updates interleave, time decays once.
func TestOneFactorPerNanosecond(t *testing.T) {
	var d Value
	d.Set(0, 1)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for k := range 2501 {
				d.Touch(time.Duration(k)*4*time.Millisecond+time.Duration(g), tau)
			}
		})
	}
	wg.Wait()
	// The clock may have gone back by what goroutines were apart, and each step back
	// is passed over once more; it never decays less than the time that passed.
	if got, most := d.Read(10*time.Second, tau), math.Exp(-1); got > most*(1+1e-9) || got <= 0 {
		t.Errorf("after 10 s: %v, want at most e^-1 = %v", got, most)
	}
}

// TestNeverNaN: a clock that jumps anywhere makes no value NaN, negative or
// infinite.
func TestNeverNaN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Value
		d.Init(rapid.Float64Range(0, 1e12).Draw(t, "start"))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now := time.Duration(rapid.Int64().Draw(t, "now"))
			tau := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "tau"))
			x := rapid.Float64Range(0, 1e12).Draw(t, "x")
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				d.Touch(now, tau)
			case 1:
				d.Add(now, tau, x)
			case 2:
				d.Mean(now, tau, x)
			case 3:
				d.Peak(now, tau, x)
			case 4:
				d.Read(now, tau)
			}
			if v := d.Raw(); !(v >= 0 && v < 1e15) {
				t.Fatalf("value %v", v)
			}
		}
	})
}

// TestBackwardsClock: a jump into the future and back does not freeze a value.
func TestBackwardsClock(t *testing.T) {
	var d Value
	d.Set(time.Hour, 100)
	near(t, "read in the past", d.Read(0, tau), 100)
	near(t, "read later", d.Read(10*time.Second, tau), 100*math.Exp(-1))
	d.Set(time.Hour, 100)
	near(t, "touch in the past", d.Touch(0, tau), 100)
	near(t, "touch later", d.Touch(10*time.Second, tau), 100*math.Exp(-1))
}

func TestElapsed(t *testing.T) {
	f := func(from, to, want time.Duration) {
		t.Helper()
		if got := Elapsed(from, to); got != want {
			t.Errorf("from %d to %d: %d, want %d", from, to, got, want)
		}
	}
	f(1, 3, 2)
	f(3, 1, 0)
	f(math.MinInt64, math.MaxInt64, math.MaxInt64)
	f(math.MaxInt64, math.MinInt64, 0)
}

// TestExp: the series meets math.Exp to the last bits.
func TestExp(t *testing.T) {
	for x := 0x1p-60; x < 1./1024; x *= 1.01 {
		if got, want := exp(x), math.Exp(-x); math.Abs(got-want) > 0x1p-52 {
			t.Fatalf("e^-%v: %v, want %v", x, got, want)
		}
	}
}

func BenchmarkFactor(b *testing.B) {
	for _, dt := range []time.Duration{time.Millisecond, time.Second} {
		b.Run(dt.String(), func(b *testing.B) {
			sum := 0.0
			for b.Loop() {
				sum += Factor(0, dt, tau)
			}
			if sum == 0 {
				b.Fatal("no sum")
			}
		})
	}
}

func BenchmarkTouch(b *testing.B) {
	var d Value
	d.Set(0, 1e6)
	now := time.Duration(0)
	for b.Loop() {
		now += 100
		d.Touch(now, tau)
	}
}
