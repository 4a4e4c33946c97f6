package throttle_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/throttle"
)

func must(t testing.TB, c throttle.Config) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func TestDrop(t *testing.T) {
	f := func(c throttle.Config, requests, accepts int, want float64) {
		t.Helper()
		c.Rand = func() float64 { return 1 } // never drops
		th := must(t, c)
		for i := range requests {
			tk, err := th.Admit(0)
			if err != nil {
				t.Fatal(err)
			}
			if i < accepts {
				tk.Done(0, resilience.Success)
			} else {
				tk.Done(0, resilience.Overload)
			}
		}
		if got := th.Drop(0); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d accepted of %d: p %v; want %v", accepts, requests, got, want)
		}
	}
	plain := throttle.Config{MinRequests: -1}
	f(plain, 0, 0, 0)
	f(plain, 100, 100, 0)
	f(plain, 100, 50, 0)
	f(plain, 100, 40, 20./101)
	f(plain, 100, 0, 100./101)
	f(throttle.Config{}, 5, 0, 0)
	f(throttle.Config{}, 100, 0, 95./101)
	f(throttle.Config{MinRequests: -1, K: 1.5}, 100, 60, 10./101)
	f(throttle.Config{MinRequests: -1, K: 1}, 100, 99, 1./101)
}

// TestTendsToK has a side that accepts 50 of 500 calls a second: about K * 50
// are sent to it, and all again soon after it is well.
func TestTendsToK(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	th := must(t, throttle.Config{Rand: rng.Float64})
	second := func(sec, capacity int) (sent int) {
		for i := range 500 {
			now := time.Duration(sec)*time.Second + time.Duration(i)*2*time.Millisecond
			tk, err := th.Admit(now)
			if err != nil {
				continue
			}
			o := resilience.Overload
			if sent < capacity {
				o = resilience.Success
			}
			sent++
			tk.Done(now, o)
		}
		return sent
	}
	for sec := range 30 {
		second(sec, 50)
	}
	sum := 0
	for sec := 30; sec < 40; sec++ {
		sum += second(sec, 50)
	}
	if sum < 900 || sum > 1150 {
		t.Errorf("sent %d in 10 s to a side that takes 500; want about 1,000", sum)
	}
	last := 0
	for sec := 40; sec < 60; sec++ {
		last = second(sec, 500)
	}
	if last != 500 {
		t.Errorf("sent %d of 500 after recovery", last)
	}
}

func TestForce(t *testing.T) {
	th := must(t, throttle.Config{MinRequests: -1, Rand: func() float64 { return 0 }})
	passed := 0
	for i := range 1001 { // 100 calls a second, all refused
		now := time.Duration(i) * 10 * time.Millisecond
		if tk, err := th.Admit(now); err == nil {
			passed++
			tk.Done(now, resilience.Timeout)
		} else if !errors.Is(err, throttle.ErrDropped) {
			t.Fatal(err)
		}
	}
	if passed != 11 {
		t.Errorf("%d passed in 10 s; want the first and one a second", passed)
	}
}

func TestDoneOnce(t *testing.T) {
	th := must(t, throttle.Config{MinRequests: -1, Rand: func() float64 { return 1 }})
	tk, _ := th.Admit(0)
	for range 10 {
		tk.Done(0, resilience.Success)
	}
	for range 3 {
		bad, _ := th.Admit(0)
		bad.Done(0, resilience.Failure)
	}
	if got, want := th.Drop(0), 2./5; got != want {
		t.Errorf("p %v; want %v: a second Done counted", got, want)
	}
	for range 5 {
		ig, _ := th.Admit(0)
		ig.Done(0, resilience.Ignored)
	}
	if got, want := th.Drop(0), 2./5; got != want {
		t.Errorf("p %v; want %v: an ignored call counted", got, want)
	}
	throttle.Ticket{}.Done(0, resilience.Success)
}

func TestRefused(t *testing.T) {
	for _, c := range []throttle.Config{{K: .5}, {K: math.NaN()}, {K: math.Inf(1)}, {Window: -1}} {
		if _, err := throttle.New(c); !errors.Is(err, throttle.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
}

// TestLaw: p is a probability under any outcomes and any clock.
func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		th, err := throttle.New(throttle.Config{K: rapid.Float64Range(1, 10).Draw(t, "k"), Rand: func() float64 { return .5 }})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			now := time.Duration(rapid.Int64Range(-1e11, 1e11).Draw(t, "now"))
			tk, err := th.Admit(now)
			if err == nil {
				tk.Done(now, resilience.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")))
			}
			if p := th.Drop(now); !(p >= 0 && p < 1) {
				t.Fatalf("p %v", p)
			}
		}
	})
}

func Example() {
	th, err := throttle.New(throttle.Config{Rand: func() float64 { return 0.5 }})
	if err != nil {
		panic(err)
	}
	now := time.Duration(0)
	dropped := 0
	for range 100 { // the other side refuses everything
		t, err := th.Admit(now)
		if err != nil {
			dropped++
			continue
		}
		t.Done(now, resilience.Overload)
	}
	fmt.Println(dropped, "dropped")
	// Output: 88 dropped
}

func BenchmarkThrottle(b *testing.B) {
	b.ReportAllocs()
	th := must(b, throttle.Config{})
	for b.Loop() {
		t, _ := th.Admit(time.Second)
		t.Done(time.Second, resilience.Success)
	}
}
