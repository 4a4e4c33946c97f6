package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/topology"
)

// fieldKeys are k:0 .. k:99999.
func fieldKeys() []string {
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("k:%d", i)
	}
	return keys
}

// ownersOf returns the id of each key's owner.
func ownersOf(t testing.TB, table *Table, keys []string) []string {
	t.Helper()
	out := make([]string, len(keys))
	for i, k := range keys {
		x, err := table.Owner(k)
		if err != nil {
			t.Fatalf("key %q: %v", k, err)
		}
		out[i] = table.topo.Node(x).ID
	}
	return out
}

// differ counts the positions in which a and b differ.
func differ(a, b []string) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

func named1(ids ...string) []topology.Node {
	nodes := make([]topology.Node, len(ids))
	for i, id := range ids {
		nodes[i] = topology.Node{ID: id, Weight: 1}
	}
	return nodes
}

// allFive returns the default spec of every algorithm.
func allFive() []topology.Spec {
	var specs []topology.Spec
	for _, a := range topology.Algorithms() {
		specs = append(specs, topology.Spec{Algorithm: a})
	}
	return specs
}

// Labels without a separator: (node1, 10) and (node11, 0) must not be one text.
func TestFieldCase_hash_01(t *testing.T) {
	t.Parallel()
	keys := fieldKeys()
	for _, spec := range allFive() {
		for _, pair := range [][2]string{{"node1", "node11"}, {"cache", "1cache"}, {"n-1", "n-1-1"}, {"a#1", "a"}, {"h:1", "h:1:2"}} {
			t.Run(fmt.Sprint(spec.Algorithm, " ", pair), func(t *testing.T) {
				one := first(t, spec, named1(pair[0], "zz"))
				two := after(t, one, spec, named1(pair[0], pair[1], "zz"))
				back := after(t, two, spec, named1(pair[0], "zz"))
				if n := differ(ownersOf(t, one, keys), ownersOf(t, back, keys)); n != 0 && spec.Algorithm != topology.Maglev && spec.Algorithm != topology.Slots {
					t.Errorf("adding and removing %q left %d keys elsewhere", pair[1], n)
				}
				if r := movement(t, two, back); !within(r.Ratio, r.MinimumRealised, 1e-12) {
					t.Errorf("removing %q moved %v, the least is %v", pair[1], r.Ratio, r.MinimumRealised)
				}
				forth, backwards := first(t, spec, named1(pair[0], pair[1], "zz")), first(t, spec, named1("zz", pair[1], pair[0]))
				if n := differ(ownersOf(t, forth, keys), ownersOf(t, backwards, keys)); n != 0 {
					t.Errorf("%d owners depend on the order of listing", n)
				}
				for _, id := range ownersOf(t, after(t, forth, spec, named1(pair[1], "zz")), keys) {
					if id == pair[0] {
						t.Fatalf("a key belongs to %q, which was removed", id)
					}
				}
				if spec.Algorithm == topology.Ring && forth.ring.NumPoints() != 3*topology.DefaultVNodes {
					t.Errorf("%d points, want %d", forth.ring.NumPoints(), 3*topology.DefaultVNodes)
				}
			})
		}
	}
}

func within(a, b, tolerance float64) bool { return a-b <= tolerance && b-a <= tolerance }

// Under jump any node can leave at the minimum, a node that is down keeps its
// bucket, and a replaced one hands over its own keys only.
func TestFieldCase_hash_04(t *testing.T) {
	t.Parallel()
	spec := topology.Spec{Algorithm: topology.Jump}
	var nodes []topology.Node
	for i := range 10 {
		nodes = append(nodes, topology.Node{ID: fmt.Sprintf("shard-%d", i), Weight: 1})
	}
	keys := fieldKeys()
	full := first(t, spec, nodes)
	before := ownersOf(t, full, keys)
	for _, gone := range []int{9, 5, 3, 0} {
		next := after(t, full, spec, slices.Delete(slices.Clone(nodes), gone, gone+1))
		moved := differ(before, ownersOf(t, next, keys))
		r := movement(t, full, next)
		if !within(r.Ratio, .1, 1e-12) || !within(float64(moved), 10_000, 500) || r.BetweenUnchanged != 0 {
			t.Errorf("without shard-%d: %d of 100,000 keys moved, report %v (needless %v), want a tenth", gone, moved, r.Ratio, r.BetweenUnchanged)
		}
		if n := differ(before, ownersOf(t, after(t, next, spec, nodes), keys)); n != 0 {
			t.Errorf("shard-%d came back and %d keys did not", gone, n)
		}
	}
	down := slices.Clone(nodes)
	down[3].State = topology.StateDown
	if n := differ(before, ownersOf(t, after(t, full, spec, down), keys)); n != 0 {
		t.Errorf("%d keys changed owner when shard-3 was down", n)
	}
	other := slices.Clone(nodes)
	other[3].ID = "new"
	next := ownersOf(t, after(t, full, spec, other), keys)
	for i, id := range before {
		if want := map[bool]string{true: "new", false: id}[id == "shard-3"]; next[i] != want {
			t.Fatalf("key %q of %q went to %q when shard-3 was replaced", keys[i], id, next[i])
		}
	}
}

// Maglev tables end, are full, and give every node an entry, or are refused.
func TestFieldCase_hash_07(t *testing.T) {
	t.Parallel()
	spec := func(m uint32) topology.Spec { return topology.Spec{Algorithm: topology.Maglev, TableSize: m} }
	start := time.Now()
	for _, tt := range []struct {
		nodes int
		size  uint32
		names string // what the error must name; "" = accepted
	}{
		{5, 1000, "1009"}, {5, 1024, "1031"}, {5, 65536, "65537"}, {5, 0, ""}, {5, 1, "prime"}, {5, 2, "prime"},
		{20, 13, "13"}, {0, 65537, ""}, {10, 4294967291, "prime"}, {13, 13, ""},
	} {
		table, err := Update(nil, draft(1, spec(tt.size), someNodes(tt.nodes)))
		if (err == nil) != (tt.names == "") || err != nil && !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%d nodes, %d entries: error %v, want one that names %q", tt.nodes, tt.size, err, tt.names)
		}
		var field *topology.FieldError
		if err != nil && (!errors.As(err, &field) || field.Path != "maglev.table_size") {
			t.Errorf("%d nodes, %d entries: error %v has not the path maglev.table_size", tt.nodes, tt.size, err)
		}
		if err != nil {
			continue
		}
		for i, share := range table.Shares() {
			if share == 0 {
				t.Errorf("%d nodes, %d entries: node %d owns nothing", tt.nodes, tt.size, i)
			}
		}
		if _, err := table.Owner("k"); errors.Is(err, ErrNoNodes) != (tt.nodes == 0) {
			t.Errorf("%d nodes: lookup says %v", tt.nodes, err)
		}
	}
	draining := someNodes(10)
	for i := range draining {
		draining[i].State = topology.StateDraining
	}
	if _, err := first(t, spec(251), draining).Owner("k"); !errors.Is(err, ErrNoNodes) {
		t.Errorf("all nodes draining: lookup says %v, want ErrNoNodes", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// Weight 0 gives keys up and gets none; absent weights are read as 1 by cluster
// files, here 0 is 0.
func TestFieldCase_weight_04(t *testing.T) {
	t.Parallel()
	keys := fieldKeys()[:10_000]
	for _, spec := range allFive() {
		t.Run(string(spec.Algorithm), func(t *testing.T) {
			spec.Replicas = 2
			both := first(t, spec, named1("a", "b"))
			a1b0 := named1("a", "b")
			a1b0[1].Weight = 0
			spec.Replicas = 1
			one := first(t, spec, named1("a", "b"))
			for _, table := range []*Table{first(t, spec, a1b0), after(t, one, spec, a1b0)} {
				for _, k := range keys {
					if got := table.AppendReplicas(nil, table.Hash(k), 2); !slices.Equal(got, []int{0}) {
						t.Fatalf("key %q has replicas %v, want a alone", k, got)
					}
				}
			}
			r := movement(t, one, after(t, one, spec, a1b0))
			if share := one.Shares()[1]; !within(r.Ratio, share, 1e-12) || r.Nodes[1].Out != r.Ratio {
				t.Errorf("the plan moves %v, b owned %v, b gives %v", r.Ratio, share, r.Nodes[1].Out)
			}
			none := named1("a", "b")
			none[0].Weight, none[1].Weight = 0, 0
			if _, err := after(t, both, spec, none).Owner("k"); !errors.Is(err, ErrNoNodes) {
				t.Errorf("all weights 0: lookup says %v, want ErrNoNodes", err)
			}
		})
	}
}

// Weights are proportions: equal weights give equal shares within the stated
// bounds, whatever their size.
func TestFieldCase_weight_05(t *testing.T) {
	t.Parallel()
	two := func(w uint32) []topology.Node {
		return []topology.Node{{ID: "1.1.1.1", Weight: w}, {ID: "2.2.2.2", Weight: w}}
	}
	for _, tt := range []struct {
		vnodes, weight uint32
		low, high      float64
	}{{160, 1, .42, .58}, {512, 1, .45, .55}, {160, 10, .45, .55}, {160, 1000, .49, .51}} {
		share := first(t, topology.Spec{Algorithm: topology.Ring, VNodes: tt.vnodes}, two(tt.weight)).Shares()[0]
		if share < tt.low || share > tt.high {
			t.Errorf("%d points, weights %d:%d: share %v, want %v to %v", tt.vnodes, tt.weight, tt.weight, share, tt.low, tt.high)
		}
	}
	for _, n := range []int{2, 3, 5, 10, 20, 50, 100} {
		if peak := first(t, topology.Spec{Algorithm: topology.Ring}, someNodes(n)).Peak(); peak > 1.35 {
			t.Errorf("160 points, %d nodes: peak %v above 1.35", n, peak)
		}
		if peak := first(t, topology.Spec{Algorithm: topology.Ring, VNodes: 512}, someNodes(n)).Peak(); peak > 1.15 {
			t.Errorf("512 points, %d nodes: peak %v above 1.15", n, peak)
		}
	}
	for _, spec := range allFive() {
		small, large := someNodes(3), someNodes(3)
		for i := range small {
			small[i].Weight, large[i].Weight = uint32(i+1), uint32(100*(i+1))
		}
		a, b := first(t, spec, small), first(t, spec, large)
		for i, share := range b.Shares() {
			// A ring's points are vnodes x weight, so its map differs and its
			// shares come nearer; the rest have the same shares.
			if bound := map[bool]float64{true: .06, false: 1e-12}[spec.Algorithm == topology.Ring]; !within(share, a.Shares()[i], bound) {
				t.Errorf("%s: weights 1:2:3 give node %d %v, 100:200:300 give it %v", spec.Algorithm, i, a.Shares()[i], share)
			}
		}
	}
}

// Slots are dealt out by largest remainder: quotas differ by at most one, add up,
// a drained node ends with none, and a second plan is empty.
func TestFieldCase_mig_01(t *testing.T) {
	t.Parallel()
	spec := topology.Spec{Algorithm: topology.Slots}
	count := func(table *Table) map[string]int {
		n := map[string]int{}
		for s := range topology.DefaultSlots {
			n[table.topo.Node(table.Locate(slotPieces(topology.DefaultSlots).end(s))).ID]++
		}
		return n
	}
	check := func(name string, table *Table, nodes []topology.Node) {
		t.Helper()
		least, most, sum := topology.DefaultSlots, 0, 0
		got := count(table)
		for _, n := range nodes {
			if n.OwnerWeight() > 0 {
				least, most = min(least, got[n.ID]), max(most, got[n.ID])
			} else if got[n.ID] > 0 {
				t.Errorf("%s: node %s drains and keeps %d slots", name, n.ID, got[n.ID])
			}
			sum += got[n.ID]
		}
		if sum != topology.DefaultSlots || most-least > 1 {
			t.Errorf("%s: %d slots in all, %d to %d a node", name, sum, least, most)
		}
		again := after(t, table, spec, nodes)
		if r := movement(t, table, again); r.Ratio != 0 || again.Digest() != table.Digest() {
			t.Errorf("%s: a second plan moves %v", name, r.Ratio)
		}
	}
	start := time.Now()
	four := someNodes(4)
	a := first(t, spec, four)
	check("four nodes", a, four)
	four[2].State = topology.StateDraining
	b := after(t, a, spec, four)
	check("four nodes, one drained", b, four)
	if r := movement(t, a, b); r.Ratio != .25 || !r.Optimal {
		t.Errorf("draining one of four moves %v, optimal %v", r.Ratio, r.Optimal)
	}
	one := first(t, spec, someNodes(1))
	many := someNodes(201)
	c := after(t, one, spec, many)
	check("201 nodes", c, many)
	if r := movement(t, one, c); !r.Optimal {
		t.Errorf("201 nodes: moves %v, least %v", r.Ratio, r.MinimumRealised)
	}
	many[1].Weight = 0
	check("201 nodes, one drained", after(t, c, spec, many), many)
	check("three nodes", first(t, spec, someNodes(3)), someNodes(3))
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("plans took %v", d)
	}
}
