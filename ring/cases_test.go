package ring_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/ring"
)

// set builds the ring of nodes given in any order.
func set(t testing.TB, vnodes uint32, nodes map[string]uint32) (*ring.Ring, []string) {
	t.Helper()
	ids, weights := sorted(nodes)
	return mustNew(t, ids, weights, vnodes), ids
}

// owners is the owner's name for each hash.
func owners(r *ring.Ring, ids []string, hs []uint64) []string {
	names := make([]string, len(hs))
	for i, h := range hs {
		names[i] = ids[r.Locate(h)]
	}
	return names
}

// Case hash-01: names that run into the number of a point. Adding a node and
// removing it restores the map, and nobody owns what is not theirs.
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
		one, oneIDs := set(t, 160, map[string]uint32{first: 1, "zz": 1})
		both, bothIDs := set(t, 160, map[string]uint32{first: 1, second: 1, "zz": 1})
		before := owners(one, oneIDs, hs)

		added, err := one.Update(bothIDs, []uint32{1, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if added.NumPoints() != 480 || both.NumPoints() != 480 {
			t.Errorf("%v: %d and %d points, want 480", pair, added.NumPoints(), both.NumPoints())
		}
		if !slices.Equal(owners(added, bothIDs, hs), owners(both, bothIDs, hs)) {
			t.Errorf("%v: an added node owns other keys than one that was there", pair)
		}
		removed, err := added.Update(oneIDs, []uint32{1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(owners(removed, oneIDs, hs), before) {
			t.Errorf("%v: adding and removing %q does not restore the map", pair, second)
		}
		rest, restIDs := set(t, 160, map[string]uint32{second: 1, "zz": 1})
		for i, name := range owners(rest, restIDs, hs) {
			if was := owners(both, bothIDs, hs[i:i+1])[0]; was != first && was != name {
				t.Fatalf("%v: without %q a key moves from %q to %q", pair, first, was, name)
			}
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
	hs := hashes(200)
	for i := range 200 { // a hash of 12 bits
		hs = append(hs, uint64(i)<<52)
	}
	want, ids := set(t, 40, nodes)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		// The set is reached one node after the other, with a guest in between.
		here := map[string]uint32{"guest": 3}
		got, _ := set(t, 40, here)
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
		if !slices.Equal(dump(want), dump(got)) {
			t.Fatalf("nodes added in the order %v give another ring", names)
		}
		checkAgainstModel(t, got, ids, hs)
	}
}

// Case weight-04: weight 0 owns nothing, and taking it away moves what it had.
func TestWeight04(t *testing.T) {
	ids := []string{"a", "b"}
	hs := hashes(100_000)
	drained := mustNew(t, ids, []uint32{1, 0}, 160)
	before := mustNew(t, ids, []uint32{1, 1}, 160)
	moved, had := 0, 0
	for _, h := range hs {
		if got := drained.Locate(h); got != 0 {
			t.Fatalf("b has weight 0 and gets %x", h)
		}
		if got := drained.AppendReplicas(nil, h, 2); !slices.Equal(got, []int{0}) {
			t.Fatalf("two replicas of %x are %v, want a alone", h, got)
		}
		was := before.Locate(h)
		if was == 1 {
			had++
		}
		if was != drained.Locate(h) {
			moved++
		}
	}
	if moved != had || had == 0 {
		t.Errorf("%d keys move, b had %d", moved, had)
	}
	// All of weight 0: see TestNobody.
}

// Case weight-05: weight multiplies the points of a node, it is not their number.
func TestWeight05(t *testing.T) {
	uuids := make([]uint64, 1000)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range uuids {
		uuids[i] = xxhash.Sum64String(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x",
			rng.Uint32(), rng.Uint32()>>16, rng.Uint32()>>20, rng.Uint32()>>20, rng.Uint64()>>16))
	}
	for _, c := range []struct {
		vnodes    uint32
		tolerance float64
	}{{160, 0.08}, {512, 0.05}} {
		for _, names := range [][2]string{{"a", "b"}, {"1.1.1.1", "2.2.2.2"}} {
			for _, w := range []uint32{1, 10, 1000} {
				r, ids := set(t, c.vnodes, map[string]uint32{names[0]: w, names[1]: w})
				for _, hs := range [][]uint64{hashes(100_000), uuids} {
					n := 0
					for _, name := range owners(r, ids, hs) {
						if name == ids[0] {
							n++
						}
					}
					share := float64(n) / float64(len(hs))
					if math.Abs(share-0.5) > c.tolerance {
						t.Errorf("%v %d:%d, %d points: %q has %.3f of %d keys", ids, w, w, c.vnodes, ids[0], share, len(hs))
					}
				}
			}
		}
	}
}

// Case weight-05: the proportions of the weights count, whatever their size, and
// the largest share stays in bounds.
func TestWeight05Shares(t *testing.T) {
	for _, scale := range []uint32{1, 100} {
		r := mustNew(t, []string{"a", "b", "c"}, []uint32{scale, 2 * scale, 3 * scale}, 160)
		for i, share := range shares(r) {
			want := float64(i+1) / 6
			// A node of k points in P has a share of variance near want^2/k.
			if bound := 4 * want / math.Sqrt(float64(scale)*160*float64(i+1)); math.Abs(share-want) > bound {
				t.Errorf("1:2:3 times %d: node %d has %.4f, want %.4f within %.4f", scale, i, share, want, bound)
			}
		}
	}
	for _, c := range []struct {
		vnodes uint32
		most   float64
	}{{160, 1.35}, {512, 1.15}} {
		for n := 2; n <= 100; n++ {
			nodes := map[string]uint32{}
			for i := range n {
				nodes[fmt.Sprintf("cache-%d:11211", i)] = 1
			}
			r, _ := set(t, c.vnodes, nodes)
			if peak := slices.Max(shares(r)) * float64(n); peak > c.most {
				t.Errorf("%d nodes of %d points: peak/mean %.3f, want at most %.2f", n, c.vnodes, peak, c.most)
			}
		}
	}
}

// A hash of 16 bits places keys too: the shares are those of its values.
func TestNarrowHash(t *testing.T) {
	f, err := keyhash.New(keyhash.CRC16, "{}")
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]uint32{}
	for i := range 10 {
		nodes[fmt.Sprintf("redis-%d", i)] = 1
	}
	r, ids := set(t, 160, nodes)
	hs := slices.Collect(f.Values())
	checkAgainstModel(t, r, ids, hs[:4096])
	count := make([]int, len(ids))
	for _, h := range hs {
		count[r.Locate(h)]++
	}
	for i, share := range shares(r) {
		if got := float64(count[i]) / float64(len(hs)); math.Abs(got-share) > 0.002 {
			t.Errorf("%s owns %.4f of the values and %.4f of the ring", ids[i], got, share)
		}
	}
}

// shares is the exact part of the ring that each node owns.
func shares(r *ring.Ring) []float64 {
	arc := make([]uint64, r.Len())
	last, _ := r.Point(r.NumPoints() - 1)
	for pos, owner := range r.Points() {
		arc[owner] += pos - last
		last = pos
	}
	part := make([]float64, len(arc))
	for i, a := range arc {
		part[i] = float64(a) * 0x1p-64
	}
	return part
}
