package ring_test

import (
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/ring"
)

// Where one node has nearly all points a walk to the next one takes a million
// steps; lookups do not walk there and find the same nodes.
func TestOneNodeHasNearlyAll(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	r, err := ring.New(ids, []uint32{1, 1_000_000, 0, 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	owner := make([]int, r.NumPoints())
	place := make([]uint64, r.NumPoints())
	for i := range owner {
		place[i], owner[i] = r.Point(i)
	}
	draw := splitmix.Source(1)
	dst := make([]int, 0, 3)
	for k := range 30_000 {
		h := draw.Next()
		dst = r.AppendReplicas(dst[:0], h, 2+k%2)
		if k > 20 {
			continue
		}
		at, _ := slices.BinarySearch(place, h)
		var want []int
		for i := range owner {
			if o := owner[(at+i)%len(owner)]; len(want) < 2+k%2 && !slices.Contains(want, o) {
				want = append(want, o)
			}
		}
		if !slices.Equal(dst, want) || dst[0] != r.Locate(h) {
			t.Fatalf("hash %#x has nodes %v, want %v", h, dst, want)
		}
	}
}
