package wrr

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

// Weights as small as numbers go must not make deadlines infinite: after such a
// node has left, turns go by weight.
func TestTinyWeights(t *testing.T) {
	bias := 2000.0
	makers := map[string]func(*balance.Set) (balance.Picker, error){
		"edf":   func(s *balance.Set) (balance.Picker, error) { return NewEDF(s), nil },
		"least": func(s *balance.Set) (balance.Picker, error) { return NewWeightedLeast(s, WeightedLeastConfig{}) },
		"biased": func(s *balance.Set) (balance.Picker, error) {
			return NewWeightedLeast(s, WeightedLeastConfig{Bias: &bias})
		},
	}
	for name, make := range makers {
		t.Run(name, func(t *testing.T) {
			a, b := balance.NewNode("a", 0), balance.NewNode("b", 0)
			set := func(wa, wb float64) *balance.Set {
				return balancetest.SetOf(t, balance.Member{Node: a, Weight: wa}, balance.Member{Node: b, Weight: wb})
			}
			p, err := make(set(math.SmallestNonzeroFloat64, 0))
			if err != nil {
				t.Fatal(err)
			}
			pick := func(n int) (got [2]int) {
				t.Helper()
				var open []balance.Ticket
				for k := range n {
					tk, err := p.Pick(0, uint64(k), nil)
					if err != nil {
						t.Fatal(err)
					}
					got[tk.Index()]++
					if open = append(open, tk); len(open) == 4 {
						for _, tk := range open {
							tk.Done(0, balance.Outcome{Result: balance.Success})
						}
						open = open[:0]
					}
				}
				for _, tk := range open {
					tk.Done(0, balance.Outcome{Result: balance.Success})
				}
				return got
			}
			for _, weights := range [][2]float64{{math.SmallestNonzeroFloat64, 1e-300}, {0, 1}, {2, 1}} {
				pick(10)
				if p, err = p.Next(set(weights[0], weights[1])); err != nil {
					t.Fatal(err)
				}
			}
			if got := pick(3000); got[1] < 500 || got[1] > 1500 {
				t.Errorf("weights 2 and 1 got %v of 3000 picks", got)
			}
		})
	}
}

// A failure that was noted while the clock was ahead is forgotten when a trial
// goes well, as any other.
func TestSmoothClockBack(t *testing.T) {
	set := balancetest.NewSet(t, 1, 1)
	p, err := NewSmooth(set, SmoothConfig{MaxFails: 1, FailTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		tk, err := p.Pick(time.Hour, uint64(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(time.Hour, balance.Outcome{Result: balance.Success + balance.Result(tk.Index())}) // node 1 fails
	}
	got := 0
	for k := range 1000 { // the clock is back at 0; 10 s
		now := time.Duration(k) * 10 * time.Millisecond
		tk, err := p.Pick(now, uint64(k), nil)
		if err != nil && !errors.Is(err, balance.ErrNoNode) {
			t.Fatal(err)
		}
		if tk.Index() == 1 {
			got++
		}
		tk.Done(now, balance.Outcome{Result: balance.Success})
	}
	if got < 400 {
		t.Errorf("a node that is well again got %d of 1000 picks, want about half but for a second", got)
	}
}
