package rendezvous_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// set is both forms for nodes given in any order.
func set(t testing.TB, nodes map[string]uint32) (map[string]placer, []string) {
	t.Helper()
	ids, weights := sorted(nodes)
	return both(t, ids, weights), ids
}

// owners is the owner's name for each hash.
func owners(p placer, ids []string, hs []uint64) []string {
	names := make([]string, len(hs))
	for i, h := range hs {
		names[i] = ids[p.Locate(h)]
	}
	return names
}

// Case hash-01: names that run into each other. Adding a node and removing it
// restores the map, and nobody owns what is not theirs.
func TestHash01(t *testing.T) {
	hs := hashes(100_000)
	for _, pair := range [][2]string{
		{"node1", "node11"},
		{"cache", "1cache"},
		{"n-1", "n-1-1"},
		{"a#1", "a"},
		{"h:1", "h:1:2"},
	} {
		first, second := pair[0], pair[1]
		three, threeIDs := set(t, map[string]uint32{first: 1, second: 1, "zz": 1})
		one, oneIDs := set(t, map[string]uint32{first: 1, "zz": 1})
		other, otherIDs := set(t, map[string]uint32{second: 1, "zz": 1})
		for form := range three {
			all := owners(three[form], threeIDs, hs)
			without2 := owners(one[form], oneIDs, hs)
			without1 := owners(other[form], otherIDs, hs)
			for i, owner := range all {
				if owner != second && without2[i] != owner || owner != first && without1[i] != owner {
					t.Fatalf("%s, %v: a key of %q goes to %q without %q and to %q without %q",
						form, pair, owner, without2[i], second, without1[i], first)
				}
			}
		}
		// The table, step by step.
		table := mustTable(t, oneIDs, []uint32{1, 1}, 1<<12)
		added, err := table.Update(threeIDs, []uint32{1, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		removed, err := added.Update(oneIDs, []uint32{1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(owners(removed, oneIDs, hs), owners(table, oneIDs, hs)) {
			t.Errorf("%v: adding and removing %q does not restore the map", pair, second)
		}
	}
}

// Case hash-03: the order in which nodes come and the path to a set of nodes
// leave no trace, not in replicas either and not where hashes have few values.
func TestHash03(t *testing.T) {
	nodes := map[string]uint32{}
	var names []string
	for i := range 50 {
		name := fmt.Sprintf("node-%d", i)
		nodes[name] = uint32(i%5 + 1)
		names = append(names, name)
	}
	hs := hashes(1000)
	for i := range 1 << 10 { // a hash of 12 bits
		hs = append(hs, uint64(i)<<52)
	}
	want, ids := set(t, nodes)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		// The set is reached one node after the other, with a guest in between.
		here := map[string]uint32{"guest": 3}
		got := mustTable(t, []string{"guest"}, []uint32{3}, 1<<12)
		for i, name := range names {
			here[name] = nodes[name]
			if i == 25 {
				delete(here, "guest")
			}
			var err error
			if got, err = got.Update(sorted(here)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(owners(want["table"], ids, hs), owners(got, ids, hs)) {
			t.Fatalf("nodes added in the order %v give another table", names)
		}
		for _, h := range hs[:50] {
			if a, b := want["table"].AppendReplicas(nil, h, 3), got.AppendReplicas(nil, h, 3); !slices.Equal(a, b) {
				t.Fatalf("replicas of %x: %v and %v", h, a, b)
			}
		}
	}
}

// Case weight-04: weight 0 owns nothing, and taking it away moves what it had.
func TestWeight04(t *testing.T) {
	ids := []string{"a", "b"}
	drained, before := both(t, ids, []uint32{1, 0}), both(t, ids, []uint32{1, 1})
	for form, p := range drained {
		moved, had := 0, 0
		for _, h := range hashes(100_000) {
			if got := p.Locate(h); got != 0 {
				t.Fatalf("%s: b has weight 0 and gets %x", form, h)
			}
			if got := p.AppendReplicas(nil, h, 2); !slices.Equal(got, []int{0}) {
				t.Fatalf("%s: two replicas of %x are %v, want a alone", form, h, got)
			}
			if before[form].Locate(h) == 1 {
				had++
			}
			if before[form].Locate(h) != 0 {
				moved++
			}
		}
		if moved != had || had == 0 {
			t.Errorf("%s: %d keys move, b had %d", form, moved, had)
		}
	}
	// All of weight 0: see TestNobody.
}
