package bounded_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/shardd/shardd/balance/bounded"
)

// TestMaxFlight: a node takes nothing more at MaxFlight, by whatever rule it is chosen,
// and lets go of all that it took.
func TestMaxFlight(t *testing.T) {
	for name, build := range map[string]func(g *bounded.Group, m []bounded.Member) (*bounded.Set, error){
		"no bound": func(g *bounded.Group, m []bounded.Member) (*bounded.Set, error) { return g.NewSet(m, 0) },
		"bound":    func(g *bounded.Group, m []bounded.Member) (*bounded.Set, error) { return g.NewSet(m, 1.25) },
		"haproxy": func(g *bounded.Group, m []bounded.Member) (*bounded.Set, error) {
			return g.NewHAProxySet(m, []uint32{0}, 125)
		},
	} {
		g := bounded.NewGroup(bounded.Options{})
		s, err := build(g, []bounded.Member{{Node: g.NewNode(), Weight: 1}})
		if err != nil {
			t.Fatal(name, err)
		}
		g.Use(s)
		n, taken := s.Node(0), int64(1)
		if !s.Admit(0, 1) {
			t.Fatal(name)
		}
		for taken < 1<<16 && s.Admit(0, bounded.MaxCost) {
			taken++
		}
		if most := int64(bounded.MaxFlight/bounded.MaxCost + 1); taken != most || n.Force(1) || n.Count(1) || s.AdmitExact(0, 1) {
			t.Errorf("%s: %d requests admitted, not %d, or another by force", name, taken, most)
		}
		if !n.Release(1) {
			t.Errorf("%s: the first is not released", name)
		}
		for range taken - 1 {
			if !n.Release(bounded.MaxCost) {
				t.Fatalf("%s: not released at %d", name, n.InFlight())
			}
		}
		if st := n.Stats(); g.Total() != 0 || st.InFlight != 0 || st.Over != 0 || st.Picks != uint64(taken) || st.Bad != 0 || n.Release(bounded.MaxCost) {
			t.Errorf("%s: total %d, %+v", name, g.Total(), st)
		}
	}
}

// TestHugeWeights: what adds up to more than a number can be is refused.
func TestHugeWeights(t *testing.T) {
	g := bounded.NewGroup(bounded.Options{})
	two := func(w float64) []bounded.Member {
		return []bounded.Member{{Node: g.NewNode(), Weight: w}, {Node: g.NewNode(), Weight: w}}
	}
	for _, w := range []float64{math.MaxFloat64, math.MaxFloat64 / 2} {
		if _, err := g.NewSet(two(w), 1.25); !errors.Is(err, bounded.ErrInvalid) {
			t.Errorf("weights of %v: %v", w, err)
		}
	}
	s, err := g.NewSet(two(math.MaxFloat64/4), 1)
	if err != nil || s.Cap(0, 10) != 5 {
		t.Errorf("cap %d, %v", s.Cap(0, 10), err)
	}
}

// TestPicksNeverFall: the count of picks that Stats tells only grows, also while picks
// are undone.
func TestPicksNeverFall(t *testing.T) {
	g := bounded.NewGroup(bounded.Options{})
	n := g.NewNode()
	var doing sync.WaitGroup
	doing.Go(func() {
		for range 50_000 {
			n.Count(1)
			n.Undo(1)
		}
	})
	for last, i := uint64(0), 0; i < 50_000; i++ {
		now := n.Stats().Picks
		if now < last {
			t.Fatalf("%d picks after %d", now, last)
		}
		last = now
	}
	doing.Wait()
}
