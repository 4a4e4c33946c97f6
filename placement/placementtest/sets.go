package placementtest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/topology"
)

// replicas: the nodes of a key are distinct, own something, begin with the
// owner, are as many as asked for or as there are, and asking for more only adds
// to the list. Under the zone rule the first stand in distinct zones.
func (s Subject) replicas(t *testing.T) {
	keys := sampleKeys(20)
	rapid.Check(t, func(t *rapid.T) {
		nodes := s.drawNodes(t, 12)
		m := s.must(t, nil, nodes)
		if rapid.Bool().Draw(t, "after a change") {
			nodes, _ = s.edit(t, nodes)
			m = s.must(t, m, nodes)
		}
		for _, k := range keys {
			s.checkReplicas(t, m, k, nodes)
		}
	})
}

func (s Subject) checkReplicas(t tb, m Mapping, key string, nodes []topology.Node) {
	t.Helper()
	have := s.owners(nodes)
	all := m.Replicas(key, len(nodes)+1)
	if len(all) != have {
		t.Fatalf("key %q: %d nodes asked for, %d of %d owners found: %q", key, len(nodes)+1, len(all), have, all)
	}
	if all[0] != m.Owner(key) {
		t.Fatalf("key %q: owner %q, but the list begins with %q", key, m.Owner(key), all[0])
	}
	for i, id := range all {
		at := slices.IndexFunc(nodes, func(n topology.Node) bool { return n.ID == id && s.weight(n) > 0 })
		if at < 0 || slices.Contains(all[:i], id) {
			t.Fatalf("key %q: node %q is no owner or repeated: %q", key, id, all)
		}
	}
	for _, n := range []int{1, 2, s.copies(), s.copies() + 1} {
		if got := m.Replicas(key, n); !slices.Equal(got, all[:min(n, have)]) {
			t.Fatalf("key %q: the first %d are %q, but of all they are %q", key, n, got, all)
		}
	}
	if s.Zones {
		s.checkZones(t, key, all, nodes)
	}
}

// checkZones holds the copies in each zone against the most even way there is.
func (s Subject) checkZones(t tb, key string, all []string, nodes []topology.Node) {
	t.Helper()
	zoneOf, size := map[string]string{}, map[string]int{}
	for _, n := range nodes {
		zoneOf[n.ID] = n.Zone
		if s.weight(n) > 0 {
			size[n.Zone]++
		}
	}
	first := all[:min(s.copies(), len(all))]
	var got []int
	for zone := range size {
		held := 0
		for _, id := range first {
			if zoneOf[id] == zone {
				held++
			}
		}
		got = append(got, held)
	}
	slices.Sort(got)
	if want := evenly(size, len(first)); !slices.Equal(got, want) {
		t.Fatalf("key %q: replicas %q stand in zones %v times, want %v", key, first, got, want)
	}
}

// evenly deals copies to zones one after the other, none more than it has
// nodes, and returns how many each gets, ascending.
func evenly(size map[string]int, copies int) []int {
	got := map[string]int{}
	for copies > 0 {
		for zone, n := range size {
			if got[zone] < n && copies > 0 {
				got[zone]++
				copies--
			}
		}
	}
	var counts []int
	for zone := range size {
		counts = append(counts, got[zone])
	}
	slices.Sort(counts)
	return counts
}

// empty: without nodes nobody is found, and the next nodes are mapped as if
// nothing had been.
func (s Subject) empty(t *testing.T) {
	none := s.must(t, nil, nil)
	two := s.must(t, none, plain(2))
	again := s.must(t, two, nil)
	for _, m := range []Mapping{none, again} {
		if got := m.Owner("k"); got != "" {
			t.Errorf("without nodes key k belongs to %q", got)
		}
		if got := m.Replicas("k", 2); len(got) != 0 {
			t.Errorf("without nodes key k has replicas %q", got)
		}
	}
	s.checkShares(t, s.must(t, again, plain(3)), plain(3), sampleKeys(countedKeys))
}

// single: one node owns everything.
func (s Subject) single(t *testing.T) {
	m := s.must(t, nil, plain(1))
	for _, k := range sampleKeys(100) {
		s.checkReplicas(t, m, k, plain(1))
	}
}

// weightless: nodes of weight 0 and nodes that give their keys up own nothing;
// if all do, nobody is found.
func (s Subject) weightless(t *testing.T) {
	nodes := plain(2)
	nodes[1].Weight = 0
	before := s.must(t, nil, plain(2))
	m := s.must(t, before, nodes)
	for _, k := range sampleKeys(200) {
		s.checkReplicas(t, m, k, nodes)
	}
	nodes[0].State = topology.StateDraining
	if got := s.must(t, m, nodes).Owner("k"); got != "" {
		t.Errorf("where every node has weight 0 or drains, key k belongs to %q", got)
	}
}

// large: a cluster of ten thousand nodes builds, and a change of one node moves
// that node's keys only.
func (s Subject) large(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	n := s.Large
	if n == 0 {
		n = 10_000
	}
	nodes := plain(n)
	a := s.must(t, nil, nodes)
	keys := sampleKeys(200)
	for _, k := range keys[:20] {
		if got := m3(a, k); len(got) != min(3, n) {
			t.Fatalf("key %q has replicas %q", k, got)
		}
	}
	if s.Moves {
		return
	}
	gone := a.Owner(keys[0])
	s.movedOnly(t, a, s.must(t, a, without(nodes, gone)), gone, keys)
}

func m3(m Mapping, key string) []string { return slices.Compact(m.Replicas(key, 3)) }

// plain returns n nodes of weight 1 in three zones.
func plain(n int) []topology.Node {
	nodes := make([]topology.Node, n)
	for i := range nodes {
		nodes[i] = topology.Node{ID: fmt.Sprintf("node-%05d", i), Weight: 1, Zone: fmt.Sprintf("z%d", i%3)}
	}
	return nodes
}
