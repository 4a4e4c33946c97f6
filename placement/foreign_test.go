package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/topology"
)

// foreignModes are all modes in their variants.
func foreignModes() []topology.Foreign {
	type f = topology.Foreign
	list := []f{
		{Mode: topology.ModeTwemproxy, Distribution: "modula", Hash: "md5"}, {Mode: topology.ModeTwemproxy, Hash: "crc32"},
		{Mode: topology.ModeTwemproxy, Hash: "murmur", HashTag: "{}"}, {Mode: topology.ModeSpymemcached, Distribution: "modula"},
		{Mode: topology.ModeHAProxy, Distribution: "consistent"}, {Mode: topology.ModeMemcachedFast, Points: 150},
		{Mode: topology.ModeLibmemcached, Distribution: "ketama", Hash: "md5"}, {Mode: topology.ModeLibmemcached, Distribution: "ketama_weighted"},
		{Mode: topology.ModeLibmemcached, Distribution: "consistent", Hash: "murmur3"}, {Mode: topology.ModeLibmemcached, Distribution: "ketama_spy", Hash: "md5"},
		{Mode: topology.ModeJump, Hash: "crc32"}, {Mode: topology.ModeEnvoyRing, Hash: "murmur2"}, {Mode: topology.ModeCaddy, Distribution: "2.10"},
		{Mode: topology.ModeNpmHashring, Distribution: "hash_ring"},
	}
	for _, m := range topology.Modes() {
		list = append(list, f{Mode: m})
	}
	return list
}

func foreignName(f topology.Foreign) string {
	f = topology.Spec{Compat: f}.Normal().Compat
	return strings.Join(strings.Fields(fmt.Sprint(f.Mode, " ", f.Distribution, " ", f.Hash)), " ")
}

// foreignNodes are n nodes with addresses in another order than their ids.
func foreignNodes(n int) []topology.Node {
	nodes := make([]topology.Node, n)
	for i := range nodes {
		nodes[i] = topology.Node{ID: fmt.Sprintf("n%03d", (i*7+3)%101), Addr: fmt.Sprintf("10.0.1.%d:1121%d", i+1, i%3),
			Weight: []uint32{1, 2, 1, 3}[i%4], Position: uint32(i + 1)}
	}
	return nodes
}

func foreignSpec(f topology.Foreign) topology.Spec { return topology.Spec{Compat: f} }

// foreignTable maps foreignNodes(n); under go-zero weights are percent.
func foreignTable(t testing.TB, prev *Table, f topology.Foreign, n int) *Table {
	t.Helper()
	nodes := foreignNodes(n)
	if f.Mode == topology.ModeGoZero {
		for i := range nodes {
			nodes[i].Weight *= 50
		}
	}
	if prev == nil {
		return first(t, foreignSpec(f), nodes)
	}
	return after(t, prev, foreignSpec(f), nodes)
}

// drawnKeys are texts of random numbers.
func drawnKeys(n int) []string {
	draw, keys := splitmix.Source(7), make([]string, n)
	for i := range keys {
		keys[i] = keyText(draw.Next())
	}
	return keys
}

// The movement that is computed is what keys do, in every mode, when a node
// comes; and it is computed by the method that the mode allows.
func TestForeignMovement(t *testing.T) {
	keys := drawnKeys(10_000)
	for _, f := range foreignModes() {
		from := foreignTable(t, nil, f, 6)
		to := foreignTable(t, from, f, 7)
		r := movement(t, from, to)
		counted := MovementKeys(from, to, slices.Values(keys))
		if diff := math.Abs(r.Ratio - counted.Ratio); diff > .02 {
			t.Errorf("%s: %s says %.4f moves, of %d keys %.4f do", foreignName(f), r.Method, r.Ratio, len(keys), counted.Ratio)
		}
		if want := foreignMethod(from); r.Method != want {
			t.Errorf("%s: method %s, want %s", foreignName(f), r.Method, want)
		}
		if (r.Interval != nil) != (r.Method == MethodSample) {
			t.Errorf("%s: method %s, interval %v", foreignName(f), r.Method, r.Interval)
		}
		total := 0.0
		for _, n := range r.Nodes {
			total += n.After
			if math.Abs(n.Before+n.In-n.Out-n.After) > 1e-9 {
				t.Errorf("%s: node %s: %+v does not add up", foreignName(f), n.ID, n)
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Errorf("%s: shares add up to %v", foreignName(f), total)
		}
		if again := movement(t, to, after(t, to, to.topo.Spec(), to.topo.Nodes())); again.Ratio != 0 {
			t.Errorf("%s: nothing changed, %v moves", foreignName(f), again.Ratio)
		}
	}
}

// foreignMethod is what the engine allows when a node comes.
func foreignMethod(t *Table) Method {
	switch t.kind {
	case kindSlots:
		return MethodTable
	case kindKeyed:
		return MethodSample
	case kindScore:
		if !t.foreign.Score.Lawful() {
			return MethodSample
		}
	case kindModulo:
		switch {
		case t.hash.Few():
			return MethodEnumeration
		case t.topo.Spec().Compat.TableSize > 0 || t.topo.Spec().Compat.Partitions > 0:
			return MethodTable
		}
		return MethodResidues
	case kindRing:
		if t.hash.Few() {
			return MethodEnumeration
		}
		return MethodArcs
	}
	return MethodFormula
}

// From a foreign mapping to a native one and back: what moves is what keys do.
func TestForeignToNative(t *testing.T) {
	keys := drawnKeys(4_000)
	for i, f := range foreignModes() {
		if testing.Short() && i%4 != 0 {
			continue
		}
		from := foreignTable(t, nil, f, 6)
		for _, name := range []string{"ring:40", "slots:1024 crc16 {}"} {
			to := after(t, from, specOf(name), foreignNodes(6))
			for _, pair := range [][2]*Table{{from, to}, {to, after(t, to, foreignSpec(f), from.topo.Nodes())}} {
				r, err := MovementWith(pair[0], pair[1], MovementOptions{SampleKeys: 4000})
				if err != nil {
					t.Fatal(err)
				}
				if counted := MovementKeys(pair[0], pair[1], slices.Values(keys)); math.Abs(r.Ratio-counted.Ratio) > .035 {
					t.Errorf("%s, %s: %s says %.4f moves, of %d keys %.4f do", foreignName(f), name, r.Method, r.Ratio, len(keys), counted.Ratio)
				}
				if r.BetweenUnchanged != 0 {
					t.Errorf("%s, %s: %v between unchanged nodes is no fault of a change of algorithm", foreignName(f), name, r.BetweenUnchanged)
				}
			}
		}
	}
}

// Mapping digests never change from release to release, do not depend on the
// order of nodes, and survive the published form.
func TestForeignDigests(t *testing.T) {
	var b strings.Builder
	for _, f := range foreignModes() {
		table := foreignTable(t, nil, f, 6)
		nodes := slices.Clone(table.topo.Nodes())
		slices.Reverse(nodes)
		if other := first(t, foreignSpec(f), nodes); other.Digest() != table.Digest() || !other.topo.Equal(table.topo) {
			t.Errorf("%s: another order of nodes gives another topology", foreignName(f))
		}
		saved, err := table.topo.MarshalSaved()
		if err != nil {
			t.Fatal(err)
		}
		back, err := topology.UnmarshalSaved(saved)
		if err != nil {
			t.Fatalf("%s: %v", foreignName(f), err)
		}
		if _, err := New(back); err != nil {
			t.Errorf("%s: %v", foreignName(f), err)
		}
		fmt.Fprintf(&b, "%s %s\n", table.Digest(), foreignName(f))
	}
	golden(t, "foreign-digests.golden", b.String())
}

// What a foreign mapping hashes shows in the digest and in the cause; what it does
// not hash does not.
func TestForeignDigestSees(t *testing.T) {
	f := func(mode topology.Foreign, change func(*topology.Node), seen bool, cause string) {
		t.Helper()
		was := foreignTable(t, nil, mode, 6)
		nodes := slices.Clone(was.topo.Nodes())
		change(&nodes[2])
		is := after(t, was, foreignSpec(mode), nodes)
		if (is.Digest() != was.Digest()) != seen {
			t.Errorf("%s: the digest changes: %v, want %v", mode.Mode, !seen, seen)
		}
		if got := is.topo.Cause().Kind; got != cause {
			t.Errorf("%s: cause %q, want %q", mode.Mode, got, cause)
		}
	}
	addr := func(n *topology.Node) { n.Addr = "10.9.9.9:1" }
	label := func(n *topology.Node) { n.Label = "4711" }
	last := func(n *topology.Node) { n.Position = 99 }
	weight := func(n *topology.Node) { n.Weight = 7 }
	down := func(n *topology.Node) { n.State = topology.StateDown }
	f(topology.Foreign{Mode: topology.ModeKetama}, addr, true, CauseLabels)
	f(topology.Foreign{Mode: topology.ModeGoRedisRing}, addr, false, CauseDetails) // shards have names
	f(topology.Foreign{Mode: topology.ModeGoRedisRing}, label, true, CauseLabels)
	f(topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent"}, addr, false, CauseDetails)
	f(topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent"}, label, true, CauseLabels)
	f(topology.Foreign{Mode: topology.ModeHAProxy, Distribution: "consistent"}, last, true, CauseLabels) // the id follows it
	f(topology.Foreign{Mode: topology.ModeGomemcache}, last, true, CauseLabels)
	f(topology.Foreign{Mode: topology.ModeGomemcache}, weight, false, CauseDetails)
	f(topology.Foreign{Mode: topology.ModeGomemcache}, down, false, CauseDetails)
	f(topology.Foreign{Mode: topology.ModeNginx}, weight, true, CauseWeights)
	f(topology.Foreign{Mode: topology.ModeNginx}, down, true, CauseRemoved)
	f(topology.Foreign{Mode: topology.ModeKetama}, down, false, CauseDetails)
}

// A node that is hashed by another text is a changed node: what moves to and from
// it is no fault.
func TestForeignLabelChangesTheNode(t *testing.T) {
	spec := foreignSpec(topology.Foreign{Mode: topology.ModeSpymemcached})
	was := first(t, spec, foreignNodes(6))
	nodes := foreignNodes(6)
	nodes[2].Addr = "10.9.9.9:11211"
	r := movement(t, was, after(t, was, spec, nodes))
	if r.Ratio < .2 || r.BetweenUnchanged != 0 || r.Remapped != 0 {
		t.Errorf("%+v", r.Summary)
	}
}

// A node that states no place in the list keeps the one it has; a new one comes
// last, though its id is the first.
func TestPositionsAreKept(t *testing.T) {
	spec := foreignSpec(topology.Foreign{Mode: topology.ModeGomemcache})
	was := first(t, spec, []topology.Node{{ID: "c", Weight: 1, Position: 1}, {ID: "b", Weight: 1, Position: 2}})
	is := after(t, was, spec, []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}})
	got := map[string]uint32{}
	for _, n := range is.topo.Nodes() {
		got[n.ID] = n.Position
	}
	if diff := cmp.Diff(map[string]uint32{"c": 1, "b": 2, "a": 3}, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	native := after(t, is, specOf("ring"), is.topo.Nodes())
	if n := native.topo.Node(0); n.Position != 0 {
		t.Errorf("a native topology has position %d", n.Position)
	}
}

// A node that takes another's place takes it in the list, too: where places are
// counted off, or hashed, only the replaced node's keys move.
func TestReplaceInPlace(t *testing.T) {
	for _, f := range []topology.Foreign{{Mode: topology.ModeGomemcache}, {Mode: topology.ModeJump}, {Mode: topology.ModeHAProxy, Distribution: "consistent"}, {Mode: topology.ModeHAProxy}} {
		was := foreignTable(t, nil, f, 5)
		old := was.topo.Node(1)
		nodes := slices.Clone(was.topo.Nodes())
		nodes[1] = topology.Node{ID: "by", Addr: "10.9.9.9:1", Weight: old.Weight}
		is, err := UpdateWith(was, draft(2, foreignSpec(f), nodes), UpdateOptions{Replace: map[string]string{old.ID: "by"}})
		if err != nil {
			t.Fatal(err)
		}
		if r := movement(t, was, is); math.Abs(r.Ratio-was.Shares()[1]) > 1e-9 || r.BetweenUnchanged != 0 {
			t.Errorf("%s: %v moves, the node had %v", foreignName(f), r.Ratio, was.Shares()[1])
		}
	}
}

// Foreign mappings that are for planning are planned with, and refused before
// they are published.
func TestPlanOnly(t *testing.T) {
	live := 0
	for _, f := range foreignModes() {
		table := foreignTable(t, nil, f, 4)
		d := topology.Declared{Cluster: "test", Spec: foreignSpec(f), Nodes: foreignNodes(4)}
		err := Check(nil, d)
		if table.PlanOnly() != errors.Is(err, ErrPlanOnly) || err != nil && !errors.Is(err, ErrPlanOnly) {
			t.Errorf("%s: plan only %v, but Check says %v", foreignName(f), table.PlanOnly(), err)
		}
		if err != nil && !strings.Contains(err.Error(), "compare it with what shall come") {
			t.Errorf("%s: no hint in %v", foreignName(f), err)
		}
		if table.PlanOnly() == f.Live() {
			t.Errorf("%s: live %v, plan only %v", foreignName(f), f.Live(), table.PlanOnly())
		}
		if f.Live() {
			live++
		}
	}
	if live < 24 {
		t.Errorf("only %d live mappings", live)
	}
	hsieh := topology.Foreign{Mode: topology.ModeTwemproxy, Hash: "hsieh"}
	if err := Check(nil, topology.Declared{Cluster: "test", Spec: foreignSpec(hsieh), Nodes: foreignNodes(2)}); !errors.Is(err, ErrPlanOnly) {
		t.Errorf("twemproxy with hsieh: %v", err)
	}
	shared := []topology.Node{{ID: "node-1", Weight: 100}, {ID: "node-11", Weight: 100}}
	if err := Check(nil, topology.Declared{Cluster: "test", Spec: foreignSpec(topology.Foreign{Mode: topology.ModeGoZero}), Nodes: shared}); !errors.Is(err, ErrPlanOnly) {
		t.Errorf("go-zero with shared points: %v", err)
	}
}

// Lookups of live modes allocate nothing.
func TestForeignLookupsDoNotAllocate(t *testing.T) {
	for _, f := range foreignModes() {
		table := foreignTable(t, nil, f, 6)
		if table.PlanOnly() {
			continue
		}
		i, keys := 0, []string{"a", "user:1", "{tag}:2", "a longer key than the others are"}
		if n := testing.AllocsPerRun(50, func() {
			i++
			if table.Locate(table.Hash(keys[i%len(keys)])) < 0 {
				t.Fatal("nobody")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a lookup", foreignName(f), n)
		}
	}
}
