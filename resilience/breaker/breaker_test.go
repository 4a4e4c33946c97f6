package breaker_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/breaker"
)

const sec = time.Second

func must(t testing.TB, c breaker.Config) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// admit is Admit that must succeed.
func admit(t testing.TB, b *breaker.Breaker, now time.Duration) breaker.Ticket {
	t.Helper()
	tk, err := b.Admit(now)
	if err != nil {
		t.Fatalf("at %v: %v", now, err)
	}
	return tk
}

func wantState(t testing.TB, b *breaker.Breaker, want breaker.State) {
	t.Helper()
	if s, _ := b.State(); s != want {
		t.Fatalf("state %v; want %v", s, want)
	}
}

func do(t testing.TB, b *breaker.Breaker, now time.Duration, n int, o resilience.Outcome) {
	t.Helper()
	for range n {
		admit(t, b, now).Done(now, o)
	}
}

func TestTrip(t *testing.T) {
	const s, f, x, z, i = resilience.Success, resilience.Failure, resilience.Timeout, resilience.Overload, resilience.Ignored
	f4 := func(c breaker.Config, want breaker.State, outcomes ...resilience.Outcome) {
		t.Helper()
		b := must(t, c)
		for n, o := range outcomes {
			if st, _ := b.State(); st != breaker.Closed {
				t.Fatalf("open before outcome %d", n)
			}
			do(t, b, 0, 1, o)
		}
		wantState(t, b, want)
	}
	rate := breaker.Config{Consecutive: -1, MinRequests: 4}
	f4(breaker.Config{}, breaker.Closed, f, x, z, f)
	f4(breaker.Config{}, breaker.Open, f, x, z, f, f)
	f4(breaker.Config{}, breaker.Closed, f, f, f, f, s, f, f)
	f4(breaker.Config{}, breaker.Open, f, f, f, f, i, f)
	f4(breaker.Config{}, breaker.Closed, i, i, i, i, i, i)
	f4(rate, breaker.Closed, f, f, f)
	f4(rate, breaker.Open, f, s, s, f)
	f4(rate, breaker.Closed, s, s, s, f, f)
	f4(rate, breaker.Open, s, s, s, f, f, f)
	f4(breaker.Config{FailureRate: -1}, breaker.Closed, f, f, f, f, s, f, f, f, f, s, f, f, f, f)
	f4(breaker.Config{Consecutive: 1}, breaker.Open, f)
	f4(breaker.Config{Consecutive: -1, MinRequests: 2, FailureRate: 1}, breaker.Closed, f, s, f, f, f)
}

func TestRateForgets(t *testing.T) {
	b := must(t, breaker.Config{Consecutive: -1, MinRequests: 4})
	do(t, b, 0, 3, resilience.Failure)
	do(t, b, 10*sec, 1, resilience.Failure)
	wantState(t, b, breaker.Closed)
	do(t, b, 11*sec, 3, resilience.Failure)
	wantState(t, b, breaker.Open)
}

func TestCycle(t *testing.T) {
	var got []breaker.Change
	b := must(t, breaker.Config{
		Consecutive: 2, OpenFor: sec, CloseAfter: 2,
		OnChange: func(c breaker.Change) { got = append(got, c) },
	})
	do(t, b, 0, 2, resilience.Failure)
	f := func(now time.Duration, want error) {
		t.Helper()
		if _, err := b.Admit(now); !errors.Is(err, want) || !errors.Is(err, breaker.ErrOpen) {
			t.Fatalf("at %v: %v; want %v", now, err, want)
		}
	}
	f(0, breaker.ErrOpen)
	f(sec-1, breaker.ErrOpen)
	p := admit(t, b, sec)
	f(sec, breaker.ErrProbing)
	p.Done(sec, resilience.Failure)
	f(sec, breaker.ErrOpen)
	do(t, b, 2*sec, 1, resilience.Success)
	wantState(t, b, breaker.HalfOpen)
	do(t, b, 2*sec, 1, resilience.Success)
	wantState(t, b, breaker.Closed)
	b.Trip(3 * sec)
	f(4*sec-1, breaker.ErrOpen)
	b.Reset(4 * sec)
	do(t, b, 4*sec, 10, resilience.Success)
	want := []breaker.Change{
		{From: breaker.Closed, To: breaker.Open, Generation: 1},
		{From: breaker.Open, To: breaker.HalfOpen, Generation: 2, At: sec},
		{From: breaker.HalfOpen, To: breaker.Open, Generation: 3, At: sec},
		{From: breaker.Open, To: breaker.HalfOpen, Generation: 4, At: 2 * sec},
		{From: breaker.HalfOpen, To: breaker.Closed, Generation: 5, At: 2 * sec},
		{From: breaker.Closed, To: breaker.Open, Generation: 6, At: 3 * sec},
		{From: breaker.Open, To: breaker.Closed, Generation: 7, At: 4 * sec},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
}

func TestJitter(t *testing.T) {
	f := func(jitter, u float64, want time.Duration) {
		t.Helper()
		b := must(t, breaker.Config{Jitter: jitter, Rand: func() float64 { return u }})
		b.Trip(0)
		if b.Ready(want-1) || !b.Ready(want) {
			t.Errorf("jitter %v, chance %v: not ready first at %v", jitter, u, want)
		}
	}
	f(0, .9, 5*sec)
	f(.2, 0, 5*sec)
	f(.2, .5, 4500*time.Millisecond)
}

func TestReady(t *testing.T) {
	b := must(t, breaker.Config{})
	f := func(now time.Duration, want bool) {
		t.Helper()
		if got := b.Ready(now); got != want {
			t.Errorf("Ready(%v) = %v; want %v", now, got, want)
		}
	}
	f(0, true)
	b.Trip(0)
	f(5*sec-1, false)
	f(5*sec, true)
	wantState(t, b, breaker.Open) // looking changes nothing
	p := admit(t, b, 5*sec)
	f(5*sec, false)
	f(10*sec, false) // the probe is lost then: open again
	f(15*sec, true)
	p.Done(6*sec, resilience.Ignored)
	f(6*sec, true)
}

// TestBackwards lets the clock go back a year in each state: nothing waits a year.
func TestBackwards(t *testing.T) {
	const year = 365 * 24 * time.Hour
	b := must(t, breaker.Config{})
	b.Trip(year)
	admit(t, b, 0) // half-open at once
	admit(t, b, -6*sec).Done(-6*sec, resilience.Success)
}

func TestDo(t *testing.T) {
	b := must(t, breaker.Config{Consecutive: 1})
	clock := func() time.Duration { return 0 }
	if err := b.Do(clock, func() resilience.Outcome { return resilience.Success }); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v; want the panic to go on", r)
			}
		}()
		_ = b.Do(clock, func() resilience.Outcome { panic("boom") })
	}()
	wantState(t, b, breaker.Open)
	if err := b.Do(clock, func() resilience.Outcome { t.Error("ran while open"); return resilience.Success }); !errors.Is(err, breaker.ErrOpen) {
		t.Errorf("Do while open: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []breaker.Config{
		{Window: -1}, {OpenFor: -1}, {ProbeTimeout: -1}, {MinRequests: -1}, {CloseAfter: -1}, {FailureRate: 1.5},
		{FailureRate: math.NaN()}, {Jitter: 1}, {Jitter: math.NaN()}, {Probes: 65}, {Probes: -1}, {FailureRate: -1, Consecutive: -1},
	} {
		if _, err := breaker.New(c); !errors.Is(err, breaker.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
}

func TestZeroTicket(t *testing.T) {
	breaker.Ticket{}.Done(0, resilience.Failure)
}

func Example() {
	b, err := breaker.New(breaker.Config{Consecutive: 3, OpenFor: time.Second})
	if err != nil {
		panic(err)
	}
	now := time.Duration(0)
	for range 3 {
		t, _ := b.Admit(now)
		t.Done(now, resilience.Failure)
	}
	_, err = b.Admit(now)
	fmt.Println(err)
	t, err := b.Admit(now + time.Second) // a probe
	t.Done(now+time.Second, resilience.Success)
	state, _ := b.State()
	fmt.Println(err, state)
	// Output:
	// breaker: open
	// <nil> closed
}

// Changes of state go to a log or a metric.
func ExampleChange() {
	b, err := breaker.New(breaker.Config{Consecutive: 1, OpenFor: time.Second, OnChange: func(c breaker.Change) {
		fmt.Println(c.At, c.From, "->", c.To)
	}})
	if err != nil {
		panic(err)
	}
	t, _ := b.Admit(0)
	t.Done(20*time.Millisecond, resilience.Timeout)
	t, _ = b.Admit(2 * time.Second)
	t.Done(2*time.Second, resilience.Success)
	// Output:
	// 20ms closed -> open
	// 2s open -> half-open
	// 2s half-open -> closed
}
