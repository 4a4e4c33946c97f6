package balance

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testSet(tb testing.TB, weights ...float64) *Set {
	tb.Helper()
	return benchSet(tb, len(weights), func(i int) float64 { return weights[i] })
}

func TestSetRefuses(t *testing.T) {
	a, b := NewNode("a", 0), NewNode("b", 0)
	for name, members := range map[string][]Member{
		"no node":  {{Weight: 1}},
		"twice":    {{Node: a, Weight: 1}, {Node: b, Weight: 1}, {Node: a, Weight: 2}},
		"negative": {{Node: a, Weight: -1}},
		"NaN":      {{Node: a, Weight: math.NaN()}},
		"infinite": {{Node: a, Weight: math.Inf(1)}},
		"too much": {{Node: a, Weight: MaxWeight * 2}},
	} {
		if _, err := NewSet(members); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}

func TestSetFrom(t *testing.T) {
	old := testSet(t, 1, 1, 0, 1)
	set, err := NewSet([]Member{old.Member(3), {Node: NewNode("new", 0), Weight: 1}, old.Member(0), old.Member(2)})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{3, -1, 0, 2}, set.From(old)); d != "" {
		t.Errorf("from (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{-1, -1, -1, -1}, set.From(nil)); d != "" {
		t.Errorf("from nothing (-want +got):\n%s", d)
	}
}

// chiSquare returns the statistic of counts against shares of the total.
func chiSquare(counts []int, shares []float64) float64 {
	total, sum := 0, 0.0
	for _, n := range counts {
		total += n
	}
	for i, s := range shares {
		want := s * float64(total)
		sum += (float64(counts[i]) - want) * (float64(counts[i]) - want) / want
	}
	return sum
}

// TestDrawShares: draws by table, by repeated draws and by one pass all follow
// the weights.
func TestDrawShares(t *testing.T) {
	weights := []float64{1, 2, 3, 10, 0.5}
	s := testSet(t, append(weights, 0)...)
	dice := splitmixAt(1)
	f := func(name string, out int, draw func() *candidate) {
		t.Helper()
		shares, total := []float64{}, 0.0
		for i, w := range weights {
			if i != out {
				total += w
			}
		}
		counts := make([]int, len(weights))
		for range 100_000 {
			counts[draw().index]++
		}
		var kept []int
		for i, w := range weights {
			if i == out {
				if counts[i] != 0 {
					t.Errorf("%s: drew the excluded %d times", name, counts[i])
				}
				continue
			}
			shares, kept = append(shares, w/total), append(kept, counts[i])
		}
		if x := chiSquare(kept, shares); x > 23.5 { // 4 degrees of freedom, 1e-4
			t.Errorf("%s: counts %v, chi square %.1f", name, counts, x)
		}
	}
	out := []*Node{s.Node(3)}
	f("table", -1, func() *candidate { return s.any(&dice) })
	f("again", 3, func() *candidate { return s.draw(&dice, out, nil) })
	f("pass", 3, func() *candidate { return s.scan(&dice, out, nil) })
}

// TestDrawExtremes: weights of any ratio leave nobody without a column.
func TestDrawExtremes(t *testing.T) {
	for _, weights := range [][]float64{{1, 1e-9}, {MaxWeight, 1}, {1e-12, 1e-12}, {3}, {1e-300, 1e9, 1}} {
		s := testSet(t, weights...)
		if s.equal {
			continue
		}
		sum := make([]float64, len(weights))
		for i, a := range s.table {
			keep := float64(a.keep) / (1 << 64)
			sum[i] += keep
			sum[a.other] += 1 - keep
		}
		for i, w := range weights {
			got, want := sum[i]/float64(len(weights)), w/s.total
			if got <= 0 || math.Abs(got-want) > 1e-15 {
				t.Errorf("weights %v: member %d is drawn with probability %v, want %v", weights, i, got, want)
			}
		}
	}
}

func TestPool(t *testing.T) {
	p := NewPool()
	update := func(ids ...Identity) []*Node {
		t.Helper()
		nodes, err := p.Update(ids)
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	a, b := Identity{ID: "a"}, Identity{ID: "b", Incarnation: 1}
	first := update(a, b)
	if again := update(b, a); again[0] != first[1] || again[1] != first[0] {
		t.Error("nodes that stay have changed")
	}
	if next := update(a, Identity{ID: "b", Incarnation: 2}); next[0] != first[0] || next[1] == first[1] {
		t.Error("another incarnation must have another node, and the others their own")
	}
	update(b)
	if back := update(a, b); back[0] == first[0] {
		t.Error("a came back to its old node")
	}
	kept := update(a, b)
	for _, bad := range [][]Identity{{a, {}}, {a, {ID: "a", Incarnation: 7}}} {
		if _, err := p.Update(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("update %v: error %v, want ErrInvalid", bad, err)
		}
	}
	if after := update(a, b); after[0] != kept[0] || after[1] != kept[1] {
		t.Error("a refused update has changed the pool")
	}
}
