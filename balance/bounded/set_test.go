package bounded_test

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/balance/bounded"
)

func newSet(t testing.TB, o bounded.Options, c float64, weights ...float64) (*bounded.Group, *bounded.Set) {
	t.Helper()
	g := bounded.NewGroup(o)
	members := make([]bounded.Member, len(weights))
	for i, w := range weights {
		members[i] = bounded.Member{Node: g.NewNode(), Weight: w}
	}
	s, err := g.NewSet(members, c)
	if err != nil {
		t.Fatal(err)
	}
	g.Use(s)
	return g, s
}

func equal(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

// capOf is the rule in exact arithmetic: ceil(c (T + q) w / W), c being the decimal
// number that people write: 1.1, not the float64 a little above it.
func capOf(c float64, total, q int64, w, sum float64) *big.Int {
	x, _ := new(big.Rat).SetString(strconv.FormatFloat(c, 'g', -1, 64))
	x.Mul(x, new(big.Rat).SetInt64(total+q))
	x.Mul(x, new(big.Rat).SetFloat64(w))
	x.Quo(x, new(big.Rat).SetFloat64(sum))
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n
}

// The rule, for any weights and costs: who is under its cap admits, nobody else;
// somebody always does; after it the load is under the cap plus the cost.
func TestRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		weights := make([]float64, n)
		sum := 0.0
		for i := range weights {
			weights[i] = float64(rapid.IntRange(0, 9).Draw(t, "weight"))
			sum += weights[i]
		}
		c := rapid.SampledFrom([]float64{1, 1.1, 1.25, 1.5, 2, 10}).Draw(t, "c")
		costs := rapid.SampledFrom([]int64{1, 3, 1000, 1 << 20}).Draw(t, "dearest")
		g := bounded.NewGroup(bounded.Options{Every: rapid.SampledFrom([]int{0, 4}).Draw(t, "every")})
		members := make([]bounded.Member, n)
		for i := range members {
			members[i] = bounded.Member{Node: g.NewNode(), Weight: weights[i]}
		}
		s, err := g.NewSet(members, c)
		if err != nil {
			t.Fatal(err)
		}
		g.Use(s)
		type held struct {
			i int
			q int64
		}
		var open []held
		load := make([]int64, n)
		var total int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				k := rapid.IntRange(0, len(open)-1).Draw(t, "ends")
				s.Node(open[k].i).Release(open[k].q)
				load[open[k].i] -= open[k].q
				total -= open[k].q
				open = append(open[:k], open[k+1:]...)
				continue
			}
			q := rapid.Int64Range(1, costs).Draw(t, "cost")
			some := false
			for i := range n {
				most := int64(0)
				if weights[i] > 0 {
					most = capOf(c, total, q, weights[i], sum).Int64()
				}
				want := load[i] < most
				some = some || want
				if s.AdmitExact(i, q) != want {
					t.Fatalf("node %d of load %d with cap %d for cost %d: admitted is not %v", i, load[i], most, q, want)
				}
				if want {
					if i > 0 && rapid.Bool().Draw(t, "undo") {
						s.Node(i).Undo(q)
						continue
					}
					load[i] += q
					total += q
					open = append(open, held{i, q})
					break
				}
			}
			if !some && sum > 0 {
				t.Fatalf("nobody admits cost %d: loads %v, weights %v, c %v", q, load, weights, c)
			}
		}
		if got := g.Total(); got != total {
			t.Fatalf("total %d, want %d", got, total)
		}
		for i := range n {
			if got := s.Node(i).InFlight(); got != load[i] {
				t.Fatalf("node %d has %d in flight, want %d", i, got, load[i])
			}
		}
	})
}

// Field case bound-03: for every number of nodes and c >= 1 all partitions find a
// place, and no node has more than ceil(c * total / n).
func TestBound03(t *testing.T) {
	f := func(n, partitions int, c float64) {
		t.Helper()
		_, s := newSet(t, bounded.Options{}, c, equal(n)...)
		for k := range partitions {
			placed := false
			for i := range n {
				if placed = s.AdmitExact((k*7+i)%n, 1); placed {
					break
				}
			}
			if !placed {
				t.Fatalf("%d nodes, %d partitions, c %v: no room for partition %d", n, partitions, c, k)
			}
		}
		most := capOf(c, int64(partitions)-1, 1, 1, float64(n)).Int64()
		for i := range n {
			if got := s.Node(i).InFlight(); got > most {
				t.Fatalf("%d nodes, %d partitions, c %v: node %d has %d, more than %d", n, partitions, c, i, got, most)
			}
		}
	}
	f(1, 1, 1)
	f(2, 5, 1.5)
	for n := 3; n <= 60; n++ {
		f(n, 271, 1)
		f(n, 271, 1.25)
		f(n, 5*n, 1) // caps that are whole numbers
	}
	f(20, 7, 1)
	f(20, 7, 1000)
	for _, c := range []float64{0.5, -1, math.NaN(), math.Inf(1), 1e9} {
		if _, err := bounded.NewGroup(bounded.Options{}).NewSet(nil, c); !errors.Is(err, bounded.ErrInvalid) {
			t.Errorf("factor %v: %v", c, err)
		}
	}
	_, off := newSet(t, bounded.Options{}, 0, 1, 1)
	for range 100 {
		if !off.Admit(0, 1) {
			t.Fatal("refused without a bound")
		}
	}
}

// Field case bound-02: a request is released at the counter it was taken from,
// whatever joined and left meanwhile; no load is ever negative; the total is the
// sum of the nodes that count.
func TestBound02(t *testing.T) {
	g := bounded.NewGroup(bounded.Options{})
	a, b := g.NewNode(), g.NewNode()
	use := func(nodes ...*bounded.Node) *bounded.Set {
		members := make([]bounded.Member, len(nodes))
		for i, n := range nodes {
			members[i] = bounded.Member{Node: n, Weight: 1}
		}
		s, err := g.NewSet(members, 0)
		if err != nil {
			t.Fatal(err)
		}
		g.Use(s)
		return s
	}
	s := use(a, b)
	for range 10 {
		s.Admit(0, 1)
	}
	if use(b); g.Total() != 0 {
		t.Fatalf("the requests of a node that left count still: %d", g.Total())
	}
	again := g.NewNode()
	s = use(again, b)
	for range 5 {
		s.Admit(0, 1)
	}
	for range 10 {
		a.Release(1)
	}
	if a.InFlight() != 0 || again.InFlight() != 5 || g.Total() != 5 {
		t.Fatalf("loads %d and %d, total %d", a.InFlight(), again.InFlight(), g.Total())
	}
	if a.Release(1) || a.InFlight() != 0 || a.Stats().Bad != 1 {
		t.Fatalf("a release too many: load %d, bad %d", a.InFlight(), a.Stats().Bad)
	}
	if got := a.Stats().Picks; got != 10 {
		t.Fatalf("picks %d after a release too many, want 10", got)
	}
}

// The same under fire: nodes enter and leave the total while requests come and go.
func TestTotalIsTheSum(t *testing.T) {
	for _, every := range []int{0, 32} {
		g := bounded.NewGroup(bounded.Options{Every: every, View: bounded.Reported})
		nodes := make([]*bounded.Node, 8)
		for i := range nodes {
			nodes[i] = g.NewNode()
		}
		sets := make([]*bounded.Set, 0)
		for drop := range nodes {
			var members []bounded.Member
			for i, n := range nodes {
				w := 1.0
				if i == drop || i == (drop+1)%8 {
					w = 0
				}
				members = append(members, bounded.Member{Node: n, Weight: w})
			}
			s, err := g.NewSet(members, 1.25)
			if err != nil {
				t.Fatal(err)
			}
			sets = append(sets, s)
		}
		g.Use(sets[0])
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for k := range 20_000 {
					s := sets[(k/100)%len(sets)]
					i := (k*7 + w) % 8
					if q := int64(k%5 + 1); s.Admit(i, q) {
						if k%3 == 0 {
							s.Node(i).Report(int64(k%50), q)
						}
						s.Node(i).Release(q)
					}
				}
			})
		}
		wg.Go(func() {
			for k := range 5_000 {
				g.Use(sets[k%len(sets)])
			}
			g.Use(sets[3])
		})
		wg.Wait()
		sum := int64(0)
		for i := range nodes {
			if nodes[i].InFlight() != 0 {
				t.Fatalf("node %d has %d in flight, nothing is", i, nodes[i].InFlight())
			}
			if sets[3].Eligible(i) {
				sum += nodes[i].Others()
			}
		}
		if got := g.Total(); got != sum {
			t.Fatalf("every %d: total %d, the sum is %d", every, got, sum)
		}
	}
}

// Concurrent admissions never exceed a cap: what is checked is reserved.
func TestReserveIsAtomic(t *testing.T) {
	_, s := newSet(t, bounded.Options{}, 2, 1, 1)
	for range 100 {
		s.Node(1).Count(1)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				s.Admit(0, 1)
			}
		})
	}
	wg.Wait()
	// L < (T + 1), T = L + 100: no bound at c = 2 and two nodes; at c = 1.5 it is.
	_, tight := newSet(t, bounded.Options{}, 1.5, 1, 1)
	for range 100 {
		tight.Node(1).Count(1)
	}
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				tight.Admit(0, 1)
			}
		})
	}
	wg.Wait()
	// L < 0.75 (L + 101) until L = 303.
	if got := tight.Node(0).InFlight(); got != 303 {
		t.Fatalf("%d in flight, want 303", got)
	}
}

func TestPicksAreCountedBeyondTheWord(t *testing.T) {
	_, s := newSet(t, bounded.Options{}, 1.25, 1)
	const n = 3<<16 + 5
	for range n {
		if !s.Admit(0, 7) {
			t.Fatal("the only node refused")
		}
		s.Node(0).Release(7)
	}
	for range 10 {
		s.Admit(0, 7)
		s.Node(0).Undo(7)
	}
	if got := s.Node(0).Stats(); got.Picks != n || got.InFlight != 0 {
		t.Fatalf("picks %d, in flight %d; want %d, 0", got.Picks, got.InFlight, n)
	}
}
