package placement

import (
	"math"
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/splitmix"
)

// Under the zone rule replicas are found one by one where zones are so uneven that
// the beginning of the order does not have them; they are those that the whole
// order gives.
func TestUnevenZones(t *testing.T) {
	nodes := zonedNodes(120, 1)
	nodes[17].Zone, nodes[80].Zone, nodes[81].Zone = "b", "c", "c"
	nodes[17].Weight, nodes[81].Weight, nodes[90].Weight = 3, 2, 7
	nodes[5].Weight = 0
	for _, spec := range []string{"ring:40 r3 zones", "maglev:4093 r3 zones", "jump r3 zones", "rendezvous r3 zones", "rendezvous:16384 r3 zones", "ring:1 r5 zones", "jump r5 zones"} {
		t.Run(spec, func(t *testing.T) {
			table := first(t, specOf(spec), nodes)
			draw := splitmix.Source(3)
			for range 300 {
				h := draw.Next()
				n := int(table.topo.Spec().Replicas)
				want := table.prefer(nil, h, table.owners)
				if !table.zoning.arrange(want, n) {
					t.Fatal("the whole order does not do")
				}
				for k := 2; k <= n; k++ {
					if got := table.AppendReplicas([]int{7}, h, k)[1:]; !slices.Equal(got, want[:k]) {
						t.Fatalf("hash %#x has nodes %v, want %v", h, got, want[:k])
					}
				}
			}
		})
	}
}

// The lists of arcs side by side that one node owns are made once; they are those
// that lookups give.
func TestArcsOfOneOwner(t *testing.T) {
	nodes := zonedNodes(5, 2)
	nodes[2].Weight = 3000
	for _, spec := range []string{"ring:1 r2", "ring:1 r3 zones"} {
		a := first(t, specOf(spec), nodes)
		more := slices.Clone(nodes)
		more[4].Weight = 9
		b := after(t, a, specOf(spec), more)
		copies := float64(b.copies())
		after := make([]float64, b.Len())
		walk(b.pieces(), func(first, last uint64, _ int) {
			for _, o := range b.AppendReplicas(nil, last, b.copies()) {
				after[o] += width(first, last).float() / (1 << 64) / copies
			}
		})
		for i, n := range movement(t, a, b).Nodes {
			if math.Abs(n.After-after[i]) > 1e-9 {
				t.Errorf("%s: node %s holds %v after, by lookups %v", spec, n.ID, n.After, after[i])
			}
		}
	}
}
