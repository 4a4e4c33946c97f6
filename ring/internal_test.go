package ring

import (
	"math"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Case hash-01, derivation: the pairs of names that clash where a label is the
// name with the number written before or after it. No two pairs of name and
// number may share a place.
func TestHash01Labels(t *testing.T) {
	const points = 4000
	for _, pair := range [][2]string{
		{"node1", "node11"},
		{"cache", "1cache"},
		{"n-1", "n-1-1"},
		{"a#1", "a"},
		{"h:1", "h:1:2"},
	} {
		seen := map[uint64]string{}
		for _, id := range pair {
			base := xxhash.Sum64String(id)
			for j := range uint64(points) {
				p := place(base, j)
				if other, twice := seen[p]; twice {
					t.Errorf("%q and %q: point %d of %q is one of %q", pair[0], pair[1], j, id, other)
				}
				seen[p] = id
			}
		}
	}
}

// The number goes through mix before it meets the name, so that the points of
// two names are never the same but for a shift of the numbers.
func TestPlacesOfOneNameDiffer(t *testing.T) {
	base := xxhash.Sum64String("node1")
	for j := range uint64(1000) {
		for _, k := range []uint64{1, 2, 160} {
			if a, b := place(base, j), place(base+k, j); a == b {
				t.Fatalf("point %d stays at %x when the base moves by %d", j, a, k)
			}
		}
	}
}

// fromPoints is a ring of any points, so that ties and crowds can be had.
func fromPoints(nodes int, points []point) *Ring {
	ids, weights := make([]string, nodes), make([]uint32, nodes)
	for i := range ids {
		ids[i], weights[i] = string(rune('a'+i)), 1
	}
	r := newRing(ids, weights, 1, len(points))
	for i, p := range points {
		r.pos[i], r.owner[i] = p.pos, p.owner
	}
	insertionSort(r.pos, r.owner)
	r.countRanges()
	r.fillLines()
	return r
}

// Law: however crowded or equal the points are, a key belongs to the first
// point that is not before it, the smaller index first.
func TestCrowdsAndTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.Uint64().Draw(t, "near")
		step := rapid.SampledFrom([]uint64{1, 1 << 20, 1 << 50, 1 << 57}).Draw(t, "step")
		var points []point
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			points = append(points, point{
				near + step*rapid.Uint64Range(0, 40).Draw(t, "at"),
				uint16(rapid.IntRange(0, 19).Draw(t, "owner")),
			})
		}
		r := fromPoints(20, points)
		slices.SortFunc(points, comparePoints)
		hs := []uint64{0, math.MaxUint64}
		for _, p := range points {
			hs = append(hs, p.pos-1, p.pos, p.pos+1)
		}
		batch := make([]int, len(hs))
		r.LocateBatch(batch, hs)
		for i, h := range hs {
			want := points[0].owner
			if at := slices.IndexFunc(points, func(p point) bool { return p.pos >= h }); at >= 0 {
				want = points[at].owner
			}
			if got := r.Locate(h); got != int(want) || batch[i] != int(want) {
				t.Fatalf("Locate(%x) = %d, in a batch %d, want %d", h, got, batch[i], want)
			}
			if got := r.AppendReplicas(nil, h, 1); got[0] != int(want) {
				t.Fatalf("first replica of %x is %d, want %d", h, got[0], want)
			}
		}
	})
}

// Points at the same place survive a merge in the order of their owners.
func TestMergeOrdersTies(t *testing.T) {
	old := fromPoints(4, []point{{10, 1}, {20, 0}, {20, 2}, {20, 3}, {30, 1}})
	// Nodes 0 to 3 become 0, 1, 3, 4; a node 2 comes in, node 3 loses a point.
	next := newRing(make([]string, 5), make([]uint32, 5), 1, 6)
	next.merge(old, []point{{20, 2}, {40, 2}}, []point{{20, 3}}, []uint16{0, 1, 3, 4})
	var got []point
	for i := range next.pos {
		got = append(got, point{next.pos[i], next.owner[i]})
	}
	want := []point{{10, 1}, {20, 0}, {20, 2}, {20, 3}, {30, 1}, {40, 2}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(point{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// How often Locate has to take the exact path decides its speed.
func TestExactPathIsRare(t *testing.T) {
	ids, weights := make([]string, 100), make([]uint32, 100)
	for i := range ids {
		ids[i], weights[i] = string([]byte{'a' + byte(i/10), 'a' + byte(i%10)}), 1
	}
	r, err := New(ids, weights, 160)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 100_000
	exact := 0
	for i := range uint64(keys) {
		if r.inexact(mix(i)) {
			exact++
		}
	}
	if share := float64(exact) / keys; share > 0.015 {
		t.Errorf("%.4f of the lookups are exact, want at most 0.015", share)
	}
}

// inexact reports that the line of h does not tell its owner.
func (r *Ring) inexact(h uint64) bool {
	rng := h / (math.MaxUint64/uint64(len(r.lines)) + 1)
	lo, hi := r.starts[rng], r.starts[rng+1]
	return hi-lo > lanes && h > r.pos[lo+lanes-1]
}
