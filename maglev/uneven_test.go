package maglev_test

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/splitmix"
)

// Where one node has nearly all entries a walk to the next one takes up to a
// million steps; lookups do not walk there and find the same nodes.
func TestOneNodeHasNearlyAll(t *testing.T) {
	const size = 1_000_003
	ids, weights := []string{"a", "b", "c", "d"}, []uint32{1, 300_000, 0, 2}
	entries := mustBuild(t, ids, weights, size)
	table := mustNew(t, len(ids), entries)
	draw := splitmix.Source(1)
	dst := make([]int, 0, 3)
	for k := range 30_000 {
		h := draw.Next()
		dst = table.AppendReplicas(dst[:0], h, 2+k%2)
		if k > 20 {
			continue
		}
		at, _ := bits.Mul64(h, size)
		var want []int
		for i := range entries {
			if o := int(entries[(int(at)+i)%size]); len(want) < 2+k%2 && !slices.Contains(want, o) {
				want = append(want, o)
			}
		}
		if !slices.Equal(dst, want) {
			t.Fatalf("hash %#x has nodes %v, want %v", h, dst, want)
		}
	}
}
