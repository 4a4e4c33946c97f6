package wrr

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/balance"
)

// TestConcurrentTurns: every turn is taken once, however many take turns at once.
func TestConcurrentTurns(t *testing.T) {
	weights := []float64{5, 1, 3, 0, 2}
	const rounds, workers = 2000, 4
	smooth, err := NewSmooth(newSet(t, weights...), SmoothConfig{})
	if err != nil {
		t.Fatal(err)
	}
	expanded, err := NewExpanded(newSet(t, weights...), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]balance.Picker{"smooth": smooth, "expanded": expanded} {
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := make([]int, len(weights))
		for range workers {
			wg.Go(func() {
				mine := make([]int, len(weights))
				for range 11 * rounds / workers {
					tk, err := p.Pick(0, 0, nil)
					if err != nil {
						t.Error(err)
						return
					}
					mine[tk.Index()]++
					tk.Done(0, balance.Outcome{Result: balance.Success})
				}
				mu.Lock()
				defer mu.Unlock()
				for i, n := range mine {
					got[i] += n
				}
			})
		}
		wg.Wait()
		for i, w := range weights {
			if diff := got[i] - int(w)*rounds; diff < -1 || diff > 1 {
				t.Errorf("%s: node %d got %d of %d turns, want %d", name, i, got[i], 11*rounds, int(w)*rounds)
			}
		}
	}
}

func TestExpandedRefuses(t *testing.T) {
	for _, weights := range [][]float64{{0.5, 1}, {1e9, 1}} {
		if _, err := NewExpanded(newSet(t, weights...), 0); !errors.Is(err, balance.ErrInvalid) {
			t.Errorf("weights %v: error %v, want ErrInvalid", weights, err)
		}
	}
	p, err := NewExpanded(newSet(t, 1, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(newSet(t, 0.5)); !errors.Is(err, balance.ErrInvalid) {
		t.Errorf("next: error %v, want ErrInvalid", err)
	}
	if got := picks(t, p, 4); got != "abab" {
		t.Errorf("picks after a refused set: %s", got)
	}
}

// TestConcurrentRuns: with a period that is too long to be kept, runs follow each
// other, and whoever needs the next one computes it; no turn is lost between.
func TestConcurrentRuns(t *testing.T) {
	weights := []float64{1009, 1013, 2003, 503, 1777}
	const total, workers, picks = 6305, 4, 20_000
	p, err := NewSmooth(newSet(t, weights...), SmoothConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var got [5]atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for k := range picks / workers {
				tk, err := p.Pick(0, uint64(k), nil)
				if err != nil {
					t.Error(err)
					return
				}
				got[tk.Index()].Add(1)
				tk.Done(0, balance.Outcome{Result: balance.Success})
			}
		})
	}
	wg.Wait()
	for i, w := range weights {
		if want := w / total * picks; math.Abs(float64(got[i].Load())-want) > 2 {
			t.Errorf("node %d got %d of %d turns, want %.1f", i, got[i].Load(), picks, want)
		}
	}
}

func TestRoundRobin(t *testing.T) {
	p := NewRoundRobin(newSet(t, 1, 7, 0, 1), 1)
	if got := picks(t, p, 7); got != "bdabdab" {
		t.Errorf("picks %s, want bdabdab", got)
	}
	wrap := NewRoundRobin(newSet(t, 1, 1), math.MaxUint32)
	if got := picks(t, wrap, 3); got != "bab" {
		t.Errorf("picks across the counter's end %s, want bab", got)
	}
}

// TestCarriedTurns: Next goes on where the last picker stopped.
func TestCarriedTurns(t *testing.T) {
	set := newSet(t, 5, 1, 1)
	smooth, err := NewSmooth(set, SmoothConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, p balance.Picker, want string) {
		t.Helper()
		got := ""
		for k := range 14 {
			got += picks(t, p, 1)
			if k%3 == 2 {
				if p, err = p.Next(set); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got != want {
			t.Errorf("%s: picks %s with a Next after every third, want %s", name, got, want)
		}
	}
	f("smooth", smooth, "aabacaaaabacaa")
	// EDF's deadlines are rounded anew, which decides ties: the third pair of turns
	// (a at 1.0, b at 1.0) comes the other way round.
	f("edf", NewEDF(set), "aaaabcaaaaabca")
	f("stride", NewStride(set, 0), picks(t, NewStride(set, 0), 14))
	f("round robin", NewRoundRobin(set, 0), "abcabcabcabcab")
}

func TestLeastConn(t *testing.T) {
	set := newSet(t, 4, 2, 1)
	p := NewLeastConn(set)
	var got []int
	for range 7 { // nothing ends: loads grow as the weights
		tk, err := p.Pick(0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tk.Index())
	}
	flight := []int{set.Node(0).InFlight(), set.Node(1).InFlight(), set.Node(2).InFlight()}
	if d := cmp.Diff([]int{4, 2, 1}, flight); d != "" {
		t.Errorf("in flight after 7 picks %v (-want +got):\n%s", got, d)
	}
}

// TestWeightedLeast: with bias 0 it is EDF; with requests that hang on one node,
// that node's turns become rare.
func TestWeightedLeast(t *testing.T) {
	zero := 0.0
	plain, err := NewWeightedLeast(newSet(t, 5, 1, 1), WeightedLeastConfig{Bias: &zero})
	if err != nil {
		t.Fatal(err)
	}
	if got := picks(t, plain, 14); got != "aaaaabcaaaaabc" {
		t.Errorf("bias 0: picks %s, want those of EDF", got)
	}
	p, err := NewWeightedLeast(newSet(t, 2, 1), WeightedLeastConfig{})
	if err != nil {
		t.Fatal(err)
	}
	hung := 0
	for range 10_000 {
		tk, err := p.Pick(0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tk.Node().ID() == "a" {
			hung++
			continue
		}
		tk.Done(0, balance.Outcome{Result: balance.Success})
	}
	// The k-th request on a waits for k/2 of b's turns: k^2/4 = 10,000.
	if hung < 180 || hung > 220 {
		t.Errorf("%d of 10000 requests went to a node that never answers, want about 200", hung)
	}
	bad := math.NaN()
	if _, err := NewWeightedLeast(newSet(t, 1), WeightedLeastConfig{Bias: &bad}); !errors.Is(err, balance.ErrInvalid) {
		t.Errorf("bias NaN: error %v, want ErrInvalid", err)
	}
}

func TestReportedWeights(t *testing.T) {
	const s = time.Second
	p := NewReported(newSet(t, 1, 1, 1, 1), ReportedConfig{Expiration: 60 * s}, 0)
	f := func(now time.Duration, want ...float64) {
		t.Helper()
		if d := cmp.Diff(want, p.Weights(now)); d != "" {
			t.Errorf("weights at %v (-want +got):\n%s", now, d)
		}
	}
	f(0, 1, 1, 1, 1)
	p.Report(0, 1*s, Load{QPS: 100, Utilization: 0.5})
	p.Report(1, 1*s, Load{QPS: 100, EPS: 50, Utilization: 0.5})
	p.Report(2, 1*s, Load{QPS: 0, Utilization: 0.5}) // says nothing
	p.Report(2, 1*s, Load{QPS: 5, Utilization: 0})
	p.Report(2, 1*s, Load{QPS: math.NaN(), Utilization: 1})
	f(10*s, 1, 1, 1, 1) // blackout
	f(11*s, 200, 100, 150, 150)
	p.Report(2, 5*s, Load{QPS: 30, Utilization: 0.1})
	f(15*s, 200, 100, 300, 200)
	p.Report(0, 59*s, Load{QPS: 100, Utilization: 0.5})
	f(62*s, 200, 250, 300, 250) // b has expired
	f(66*s, 1, 1, 1, 1)         // c, too: one weight is not enough
	p.Report(1, 67*s, Load{QPS: 90, Utilization: 0.9})
	f(70*s, 1, 1, 1, 1) // b is in its blackout again
	f(77*s, 200, 100, 150, 150)
	next, err := p.Next(p.Set())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]float64{200, 100, 150, 150}, next.(*Reported).Weights(77*s)); d != "" {
		t.Errorf("weights of the next picker (-want +got):\n%s", d)
	}
}

func TestReportedShares(t *testing.T) {
	p := NewReported(newSet(t, 1, 1, 1), ReportedConfig{Blackout: -1}, 0)
	for i, qps := range []float64{100, 200, 300} {
		p.Report(i, 0, Load{QPS: qps, Utilization: 1})
	}
	got := [3]int{}
	for k := range 6000 {
		now := 2*time.Second + time.Duration(k)*time.Microsecond
		tk, err := p.Pick(now, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[tk.Index()]++
		tk.Done(now, balance.Outcome{Result: balance.Success})
	}
	for i, n := range got {
		if want := 1000 * (i + 1); n < want-2 || n > want+2 {
			t.Errorf("node %d got %d of 6000 picks, want %d", i, n, want)
		}
	}
}
