package placement

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/internal/splitmix"
)

// ends are pieces given by their last hashes.
type ends []uint64

func (e ends) len() int         { return len(e) }
func (e ends) end(i int) uint64 { return e[i] }

// locate returns the piece that holds h, by binary search.
func locate(p pieces, h uint64) int {
	return sort.Search(p.len(), func(i int) bool { return p.end(i) >= h })
}

func drawPieces(t *rapid.T, label string) pieces {
	if rapid.Bool().Draw(t, label+" is a table") {
		return slotPieces(rapid.IntRange(1, 40).Draw(t, label))
	}
	// Small numbers and large ones, so that points and borders meet.
	end := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64(), rapid.Uint64Range(math.MaxUint64-5, math.MaxUint64))
	list := append(rapid.SliceOfN(end, 0, 20).Draw(t, label), math.MaxUint64)
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return ends(list)
}

// The parts follow each other without gap, cover the key space, and lie in the
// pieces that they claim.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPieces(t, "a"), drawPieces(t, "b")
		next, total := uint64(0), units{}
		merge(a, b, func(first, last uint64, i, j int) {
			if first != next {
				t.Fatalf("part begins at %d, want %d", first, next)
			}
			for _, h := range []uint64{first, last} {
				if locate(a, h) != i || locate(b, h) != j {
					t.Fatalf("hash %d is in pieces %d and %d, not %d and %d", h, locate(a, h), locate(b, h), i, j)
				}
			}
			next = last + 1
			total.add(width(first, last))
		})
		if (total != units{hi: 1}) {
			t.Fatalf("parts add up to %v, want 2^64", total)
		}
		one, sides := units{}, 0
		walk(a, func(first, last uint64, i int) {
			if locate(a, last) != i || locate(a, first) != i {
				t.Fatalf("walk: %d..%d is not piece %d", first, last, i)
			}
			one.add(width(first, last))
			sides++
		})
		if (one != units{hi: 1}) || sides > a.len() {
			t.Fatalf("walk adds up to %v in %d parts", one, sides)
		}
	})
}

// A slot's last hash is in the slot and the next hash is not.
func TestSlotEnds(t *testing.T) {
	for _, n := range []int{1, 2, 3, 13, 251, 16384, 65537} {
		for i := range n {
			h := slotPieces(n).end(i)
			if got := slotOf(h, n); got != i {
				t.Fatalf("%d slots: the last hash of slot %d is in slot %d", n, i, got)
			}
			if h != math.MaxUint64 && slotOf(h+1, n) != i+1 {
				t.Fatalf("%d slots: hash %d after slot %d is in slot %d", n, h+1, i, slotOf(h+1, n))
			}
		}
	}
}

func slotOf(h uint64, n int) int {
	x := new(big.Int).Mul(new(big.Int).SetUint64(h), big.NewInt(int64(n)))
	return int(x.Rsh(x, 64).Int64())
}

func TestUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (units, *big.Int) {
			u := units{rapid.Uint64Range(0, 1<<20).Draw(t, label+" hi"), rapid.Uint64().Draw(t, label+" lo")}
			b := new(big.Int).SetUint64(u.hi)
			return u, b.Lsh(b, 64).Add(b, new(big.Int).SetUint64(u.lo))
		}
		u, bu := draw("u")
		v, bv := draw("v")
		above := new(big.Int).Sub(bu, bv)
		if above.Sign() < 0 {
			above.SetInt64(0)
		}
		if got := u.above(v).float(); got != toFloat(above) {
			t.Fatalf("%v above %v = %v, want %v", u, v, got, above)
		}
		s := u
		s.add(v)
		if got := s.float(); got != toFloat(new(big.Int).Add(bu, bv)) {
			t.Fatalf("%v + %v = %v", u, v, got)
		}
	})
}

// toFloat rounds as float does: high word, then low word, then their sum.
func toFloat(b *big.Int) float64 {
	lo := new(big.Int).And(b, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	return float64(new(big.Int).Rsh(b, 64).Uint64())*(1<<64) + float64(lo)
}

// A set of replicas is compared as a set; pairs of copies avoid joining nodes
// that did not change.
func TestLedgerSets(t *testing.T) {
	// Node 4 is new, node 3 leaves; 0, 1 and 2 did not change.
	r := rosterOf([]uint32{1, 1, 1, 1, 0}, []uint32{1, 1, 1, 0, 1})
	tests := []struct {
		name                       string
		a, b                       []int
		moved, needless, reordered int
		flows                      map[[2]int]int
	}{
		{"the same", []int{0, 1}, []int{0, 1}, 0, 0, 0, nil},
		{"another order", []int{0, 1}, []int{1, 0}, 0, 0, 1, nil},
		{"one copy to the new node", []int{0, 1}, []int{4, 0}, 1, 0, 0, map[[2]int]int{{1, 4}: 1}},
		{"needless", []int{0, 1}, []int{0, 2}, 1, 1, 0, map[[2]int]int{{1, 2}: 1}},
		{"two copies, none needless", []int{0, 3}, []int{4, 1}, 2, 0, 0, map[[2]int]int{{0, 4}: 1, {3, 1}: 1}},
		{"two copies, one needless", []int{0, 1}, []int{4, 2}, 2, 1, 0, map[[2]int]int{{1, 4}: 1, {0, 2}: 1}},
		{"more replicas", []int{0}, []int{0, 1, 4}, 2, 0, 0, map[[2]int]int{{-1, 1}: 1, {-1, 4}: 1}},
		{"fewer replicas", []int{0, 1, 2}, []int{0}, 0, 0, 0, map[[2]int]int{{1, -1}: 1, {2, -1}: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLedger(r)
			l.set(units{lo: 1}, tt.a, tt.b)
			s := l.sheet(1, -1)
			got := map[[2]int]int{}
			for _, f := range s.flows {
				got[[2]int{f.from, f.to}] = int(f.amount)
			}
			if len(tt.flows)+len(got) > 0 {
				if d := cmp.Diff(tt.flows, got); d != "" {
					t.Errorf("flows (-want +got):\n%s", d)
				}
			}
			if d := cmp.Diff([]float64{float64(tt.moved), float64(tt.needless), float64(tt.reordered)}, []float64{s.moved, s.needless, s.reordered}); d != "" {
				t.Errorf("moved, needless, reordered (-want +got):\n%s", d)
			}
			for i := range s.before {
				if s.before[i]+s.in[i]-s.out[i] != s.after[i] {
					t.Errorf("node %d: before %v + in %v - out %v is not after %v", i, s.before[i], s.in[i], s.out[i], s.after[i])
				}
			}
		})
	}
}

func TestTopFlows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "amounts")
		most := rapid.IntRange(1, 10).Draw(t, "most")
		top, all := newTopFlows(most), newTopFlows(-1)
		for i, a := range amounts {
			top.add(flow{i, 0, float64(a)})
			all.add(flow{i, 0, float64(a)})
		}
		got, left := top.sorted()
		want, _ := all.sorted()
		if cut := min(most, len(want)); left != len(want)-cut || len(got) != cut {
			t.Fatalf("kept %d, left %d of %d", len(got), left, len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("flow %d is %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// The published values of the interval: Wilson 1927, as any table has it.
func TestWilson(t *testing.T) {
	tests := []struct{ p, n, low, high float64 }{
		{0, 10, 0, 0.2775},
		{.5, 10, 0.2366, 0.7634},
		{.1, 100, 0.0552, 0.1744},
		{1, 20, 0.8389, 1},
	}
	for _, tt := range tests {
		low, high := wilson(tt.p, tt.n)
		if math.Abs(low-tt.low) > 1e-4 || math.Abs(high-tt.high) > 1e-4 {
			t.Errorf("p %v of %v: %.4f..%.4f, want %.4f..%.4f", tt.p, tt.n, low, high, tt.low, tt.high)
		}
	}
}

func TestTargets(t *testing.T) {
	nodes := func(pairs ...any) []node {
		var list []node
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, node{weight: uint32(pairs[i].(int)), zone: pairs[i+1].(string), there: true})
		}
		return list
	}
	tests := []struct {
		name     string
		nodes    []node
		replicas int
		zones    bool
		want     []float64
	}{
		{"weights", nodes(1, "", 3, "", 0, ""), 1, false, []float64{.25, .75, 0}},
		{"two replicas", nodes(1, "", 1, "", 2, ""), 2, false, []float64{.5, .5, 1}},
		{"a heavy node is full", nodes(1, "", 1, "", 8, ""), 2, false, []float64{.5, .5, 1}},
		{"fewer nodes than replicas", nodes(1, "", 5, ""), 3, false, []float64{1, 1}},
		{"as many zones as replicas: every zone holds every key", nodes(1, "a", 1, "a", 1, "b"), 2, true, []float64{.5, .5, 1}},
		{"more zones than replicas", nodes(1, "a", 1, "a", 1, "b", 1, "c"), 2, true, []float64{.5, .5, .5, .5}},
		{"one zone: weights alone", nodes(1, "a", 1, "a", 2, "a"), 2, true, []float64{.5, .5, 1}},
		{"two zones, three replicas: one or two each", nodes(1, "a", 1, "a", 1, "a", 1, "b", 1, "b"), 3, true, []float64{.6, .6, .6, .6, .6}},
		{"two zones, three replicas: at most two", nodes(5, "a", 5, "a", 5, "a", 1, "b", 1, "b"), 3, true, []float64{2. / 3, 2. / 3, 2. / 3, .5, .5}},
		{"a zone of one node", nodes(1, "a", 1, "a", 1, "a", 9, "b"), 3, true, []float64{2. / 3, 2. / 3, 2. / 3, 1}},
		{"nobody", nodes(0, "a"), 2, true, []float64{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := targets(tt.nodes, tt.replicas, tt.zones)
			for i := range got {
				if math.Abs(got[i]-tt.want[i]) > 1e-12 {
					t.Fatalf("targets %v, want %v", got, tt.want)
				}
			}
		})
	}
}

// The exact figures of every pair of rings and tables against 200,000 hashes:
// ratio, each node's part, and each flow within five standard deviations.
func TestExactAgainstSample(t *testing.T) {
	t.Parallel()
	specs := []string{"ring", "ring:40", "maglev:2039", "slots:4096", "rendezvous:1024", "ring:40 r3", "maglev:251 r3", "ring:40 r3 zones"}
	for i, a := range specs {
		b := specs[(i+1)%len(specs)]
		for _, pair := range [][2]string{{a, a}, {a, b}} {
			t.Run(fmt.Sprint(pair[0], " to ", pair[1]), func(t *testing.T) {
				from, to := first(t, specOf(pair[0]), zonedNodes(9, 3)), first(t, specOf(pair[1]), zonedNodes(11, 3))
				exact := newComparison(from, to, MovementOptions{MaxFlows: -1, SampleKeys: 100_000})
				if exact.method == MethodSample || exact.method == MethodIndependent {
					t.Fatalf("method %s is not exact", exact.method)
				}
				want, got := exact.sheet(), exact.sample()
				near := func(what string, w, g float64) {
					t.Helper()
					p, n := w/want.total, got.total
					sigma := math.Sqrt(max(p, 1/n) / n)
					if math.Abs(g/n-p) > 5*sigma {
						t.Errorf("%s: exact %.5f, sampled %.5f (sigma %.5f)", what, p, g/n, sigma)
					}
				}
				near("moved", want.moved, got.moved)
				near("reordered", want.reordered, got.reordered)
				for i, id := range exact.roster.ids {
					near(id+" before", want.before[i], got.before[i])
					near(id+" after", want.after[i], got.after[i])
					near(id+" in", want.in[i], got.in[i])
					near(id+" out", want.out[i], got.out[i])
				}
				seen := map[uint64]float64{}
				for _, f := range got.flows {
					seen[flowKey(f.from, f.to)] = f.amount
				}
				for _, f := range want.flows {
					near(fmt.Sprint("flow ", f.from, " to ", f.to), f.amount, seen[flowKey(f.from, f.to)])
					delete(seen, flowKey(f.from, f.to))
				}
				if len(seen) > 0 {
					t.Errorf("keys moved where the exact method says none do: %v", seen)
				}
			})
		}
	}
}

// A ring's points met one by one: every hash at a point, before it and after it.
func TestRingOwnersAtPoints(t *testing.T) {
	table := first(t, specOf("ring:40"), zonedNodes(5, 1))
	p := table.pieces()
	walk(p, func(_, last uint64, i int) {
		_, want := table.ring.Point(i % table.ring.NumPoints())
		if got := table.Locate(last); got != want {
			t.Fatalf("hash %d is owned by %d, point %d by %d", last, got, i, want)
		}
	})
	draw := splitmix.Source(3)
	for range 10_000 {
		h := draw.Next()
		_, want := table.ring.Point(locate(p, h) % table.ring.NumPoints())
		if got := table.Locate(h); got != want {
			t.Fatalf("hash %d is owned by %d, its arc by %d", h, got, want)
		}
	}
}
