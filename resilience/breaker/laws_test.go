package breaker_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/breaker"
)

// TestProbeEndsAnyhow is the field case "stays half-open for ever": whatever
// becomes of a probe, the next one is admitted within OpenFor + ProbeTimeout.
func TestProbeEndsAnyhow(t *testing.T) {
	const openFor, probeTimeout = sec, 2 * sec
	f := func(name string, end func(b *breaker.Breaker, p breaker.Ticket), after breaker.State) {
		t.Run(name, func(t *testing.T) {
			b := must(t, breaker.Config{OpenFor: openFor, ProbeTimeout: probeTimeout})
			b.Trip(0)
			end(b, admit(t, b, openFor))
			wantState(t, b, after)
			next := openFor
			for !b.Ready(next) {
				next += 10 * time.Millisecond
			}
			if wait := next - openFor; wait > openFor+probeTimeout {
				t.Errorf("next probe after %v; want at most %v", wait, openFor+probeTimeout)
			}
			admit(t, b, next).Done(next, resilience.Success)
			wantState(t, b, breaker.Closed)
		})
	}
	f("panic", func(_ *breaker.Breaker, p breaker.Ticket) {
		defer func() { _ = recover() }()
		defer p.Done(openFor, resilience.Failure)
		panic("in the probe")
	}, breaker.Open)
	f("cancelled", func(_ *breaker.Breaker, p breaker.Ticket) { p.Done(openFor, resilience.Ignored) }, breaker.HalfOpen)
	f("never reports", func(*breaker.Breaker, breaker.Ticket) {}, breaker.HalfOpen)
	f("transport error", func(_ *breaker.Breaker, p breaker.Ticket) { p.Done(openFor, resilience.Failure) }, breaker.Open)
	f("time-out", func(_ *breaker.Breaker, p breaker.Ticket) { p.Done(openFor, resilience.Timeout) }, breaker.Open)
	f("refused by a later check", func(_ *breaker.Breaker, p breaker.Ticket) {
		if errors.New("ratelimit: limited") != nil {
			p.Done(openFor, resilience.Ignored)
		}
	}, breaker.HalfOpen)
}

// TestLostProbeTimesOut says what a probe that never reports counts as: a
// time-out at the end of ProbeTimeout, so that the breaker is open from then on.
func TestLostProbeTimesOut(t *testing.T) {
	b := must(t, breaker.Config{OpenFor: sec, ProbeTimeout: 2 * sec})
	b.Trip(0)
	lost := admit(t, b, sec)
	if _, err := b.Admit(3*sec - 1); !errors.Is(err, breaker.ErrProbing) {
		t.Fatalf("before the time-out: %v", err)
	}
	if _, err := b.Admit(3 * sec); !errors.Is(err, breaker.ErrOpen) || errors.Is(err, breaker.ErrProbing) {
		t.Fatalf("at the time-out: %v; want open again", err)
	}
	p := admit(t, b, 4*sec) // not 3 s + when somebody looked
	lost.Done(4*sec, resilience.Success)
	wantState(t, b, breaker.HalfOpen) // the late answer says nothing
	p.Done(4*sec, resilience.Success)
	wantState(t, b, breaker.Closed)
}

// TestCrowd is the field case of 500 goroutines at the moment of half-open.
func TestCrowd(t *testing.T) {
	for _, probes := range []int{1, 3, 64} {
		b := must(t, breaker.Config{OpenFor: sec, Probes: probes, CloseAfter: 1 << 30})
		b.Trip(0)
		var wg sync.WaitGroup
		var in, most, admitted atomic.Int64
		for range 500 {
			wg.Go(func() {
				tk, err := b.Admit(sec)
				if err != nil {
					return
				}
				admitted.Add(1)
				for n := in.Add(1); ; {
					m := most.Load()
					if n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				in.Add(-1)
				tk.Done(sec, resilience.Success)
			})
		}
		wg.Wait()
		if most.Load() > int64(probes) || admitted.Load() < 1 {
			t.Errorf("%d probes: %d at once of %d admitted", probes, most.Load(), admitted.Load())
		}
	}
}

// TestCrowdHolds is the same crowd when no probe answers: exactly Probes are in.
func TestCrowdHolds(t *testing.T) {
	for _, probes := range []int{1, 3, 64} {
		b := must(t, breaker.Config{OpenFor: sec, Probes: probes})
		b.Trip(0)
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for range 500 {
			wg.Go(func() {
				if _, err := b.Admit(sec); err == nil {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if admitted.Load() != int64(probes) {
			t.Errorf("%d admitted; want %d", admitted.Load(), probes)
		}
	}
}

// TestOldGenerations has requests from before the trip answer late, in each
// state after it: they change nothing.
func TestOldGenerations(t *testing.T) {
	f := func(o resilience.Outcome) {
		t.Helper()
		b := must(t, breaker.Config{OpenFor: sec, Consecutive: 1, CloseAfter: 2})
		old := make([]breaker.Ticket, 40)
		for i := range old {
			old[i] = admit(t, b, 0)
		}
		late := func() {
			t.Helper()
			s, g := b.State()
			for range 10 {
				old[0].Done(3*sec, o)
				old = old[1:]
			}
			if s2, g2 := b.State(); s2 != s || g2 != g {
				t.Errorf("late %v in %v: now %v", o, s, s2)
			}
		}
		b.Trip(0)
		late()
		p := admit(t, b, sec)
		late()
		p.Done(sec, resilience.Success)
		late()
		do(t, b, sec, 1, resilience.Success)
		wantState(t, b, breaker.Closed)
		late()
	}
	f(resilience.Success)
	f(resilience.Failure)
	f(resilience.Timeout)
}

// TestOldProbesCount says that probes of an earlier half-open time hold their
// slots, so that never more than Probes are in flight at the node.
func TestOldProbesCount(t *testing.T) {
	b := must(t, breaker.Config{OpenFor: sec, Probes: 2, ProbeTimeout: 10 * sec})
	b.Trip(0)
	slow, failing := admit(t, b, sec), admit(t, b, sec)
	failing.Done(sec, resilience.Failure)
	admit(t, b, 2*sec)
	if _, err := b.Admit(2 * sec); !errors.Is(err, breaker.ErrProbing) {
		t.Fatalf("a third request at once: %v", err)
	}
	slow.Done(2*sec, resilience.Success) // frees its slot and says nothing
	wantState(t, b, breaker.HalfOpen)
	admit(t, b, 2*sec)
}

// TestDoubleDone ends each admission many times by copies: it counts once.
func TestDoubleDone(t *testing.T) {
	b := must(t, breaker.Config{Consecutive: 2, OpenFor: sec, CloseAfter: 2})
	tk := admit(t, b, 0)
	again := tk
	for range 10 {
		tk.Done(0, resilience.Failure)
		again.Done(0, resilience.Failure)
	}
	wantState(t, b, breaker.Closed)
	b.Trip(0)
	p := admit(t, b, sec)
	for range 10 {
		p.Done(sec, resilience.Success)
	}
	wantState(t, b, breaker.HalfOpen)
	admit(t, b, sec)
	p.Done(sec, resilience.Success) // must not free the slot of the next probe
	if _, err := b.Admit(sec); !errors.Is(err, breaker.ErrProbing) {
		t.Fatalf("a stale Done freed a slot: %v", err)
	}
}

// TestLostWhileClosed: admissions that never report are time-outs after Lost.
func TestLostWhileClosed(t *testing.T) {
	b := must(t, breaker.Config{Consecutive: 3, Lost: 8 * sec})
	lost := []breaker.Ticket{admit(t, b, 0), admit(t, b, 0), admit(t, b, 0)}
	admit(t, b, 7*sec).Done(7*sec, resilience.Success)
	wantState(t, b, breaker.Closed)
	now := 8 * sec
	for ; ; now += sec {
		tk, err := b.Admit(now)
		if err != nil {
			break
		}
		tk.Done(now, resilience.Ignored)
	}
	if now > 8*sec+8*sec/4+sec {
		t.Errorf("lost admissions found after %v", now)
	}
	for _, l := range lost {
		l.Done(now, resilience.Success)
	}
	b = must(t, breaker.Config{Consecutive: 1, Lost: -1})
	admit(t, b, 0)
	admit(t, b, 1000*time.Hour)
	wantState(t, b, breaker.Closed)
}

// TestLaws walks a breaker through random steps and keeps its own account.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probes := rapid.IntRange(1, 4).Draw(t, "probes")
		b, err := breaker.New(breaker.Config{Probes: probes, Consecutive: 3, OpenFor: sec, ProbeTimeout: 2 * sec})
		if err != nil {
			t.Fatal(err)
		}
		now, since := time.Duration(0), time.Duration(0) // since: last admission or success of one
		type held struct {
			tk breaker.Ticket
			at time.Duration
		}
		var probing, all []held
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 300).Draw(t, "dt")) * time.Millisecond
			if rapid.Bool().Draw(t, "admit") {
				ready := b.Ready(now)
				tk, err := b.Admit(now)
				if ready != (err == nil) && ready && !errors.Is(err, breaker.ErrOpen) {
					t.Fatalf("Ready %v, Admit %v", ready, err)
				}
				if !ready && err == nil {
					t.Fatal("admitted although not ready")
				}
				if err != nil {
					if now-since > 4*sec && len(probing) == 0 {
						t.Fatalf("nothing admitted for %v", now-since)
					}
					continue
				}
				since = now
				all = append(all, held{tk, now})
				if s, _ := b.State(); s == breaker.HalfOpen {
					probing = append(probing, held{tk, now})
				}
				young := 0
				for _, p := range probing {
					if now-p.at < 2*sec {
						young++
					}
				}
				if young > probes {
					t.Fatalf("%d probes at once; want at most %d", young, probes)
				}
				continue
			}
			if len(all) == 0 {
				continue
			}
			h := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			h.tk.Done(now, resilience.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")))
			for i, p := range probing {
				if p == h {
					probing = append(probing[:i], probing[i+1:]...)
					break
				}
			}
		}
	})
}

// TestRace has everything at once; the race detector and the account judge.
func TestRace(t *testing.T) {
	b := must(t, breaker.Config{Consecutive: 3, OpenFor: 1, ProbeTimeout: 3, Probes: 2, Lost: 50})
	var clock atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 1000 {
				now := time.Duration(clock.Add(1))
				tk, err := b.Admit(now)
				if err != nil {
					continue
				}
				if n%17 == 0 {
					continue // lost
				}
				tk.Done(now, resilience.Outcome((n*7+i)%5))
				if n%3 == 0 {
					tk.Done(now, resilience.Failure)
				}
			}
		})
	}
	wg.Wait()
	b.Reset(time.Hour)
	do(t, b, time.Hour, 100, resilience.Success)
	wantState(t, b, breaker.Closed)
}

func BenchmarkBreaker(b *testing.B) {
	b.Run("success", func(b *testing.B) {
		b.ReportAllocs()
		br := must(b, breaker.Config{})
		for b.Loop() {
			t, _ := br.Admit(time.Second)
			t.Done(time.Second, resilience.Success)
		}
	})
	b.Run("failure", func(b *testing.B) {
		b.ReportAllocs()
		br := must(b, breaker.Config{Consecutive: -1, MinRequests: 1 << 30})
		for b.Loop() {
			t, _ := br.Admit(time.Second)
			t.Done(time.Second, resilience.Failure)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		br := must(b, breaker.Config{})
		br.Trip(0)
		for b.Loop() {
			br.Admit(time.Second)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		br := must(b, breaker.Config{})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				t, _ := br.Admit(time.Second)
				t.Done(time.Second, resilience.Success)
			}
		})
	})
}
