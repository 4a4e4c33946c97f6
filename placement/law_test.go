package placement

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/topology"
)

// rosterOf makes a roster of two lists of owner weights, 0 = not there.
func rosterOf(from, to []uint32) *roster {
	r := &roster{}
	for i := range from {
		r.ids = append(r.ids, fmt.Sprintf("n%03d", i))
		r.from = append(r.from, node{weight: from[i], there: from[i] > 0})
		r.to = append(r.to, node{weight: to[i], there: to[i] > 0})
		r.changed = append(r.changed, from[i] != to[i])
	}
	return r
}

// stays is the probability Jaccard index as the paper writes it, in O(N^2).
func stays(w, v []uint32) float64 {
	total := 0.0
	for i := range w {
		if w[i] == 0 || v[i] == 0 {
			continue
		}
		d := 0.0
		for j := range w {
			d += math.Max(float64(w[j])/float64(w[i]), float64(v[j])/float64(v[i]))
		}
		total += 1 / d
	}
	return total
}

func drawWeights(t *rapid.T, n int, label string) []uint32 {
	w := rapid.SliceOfN(rapid.Uint32Range(0, 9), n, n).Draw(t, label)
	w[rapid.IntRange(0, n-1).Draw(t, label+" owner")] = 1 + rapid.Uint32Range(0, 1000).Draw(t, label+" weight")
	return w
}

// The flows of rendezvous add up to what leaves by the paper's formula, to each
// node's change of share, and never join two unchanged nodes.
func TestHRWLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		w, v := drawWeights(t, n, "w"), drawWeights(t, n, "v")
		s := hrwMovement(rosterOf(w, v), -1)
		if want := 1 - stays(w, v); math.Abs(s.moved-want) > 1e-12 {
			t.Fatalf("moved %v, the formula says %v", s.moved, want)
		}
		checkLawSheet(t, s)
		if s.needless != 0 {
			t.Fatalf("%v moved between unchanged nodes", s.needless)
		}
	})
}

func checkLawSheet(t *rapid.T, s *sheet) {
	var flows float64
	for _, f := range s.flows {
		flows += f.amount
	}
	if math.Abs(flows-s.moved) > 1e-12 {
		t.Fatalf("flows add up to %v, moved %v", flows, s.moved)
	}
	for i := range s.before {
		if d := s.before[i] + s.in[i] - s.out[i] - s.after[i]; math.Abs(d) > 1e-12 {
			t.Fatalf("node %d: before %v + in %v - out %v is not after %v", i, s.before[i], s.in[i], s.out[i], s.after[i])
		}
	}
}

// Each flow against 200,000 keys that draw exponentials.
func TestHRWFlowsBySimulation(t *testing.T) {
	w, v := []uint32{1, 2, 3, 0, 5, 1}, []uint32{4, 2, 1, 2, 0, 1}
	s := hrwMovement(rosterOf(w, v), -1)
	const keys = 200_000
	count := map[uint64]float64{}
	draw := splitmix.Source(1)
	for range keys {
		a, b := -1, -1
		leastA, leastB := math.Inf(1), math.Inf(1)
		for i := range w {
			e := -math.Log((float64(draw.Next()>>11) + .5) / (1 << 53))
			if x := e / float64(w[i]); w[i] > 0 && x < leastA {
				a, leastA = i, x
			}
			if x := e / float64(v[i]); v[i] > 0 && x < leastB {
				b, leastB = i, x
			}
		}
		if a != b {
			count[flowKey(a, b)]++
		}
	}
	for _, f := range s.flows {
		got := count[flowKey(f.from, f.to)] / keys
		if sigma := math.Sqrt(f.amount / keys); math.Abs(got-f.amount) > 5*sigma {
			t.Errorf("flow %d -> %d: law %.5f, counted %.5f (sigma %.5f)", f.from, f.to, f.amount, got, sigma)
		}
		delete(count, flowKey(f.from, f.to))
	}
	if len(count) > 0 {
		t.Errorf("keys moved where the law says none do: %v", count)
	}
}

// jumpLocate is Jump with holes, written as simply as it can be.
func jumpLocate(h uint64, owners []int) int {
	for {
		k, b, j := h, int64(-1), int64(0)
		for j < int64(len(owners)) {
			b = j
			k = k*2862933555777941757 + 1
			j = int64(float64(b+1) * (float64(int64(1)<<31) / float64(k>>33+1)))
		}
		if owners[b] >= 0 {
			return owners[b]
		}
		h = splitmix.Mix(h + splitmix.Golden)
	}
}

func TestJumpLawBySimulation(t *testing.T) {
	tests := []struct {
		name     string
		from, to []int
		want     float64 // -1 = only by simulation
	}{
		{"one more bucket", []int{0, 1, 2, 3}, []int{0, 1, 2, 3, 4}, 1. / 5},
		{"last bucket gone", []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3}, 1. / 5},
		{"hole", []int{0, 1, 2, 3, 4}, []int{0, -1, 2, 3, 4}, 1. / 5},
		{"hole filled by another", []int{0, -1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, 1. / 5},
		{"bucket handed over", []int{0, 1, 2, 3}, []int{0, 4, 2, 3}, 1. / 4},
		{"two at once", []int{0, 0, 1, 1}, []int{0, 0, 1, 1, 1, 2}, -1},
		{"swap and hole", []int{0, 1, 2, 3, 1}, []int{1, 0, -1, 3, 1}, -1},
		{"grown, and a hole beyond the old end", []int{0, 1, 2, -1}, []int{0, 1, 2, -1, -1, 3}, -1},
		{"shrunk over a hole", []int{0, 1, 2, -1, -1, 3}, []int{0, -1, 2, 1}, -1},
	}
	const keys = 200_000
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := jumpMovement(rosterOf([]uint32{1, 1, 1, 1, 1}, []uint32{1, 1, 1, 1, 1}), tt.from, tt.to, -1)
			if tt.want >= 0 && math.Abs(s.moved-tt.want) > 1e-12 {
				t.Errorf("moved %v, want %v", s.moved, tt.want)
			}
			count := map[uint64]float64{}
			draw := splitmix.Source(2)
			for range keys {
				h := draw.Next()
				if a, b := jumpLocate(h, tt.from), jumpLocate(h, tt.to); a != b {
					count[flowKey(a, b)]++
				}
			}
			for _, f := range s.flows {
				got := count[flowKey(f.from, f.to)] / keys
				if sigma := math.Sqrt(f.amount / keys); math.Abs(got-f.amount) > 5*sigma {
					t.Errorf("flow %d -> %d: law %.5f, counted %.5f (sigma %.5f)", f.from, f.to, f.amount, got, sigma)
				}
				delete(count, flowKey(f.from, f.to))
			}
			if len(count) > 0 {
				t.Errorf("keys moved where the law says none do: %v", count)
			}
		})
	}
}

// The shares on both sides and the flows of jump agree for any two arrays.
func TestJumpLawAddsUp(t *testing.T) {
	bucket := rapid.IntRange(-1, 5)
	rapid.Check(t, func(t *rapid.T) {
		from := append(rapid.SliceOfN(bucket, 0, 9).Draw(t, "from"), rapid.IntRange(0, 5).Draw(t, "last from"))
		to := append(rapid.SliceOfN(bucket, 0, 9).Draw(t, "to"), rapid.IntRange(0, 5).Draw(t, "last to"))
		one := []uint32{1, 1, 1, 1, 1, 1}
		checkLawSheet(t, jumpMovement(rosterOf(one, one), from, to, -1))
	})
}

func TestIndependentLaw(t *testing.T) {
	s := independent(rosterOf([]uint32{1, 1, 2}, []uint32{1, 1, 2}), []float64{.25, .25, .5}, []float64{.5, .25, .25}, -1)
	if want := 1 - (.25*.5 + .25*.25 + .5*.25); math.Abs(s.moved-want) > 1e-15 {
		t.Errorf("moved %v, want %v", s.moved, want)
	}
	if s.needless != s.moved {
		t.Errorf("%v of %v between unchanged nodes, want all: no weight changed", s.needless, s.moved)
	}
}

// Every joint residue of every hash, counted.
func TestResidues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.IntRange(0, 3)
		a := rapid.SliceOfN(owner, 1, 12).Draw(t, "a")
		b := rapid.SliceOfN(owner, 1, 12).Draw(t, "b")
		one := []uint32{1, 1, 1, 1}
		s := residues(rosterOf(one, one), a, b, -1)
		moved, n := 0, len(a)*len(b) // a multiple of the period
		for h := range n {
			if a[h%len(a)] != b[h%len(b)] {
				moved++
			}
		}
		if want := float64(moved) / float64(n); math.Abs(s.moved-want) > 1e-12 {
			t.Fatalf("moved %v, counted %v", s.moved, want)
		}
		checkLawSheet(t, s)
	})
}

func TestModulo(t *testing.T) {
	r, err := Modulo(someNodes(3), someNodes(4))
	if err != nil {
		t.Fatal(err)
	}
	if r.Ratio != .75 || r.Minimum != .25 || r.Method != MethodResidues || r.Cause != CauseAdded {
		t.Errorf("ratio %v, minimum %v, method %s, cause %q; want .75, .25, residues, nodes added", r.Ratio, r.Minimum, r.Method, r.Cause)
	}
	if _, err := Modulo(nil, someNodes(1)); err == nil {
		t.Error("modulo of no nodes gave no error")
	}
	if _, err := Modulo(someNodes(1), []topology.Node{{ID: "a b", Weight: 1}}); err == nil {
		t.Error("a bad node gave no error")
	}
}
