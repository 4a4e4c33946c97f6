package window

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSums(t *testing.T) {
	w := New(10 * time.Second)
	check := func(now time.Duration, a, b uint64) {
		t.Helper()
		if ga, gb := w.Sums(now); ga != a || gb != b {
			t.Errorf("Sums(%v) = %d, %d; want %d, %d", now, ga, gb, a, b)
		}
	}
	check(0, 0, 0)
	for s := range 20 {
		w.Add(time.Duration(s)*time.Second, A)
	}
	w.Add(15*time.Second, B)
	check(19*time.Second, 10, 1)
	check(24*time.Second, 5, 1)
	check(25*time.Second, 4, 0)
	check(29*time.Second, 0, 0)
	check(18*time.Second, 10, 1) // a reader slightly behind sees the newer slots
	check(-time.Hour, 0, 0)
}

func TestTryAdd(t *testing.T) {
	w := New(10 * time.Second)
	f := func(now time.Duration, limit uint64, want bool) {
		t.Helper()
		if got := w.TryAdd(now, B, limit); got != want {
			t.Errorf("TryAdd(%v, %d) = %v; want %v", now, limit, got, want)
		}
	}
	f(0, 0, false)
	f(0, 2, true)
	f(time.Second, 2, true)
	f(2*time.Second, 2, false)
	f(10*time.Second, 2, true)
	f(10*time.Second, 2, false)
	w.Undo(10*time.Second, B)
	f(10*time.Second, 2, true)
	for range 5 {
		w.Undo(10*time.Second, B)
	}
	if _, b := w.Sums(10 * time.Second); b != 0 {
		t.Errorf("B = %d after more Undo than Add; want 0", b)
	}
}

func TestTryAddExactInASlot(t *testing.T) {
	w := New(10 * time.Second)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := 0
	for range 64 {
		wg.Go(func() {
			for range 50 {
				if w.TryAdd(time.Second, B, 100) {
					mu.Lock()
					got++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if _, b := w.Sums(time.Second); got != 100 || b != 100 {
		t.Errorf("admitted %d, counted %d; want 100", got, b)
	}
}

// TestLaw compares with a list of events while time goes forward.
func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(10 * time.Second)
		var events []int64 // the second of each
		now := int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			now += rapid.Int64Range(0, 4).Draw(t, "dt")
			w.Add(time.Duration(now)*time.Second, A)
			events = append(events, now)
			want := uint64(0)
			for _, e := range events {
				if now-e < Slots {
					want++
				}
			}
			if a, b := w.Sums(time.Duration(now) * time.Second); a != want || b != 0 {
				t.Fatalf("at %d: %d, %d; want %d, 0", now, a, b, want)
			}
		}
	})
}

// TestJumps lets the clock jump anywhere: sums stay between zero and the events so far.
func TestJumps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(time.Duration(rapid.Int64Range(-5, 1<<40).Draw(t, "span")))
		for i := range rapid.Uint64Range(1, 50).Draw(t, "n") {
			now := time.Duration(rapid.Int64().Draw(t, "now"))
			w.Add(now, A)
			w.Undo(now, B)
			if a, b := w.Sums(now); a < 1 || a > i+1 || b != 0 {
				t.Fatalf("after %d events: %d, %d", i+1, a, b)
			}
		}
	})
}

func BenchmarkWindow(b *testing.B) {
	b.Run("Add", func(b *testing.B) {
		b.ReportAllocs()
		w, now := New(10*time.Second), time.Duration(0)
		for b.Loop() {
			now += 100
			w.Add(now, A)
		}
	})
	b.Run("Sums", func(b *testing.B) {
		b.ReportAllocs()
		w := New(10 * time.Second)
		for b.Loop() {
			w.Sums(time.Second)
		}
	})
}
