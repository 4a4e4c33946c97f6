package prequal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

const ms = time.Millisecond

func testPicker(tb testing.TB, n int, cfg Config) *Picker {
	tb.Helper()
	p, err := New(balancetest.NewSet(tb, balancetest.Equal(n)...), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func mustPick(tb testing.TB, p *Picker, now time.Duration, exclude ...*balance.Node) int {
	tb.Helper()
	tk, err := p.Pick(now, uint64(now)+1, exclude)
	if err != nil {
		tb.Fatal(err)
	}
	tk.Done(now, balance.Outcome{Result: balance.Success})
	return tk.Index()
}

// lasting is a configuration in which answers leave the pool by age alone.
func lasting() Config { return Config{Remove: -1, Probes: 0.01, Quantile: 0.5} }

// TestLinear: the weighted sum has no hot and cold.
func TestLinear(t *testing.T) {
	f := func(mix float64, want int) {
		t.Helper()
		cfg := lasting()
		cfg.Linear = &Linear{Mix: mix, PerRIF: 10 * ms}
		p := testPicker(t, 3, cfg)
		p.Report(0, 0, 0, 90*ms)
		p.Report(1, 0, 3, 40*ms)
		p.Report(2, 0, 9, 10*ms)
		if got := mustPick(t, p, 0); got != want {
			t.Errorf("mix %v: picked %d, want %d", mix, got, want)
		}
	}
	f(0, 2)   // latency alone
	f(.5, 1)  // 45, 35, 50
	f(.9, 0)  // 9, 31, 82
	f(1, 0)   // RIF alone
	f(.25, 2) // 67.5, 37.5, 30
}

// TestHotCold checks the rule: cold before hot, the cold by latency, the hot by
// RIF; the RIF of an answer grows with what is sent there.
func TestHotCold(t *testing.T) {
	p := testPicker(t, 4, lasting())
	p.Report(0, 0, 1, 30*ms)
	p.Report(1, 0, 2, 20*ms) // the median: cold
	p.Report(2, 0, 9, 1*ms)  // hot
	if got := mustPick(t, p, 0); got != 1 {
		t.Errorf("picked %d, want 1: cold with the least latency", got)
	}
	if got := mustPick(t, p, 0); got != 0 {
		t.Errorf("picked %d, want 0: 1 is hot now, with the query that went there", got)
	}
	if got := mustPick(t, p, 0); got != 0 {
		t.Errorf("picked %d, want 0: at the threshold, cold", got)
	}
	if got := mustPick(t, p, 0); got != 0 && got != 1 {
		t.Errorf("picked %d, want the least RIF of the hot", got)
	}
	if got := mustPick(t, p, 0, p.set.Node(0), p.set.Node(1)); got == 0 || got == 1 {
		t.Errorf("picked %d, which is excluded", got)
	}
}

func TestRIFOnly(t *testing.T) {
	cfg := lasting()
	cfg.RIFOnly = true
	p := testPicker(t, 3, cfg)
	p.Report(0, 0, 3, 1*ms)
	p.Report(1, 0, 1, 99*ms)
	var got []int
	for range 5 {
		got = append(got, mustPick(t, p, 0))
	}
	if want := []int{1, 1, 0, 1, 0}; !slices.Equal(got[:2], want[:2]) || slices.Max(got) > 1 {
		t.Errorf("picks %v, want %v by RIF alone", got, want)
	}
}

// TestPoolEmpties: answers leave by age, by use and by removal.
func TestPoolEmpties(t *testing.T) {
	size := func(p *Picker) (n int) {
		for i := range p.pool.slots {
			if p.pool.slots[i].Load() != nil {
				n++
			}
		}
		return n
	}
	old := testPicker(t, 3, lasting())
	old.Report(0, 0, 1, ms)
	old.Report(1, 600*ms, 1, ms)
	mustPick(t, old, 1001*ms)
	if size(old) != 1 {
		t.Errorf("%d answers after 1 s, want the one that is 400 ms old", size(old))
	}
	// 100 nodes: (1+1) / ((1-16/100)*3 - 1) = 1.3158 uses.
	used := testPicker(t, 100, Config{})
	if got := used.cfg.reuse(100); math.Abs(got-1.3158) > 1e-4 {
		t.Errorf("answers may be used %v times, want 1.3158", got)
	}
	uses := 0
	for k := range 1000 {
		used.Report(k%16, 0, 0, ms)
		uses += int(newest(used, k%16).left.Load())
	}
	if uses != 1315 {
		t.Errorf("1000 answers may be used %d times, want 1315", uses)
	}
	removed := testPicker(t, 100, Config{})
	for i := range 10 {
		removed.Report(i, time.Duration(i), i, time.Duration(10-i)*ms)
	}
	mustPick(t, removed, 20) // removes the oldest, 0
	mustPick(t, removed, 20) // removes the worst, 9: hot with the largest RIF
	if newest(removed, 0) != nil || newest(removed, 9) != nil {
		t.Error("the oldest or the worst answer is still there")
	}
}

func newest(p *Picker, member int) *answer {
	for i := range p.pool.slots {
		if a := p.pool.slots[i].Load(); a != nil && a.member == member {
			return a
		}
	}
	return nil
}

// TestPoolIsBounded: the oldest answer makes room.
func TestPoolIsBounded(t *testing.T) {
	cfg := lasting()
	cfg.Pool = 4
	p := testPicker(t, 9, cfg)
	for i := range 9 {
		p.Report(i, time.Duration(i)*ms, 1, ms)
	}
	for i := range 9 {
		if got, want := newest(p, i) != nil, i >= 5; got != want {
			t.Errorf("answer of %d in the pool: %v, want %v", i, got, want)
		}
	}
	p.Report(7, 100*ms, 5, ms)
	if a := newest(p, 7); a.at != 100*ms || newest(p, 5) == nil {
		t.Error("a newer answer of a node must take the place of its old one")
	}
	p.Report(3, 100*ms, -1, ms)
	if newest(p, 3) != nil {
		t.Error("a negative answer was taken")
	}
}

// TestProbes: as many as configured, all different in a batch.
func TestProbes(t *testing.T) {
	p := testPicker(t, 5, Config{Probes: 2.5})
	total := 0
	for k := range 1000 {
		batch := p.Probes(uint64(k), nil)
		total += len(batch)
		slices.Sort(batch)
		if len(slices.Compact(batch)) != len(batch) {
			t.Fatalf("batch %v probes a node twice", batch)
		}
	}
	if total != 2500 {
		t.Errorf("%d probes for 1000 queries, want 2500", total)
	}
	if got := testPicker(t, 2, Config{}).Probes(1, nil); len(got) != 2 {
		t.Errorf("%d probes of 2 nodes, want both", len(got))
	}
	if got := testPicker(t, 0, Config{}).Probes(1, nil); len(got) != 0 {
		t.Errorf("probes %v of no nodes", got)
	}
}

// TestLawsWithProbes puts the picker to the laws while probes are answered.
func TestLawsWithProbes(t *testing.T) {
	balancetest.Run(t, func(s *balance.Set) (balance.Picker, error) {
		p, err := New(s, Config{Errors: balance.ErrorLoad{Each: 10}})
		return probing{p}, err
	}, balancetest.Options{Skip: []string{
		balancetest.Even,         // the pool is what it is
		balancetest.NoAllocation, // answers are
	}})
}

// probing answers each probe at once.
type probing struct{ *Picker }

func (p probing) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	for _, i := range p.Probes(seed, nil) {
		p.Report(i, now, p.set.Node(i).InFlight(), ms)
	}
	return p.Picker.Pick(now, seed, exclude)
}

func (p probing) Next(set *balance.Set) (balance.Picker, error) {
	n, err := p.Picker.Next(set)
	return probing{n.(*Picker)}, err
}

func TestConfigRefused(t *testing.T) {
	set := balancetest.NewSet(t, 1)
	for _, cfg := range []Config{
		{Pool: 1}, {Pool: 65}, {Probes: -1}, {Probes: math.NaN()}, {Quantile: 2}, {Delta: -1}, {MaxAge: -1},
		{Errors: balance.ErrorLoad{Each: -1}},
	} {
		if _, err := New(set, cfg); !errors.Is(err, balance.ErrInvalid) {
			t.Errorf("%+v: error %v, want ErrInvalid", cfg, err)
		}
	}
}

// TestServer: the estimate is the median of latencies at about the same RIF.
func TestServer(t *testing.T) {
	s := NewServer()
	if rif, latency := s.Load(); rif != 0 || latency != 0 {
		t.Errorf("a new server answers %d, %v", rif, latency)
	}
	serve := func(others int, latency time.Duration) {
		var begun []int64
		for range others {
			begun = append(begun, s.Begin())
		}
		at := s.Begin()
		s.End(at, latency)
		for range begun {
			s.rif.Add(-1) // without latencies of their own
		}
	}
	for k := range 50 {
		serve(0, time.Duration(1+k%3)*ms)
		serve(20, time.Duration(20+k%3)*ms)
	}
	if rif, latency := s.Load(); rif != 0 || latency != 2*ms {
		t.Errorf("idle: %d, %v; want 0, 2 ms", rif, latency)
	}
	for range 21 { // the class of 20 to 23
		s.Begin()
	}
	if rif, latency := s.Load(); rif != 21 || latency != 21*ms {
		t.Errorf("busy: %d, %v; want 21, 21 ms", rif, latency)
	}
	for range 40 { // nothing known there: the nearest class that has something
		s.Begin()
	}
	if rif, latency := s.Load(); rif != 61 || latency != 21*ms {
		t.Errorf("busier: %d, %v; want 61, 21 ms", rif, latency)
	}
}

func TestServerClasses(t *testing.T) {
	last := 0
	for rif := range int64(5000) {
		c := classOf(rif)
		if c < last || c > last+1 || c >= classes {
			t.Fatalf("class of %d is %d after %d", rif, c, last)
		}
		last = c
	}
	if classOf(-1) != 0 || classOf(math.MaxInt64) != classes-1 {
		t.Error("the ends are in no class")
	}
}

func TestServerConcurrent(t *testing.T) {
	s := NewServer()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for k := range 1000 {
				at := s.Begin()
				s.Load()
				s.End(at, time.Duration(k))
			}
		})
	}
	wg.Wait()
	if rif, _ := s.Load(); rif != 0 {
		t.Errorf("%d in flight when idle", rif)
	}
}

func BenchmarkPickDone(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := testPicker(b, n, lasting())
			for i := range 16 {
				p.Report(i%n, 0, i, ms)
			}
			b.ReportAllocs()
			k := uint64(0)
			for b.Loop() {
				k++
				tk, _ := p.Pick(0, k, nil)
				tk.Done(0, balance.Outcome{Result: balance.Success})
			}
		})
	}
}
