package drain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience/drain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec = time.Second

func admit(t testing.TB, g *drain.Gate) drain.Ticket {
	t.Helper()
	tk, err := g.Admit()
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestGate(t *testing.T) {
	var g drain.Gate
	a, b := admit(t, &g), admit(t, &g)
	if g.Idle() != nil || g.Cut() != nil || g.Resume() {
		t.Error("an open gate has a drain")
	}
	g.Force()
	if !g.Drain(sec, 10*sec) || g.Drain(sec, time.Hour) {
		t.Error("want one drain at a time")
	}
	if _, err := g.Admit(); !errors.Is(err, drain.ErrDraining) {
		t.Errorf("Admit while draining: %v", err)
	}
	if s := g.Status(4 * sec); s != (drain.Status{Draining: true, InFlight: 2, Left: 7 * sec}) {
		t.Errorf("%+v", s)
	}
	if s := g.Status(-time.Hour); s.Left != 10*sec {
		t.Errorf("a clock that went back: %v left", s.Left)
	}
	if !a.Done() || a.Done() {
		t.Error("want the first Done to end it")
	}
	if closed(g.Idle()) || g.Status(0).InFlight != 1 {
		t.Errorf("a second Done counted: %+v", g.Status(0))
	}
	b.Done()
	if !closed(g.Idle()) || g.Status(12*sec) != (drain.Status{Draining: true}) {
		t.Errorf("not idle: %+v", g.Status(12*sec))
	}
	if !g.Resume() || g.Status(0) != (drain.Status{}) {
		t.Errorf("resumed: %+v", g.Status(0))
	}
	admit(t, &g).Done()
	drain.Ticket{}.Done()
	g.Drain(0, 0)
	if !closed(g.Idle()) || g.Status(0).Left != drain.DefaultGrace {
		t.Error("an empty gate is drained at once")
	}
}

func TestWait(t *testing.T) {
	f := func(name string, streams []time.Duration, grace, timeout, takes time.Duration, want error, left string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				clock := func() time.Duration { return time.Since(start) }
				var g drain.Gate
				var cut atomic.Int64
				var wg sync.WaitGroup
				for _, d := range streams {
					tk := admit(t, &g)
					wg.Go(func() {
						defer tk.Done()
						time.Sleep(time.Nanosecond) // the drain has begun
						select {
						case <-time.After(d):
						case <-g.Cut():
							cut.Add(1)
						}
					})
				}
				g.Drain(clock(), grace)
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				err := g.Wait(ctx, clock)
				if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), left) {
					t.Errorf("Wait = %v; want %v with %q", err, want, left)
				}
				if took := clock(); took > takes+2 || took < takes-2 {
					t.Errorf("took %v; want %v", took, takes)
				}
				g.Force()
				wg.Wait()
				if g.Status(clock()).InFlight != 0 || !closed(g.Idle()) {
					t.Errorf("at the end: %+v", g.Status(clock()))
				}
			})
		})
	}
	f("nothing", nil, 10*sec, time.Hour, 0, nil, "")
	f("all finish", []time.Duration{sec, 5 * sec, 2 * sec}, 10*sec, time.Hour, 5*sec, nil, "")
	f("a long stream is cut", []time.Duration{sec, time.Hour}, 10*sec, time.Hour, 10*sec, drain.ErrGrace, "1 in flight")
	f("no grace", []time.Duration{sec, time.Hour}, -1, time.Hour, 0, drain.ErrGrace, "2 in flight")
	f("context", []time.Duration{time.Hour}, 10*sec, sec, sec, context.DeadlineExceeded, "1 in flight")
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		var g drain.Gate
		if err := g.Wait(t.Context(), clock); !errors.Is(err, drain.ErrOpen) {
			t.Errorf("Wait without a drain: %v", err)
		}
		tk := admit(t, &g)
		wait := func(want error, end func()) {
			t.Helper()
			g.Drain(clock(), time.Hour)
			done := make(chan error)
			go func() { done <- g.Wait(t.Context(), clock) }()
			time.Sleep(sec)
			end()
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("Wait = %v; want %v", err, want)
			}
		}
		wait(drain.ErrOpen, func() { g.Resume() })
		wait(drain.ErrGrace, g.Force)
		g.Resume()
		wait(nil, func() { tk.Done() })
	})
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g drain.Gate
		open := map[drain.Ticket]bool{}
		var all []drain.Ticket
		draining := false
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "op") {
			case 0, 1, 2:
				tk, err := g.Admit()
				if draining != errors.Is(err, drain.ErrDraining) {
					t.Fatalf("draining %v, Admit %v", draining, err)
				}
				if err == nil {
					open[tk] = true
					all = append(all, tk)
				}
			case 3, 4:
				if len(all) > 0 {
					tk := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
					tk.Done()
					delete(open, tk)
				}
			case 5:
				g.Drain(0, 0)
				draining = true
			case 6:
				g.Resume()
				draining = false
			}
			if s := g.Status(0); s.InFlight != len(open) || s.Draining != draining {
				t.Fatalf("%+v; want %d, %v", s, len(open), draining)
			}
			if draining && closed(g.Idle()) != (len(open) == 0) {
				t.Fatalf("idle %v with %d in flight", closed(g.Idle()), len(open))
			}
		}
	})
}

// TestRace drains and resumes under traffic: nothing is in flight when idle.
func TestRace(t *testing.T) {
	var g drain.Gate
	var in atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !closed(stop) {
				tk, err := g.Admit()
				if err != nil {
					continue
				}
				in.Add(1)
				func() {
					defer func() { _ = recover() }()
					defer tk.Done()
					in.Add(-1)
					panic("in the request")
				}()
				tk.Done()
			}
		})
	}
	for range 200 {
		g.Drain(0, 0)
		<-g.Idle()
		if n, s := in.Load(), g.Status(0); n != 0 || s.InFlight != 0 {
			t.Errorf("idle with %d, %+v", n, s)
		}
		g.Resume()
	}
	close(stop)
	wg.Wait()
}

func Example() {
	var g drain.Gate
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	stream, _ := g.Admit()
	g.Drain(clock(), time.Minute)
	_, err := g.Admit()
	fmt.Println(err)
	go stream.Done() // it finishes by itself
	fmt.Println(g.Wait(context.Background(), clock))
	// Output:
	// drain: node is draining
	// <nil>
}

func BenchmarkGate(b *testing.B) {
	b.ReportAllocs()
	var g drain.Gate
	for b.Loop() {
		t, _ := g.Admit()
		t.Done()
	}
}

// What still runs, and how long it has.
func ExampleStatus() {
	var g drain.Gate
	stream, _ := g.Admit()
	g.Drain(0, time.Minute)
	s := g.Status(20 * time.Second)
	fmt.Println(s.Draining, s.InFlight, s.Left)
	stream.Done()
	fmt.Println(g.Status(20 * time.Second).InFlight)
	// Output:
	// true 1 40s
	// 0
}
