package slots_test

import (
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/slots"
)

// Where one node has nearly all slots, further nodes are searched for and not
// walked to; they are the same.
func TestOneNodeHasNearlyAll(t *testing.T) {
	const n = 40 // nodes, of which 35 have a slot each
	row := make([]uint16, slots.MaxCount)
	for o := range 35 {
		row[1000+o*37] = uint16(o + 4)
	}
	table, err := slots.New(n, slots.Rows{row})
	if err != nil {
		t.Fatal(err)
	}
	draw := splitmix.Source(1)
	for range 30 {
		h := draw.Next()
		var want []int
		for i := range row {
			if o := int(row[(table.Slot(h)+i)%len(row)]); !slices.Contains(want, o) {
				want = append(want, o)
			}
		}
		for _, k := range []int{2, 16, 17, 33, 36, n} {
			if got := table.AppendReplicas(nil, h, k); !slices.Equal(got, want[:min(k, 36)]) {
				t.Fatalf("hash %#x has nodes %v, want %v", h, got, want[:min(k, 36)])
			}
		}
	}
}
