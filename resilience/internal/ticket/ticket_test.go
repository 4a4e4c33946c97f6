package ticket

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCloseOnce(t *testing.T) {
	var l Ledger
	a := l.Take(0, 7)
	b := a
	if a.Cost() != 7 || !a.Open() {
		t.Fatalf("cost %d, open %v; want 7, true", a.Cost(), a.Open())
	}
	if !a.Close() || a.Close() || b.Close() || b.Open() {
		t.Fatal("want exactly one Close to succeed")
	}
	if (Ticket{}).Close() || (Ticket{}).Open() {
		t.Fatal("the zero ticket is closed")
	}
}

// TestStaleCopy holds a copy of a closed ticket while the slot is taken again
// at the same time with the same cost: the copy must not close the new one.
func TestStaleCopy(t *testing.T) {
	var l Ledger
	stale := l.Take(0, 1)
	stale.Close()
	var open []Ticket
	for range firstPage { // every slot is taken, so stale's is too
		open = append(open, l.Take(0, 1))
	}
	if stale.Close() {
		t.Fatal("a stale copy closed a later ticket")
	}
	for _, o := range open {
		if !o.Close() {
			t.Fatal("a later ticket was closed by somebody else")
		}
	}
}

func TestExpire(t *testing.T) {
	f := func(taken, now, after time.Duration, want bool) {
		t.Helper()
		var l Ledger
		tk := l.Take(taken, 3)
		n, costs := l.Expire(now, after)
		if got := n == 1; got != want || costs != 3*n || tk.Close() == want {
			t.Errorf("Take(%v), Expire(%v, %v) = %d, %d; want expired %v", taken, now, after, n, costs, want)
		}
	}
	f(0, 0, 0, true)
	f(0, time.Second, time.Second-2*Unit, true)
	f(0, time.Second+2*Unit, time.Second, true)
	f(0, time.Second-1, time.Second, false)
	f(Unit-1, Unit, 1, false)                            // rounding never makes it early
	f(time.Second, 0, 2*time.Second, false)              // the clock went back a little
	f(time.Hour, 0, time.Minute, true)                   // or by more: it would stay open for an hour
	f(50*24*time.Hour, 53*24*time.Hour, time.Hour, true) // across the wrap of the stamp
	f(52*24*time.Hour, 53*24*time.Hour, 48*time.Hour, false)
}

func TestSweep(t *testing.T) {
	var l Ledger
	f := func(now, lost time.Duration, want int) {
		t.Helper()
		if n, _ := l.Sweep(now, lost); n != want {
			t.Errorf("Sweep(%v, %v) = %d; want %d", now, lost, n, want)
		}
	}
	l.Take(0, 1)
	f(time.Hour, -1, 0)
	f(time.Hour, 0, 0)
	f(9*time.Second, 10*time.Second, 0) // looked, too young
	f(11*time.Second, 10*time.Second, 0)
	f(11500*time.Millisecond, 10*time.Second, 1)
	l.Take(12*time.Second, 1)
	f(-time.Hour, 10*time.Second, 1) // a clock that went back is looked at again from there
	l.Take(-time.Hour, 1)
	f(-time.Hour+time.Second, 10*time.Second, 0)
	f(-time.Hour+11*time.Second, 10*time.Second, 1)
}

func TestGrowAndTrim(t *testing.T) {
	var l Ledger
	var open []Ticket
	for range 1000 {
		open = append(open, l.Take(0, 1))
	}
	size := len(l.page.Load().slots)
	if size < 512 || size > 4096 {
		t.Errorf("1000 open tickets in a page of %d", size)
	}
	for _, o := range open {
		if !o.Close() {
			t.Fatal("a growing table lost a ticket")
		}
	}
	l.Expire(time.Hour, time.Second)
	if l.page.Load().older.Load() != nil {
		t.Error("empty older pages are kept")
	}
}

// TestOnceAmongMany has closers of copies and an expirer race for each ticket.
func TestOnceAmongMany(t *testing.T) {
	var l Ledger
	var ended atomic.Int64
	const rounds, copies = 200, 4
	var wg sync.WaitGroup
	for range rounds {
		tk := l.Take(0, 1)
		for range copies {
			wg.Go(func() {
				if tk.Close() {
					ended.Add(1)
				}
			})
		}
		wg.Go(func() {
			n, _ := l.Expire(time.Hour, time.Second)
			ended.Add(int64(n))
		})
	}
	wg.Wait()
	if ended.Load() != rounds {
		t.Errorf("%d ends of %d tickets", ended.Load(), rounds)
	}
}

func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Ledger
		var all []Ticket
		var ended, taken, costs, endedCosts int
		now := time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(-1000, 5000).Draw(t, "dt")) * time.Millisecond
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				c := rapid.IntRange(1, MaxCost).Draw(t, "cost")
				all = append(all, l.Take(now, c))
				taken, costs = taken+1, costs+c
			case 2:
				if len(all) == 0 {
					continue
				}
				tk := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				if tk.Close() {
					ended, endedCosts = ended+1, endedCosts+tk.Cost()
				}
			case 3:
				n, c := l.Expire(now, 10*time.Second)
				ended, endedCosts = ended+n, endedCosts+c
			}
		}
		n, c := l.Expire(now, 0)
		if ended+n != taken || endedCosts+c != costs {
			t.Fatalf("%d ends of %d tickets, costs %d of %d", ended+n, taken, endedCosts+c, costs)
		}
	})
}

func BenchmarkTakeClose(b *testing.B) {
	b.Run("ledger", func(b *testing.B) {
		b.ReportAllocs()
		var l Ledger
		l.Take(0, 1).Close()
		for b.Loop() {
			l.Take(0, 1).Close()
		}
	})
	b.Run("counter", func(b *testing.B) {
		b.ReportAllocs()
		var n atomic.Int64
		for b.Loop() {
			n.Add(1)
			n.Add(-1)
		}
	})
	b.Run("ledger-parallel", func(b *testing.B) {
		var l Ledger
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Take(0, 1).Close()
			}
		})
	})
	b.Run("counter-parallel", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
				n.Add(-1)
			}
		})
	})
}

// TestTakeInDroppedPage: whoever was about to take a slot in a page that others
// outgrew and dropped takes it where Expire looks.
func TestTakeInDroppedPage(t *testing.T) {
	var l Ledger
	l.Take(0, 1).Close()
	stale := l.page.Load()
	var open []Ticket
	for l.page.Load() == stale {
		open = append(open, l.Take(0, 1))
	}
	for _, tk := range open {
		tk.Close()
	}
	l.Expire(0, time.Hour) // drops the empty page
	tk := l.takeIn(stale, 1<<costShift|stamp(0))
	if n, _ := l.Expire(time.Hour, time.Minute); n != 1 || tk.Open() {
		t.Errorf("%d of 1 lost tickets expired", n)
	}
}
