package slots_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/slots"
)

// The thirty published cases: every one at the lower bound, which is the
// published one but for the rounding of quotas.
func TestThirtyCases(t *testing.T) {
	for _, c := range thirtyCases() {
		t.Run(c.String(), func(t *testing.T) {
			ids, before := c.before()
			prev := mustBuild(t, ids, before, c.zoneList(len(ids)), slots.DefaultCount, c.replicas)
			f := &fleet{weights: before, rows: prev}
			r := f.change(t, c.after(), c.zoneList(len(ids)), slots.DefaultCount, c.replicas)
			t.Logf("moves %d bound %d, primaries %d bound %d", r.Moves, r.Bound, r.PrimaryMoves, r.PrimaryBound)
			if r.Moves != r.Bound || abs(r.Bound-c.bound) > 2 {
				t.Errorf("%d moves, bound %d, published %d", r.Moves, r.Bound, c.bound)
			}
			if r.PrimaryMissing != 0 || float64(r.PrimaryMoves) > 1.05*float64(r.PrimaryBound) {
				t.Errorf("%d primaries moved, bound %d, %d missing", r.PrimaryMoves, r.PrimaryBound, r.PrimaryMissing)
			}
		})
	}
}

func abs(x int) int { return max(x, -x) }

// thirtyCase is a fleet and a change of it.
type thirtyCase struct {
	nodes, zones, replicas int
	change                 string
	bound                  int
}

func thirtyCases() []thirtyCase {
	var cases []thirtyCase
	for _, row := range []struct {
		nodes, zones, replicas int
		bounds                 [5]int
	}{
		{12, 3, 2, [5]int{2520, 2731, 2310, 6552, 2731}},
		{12, 3, 3, [5]int{3276, 4096, 2457, 9828, 4096}},
		{30, 5, 3, [5]int{1585, 1639, 1532, 7020, 1639}},
		{100, 3, 2, [5]int{324, 328, 320, 954, 328}},
		{100, 4, 3, [5]int{486, 492, 481, 1888, 492}},
		{30, 0, 3, [5]int{1585, 1639, 1532, 1585, 1639}},
	} {
		for i, change := range []string{"add", "remove", "weight x2", "a node a zone", "replace"} {
			cases = append(cases, thirtyCase{row.nodes, row.zones, row.replicas, change, row.bounds[i]})
		}
	}
	return cases
}

func (c thirtyCase) String() string {
	return fmt.Sprintf("N=%d Z=%d R=%d %s", c.nodes, c.zones, c.replicas, c.change)
}

func (c thirtyCase) zoneList(n int) []uint16 { return cycle(n, c.zones) }

// before returns the nodes, with room for those that come.
func (c thirtyCase) before() ([]string, []uint32) {
	ids, weights := names(c.nodes + max(5, c.zones))
	for i := c.nodes; i < len(weights); i++ {
		weights[i] = 0
	}
	return ids, weights
}

func (c thirtyCase) after() []uint32 {
	_, w := c.before()
	middle := c.nodes / 2
	switch c.change {
	case "add":
		w[c.nodes] = 1
	case "remove":
		w[middle] = 0
	case "weight x2":
		w[middle] = 2
	case "a node a zone":
		for k := range max(1, c.zones) {
			w[c.nodes+k] = 1
		}
	case "replace": // by a node of the same zone
		w[middle] = 0
		by := c.nodes
		for c.zones > 0 && by%c.zones != middle%c.zones {
			by++
		}
		w[by] = 1
	}
	return w
}

// Zones of very different size, heavy nodes, more copies than zones.
func TestShares(t *testing.T) {
	tests := []struct {
		name     string
		weights  []uint32
		zones    []uint16
		replicas int
		perZone  int
	}{
		{"one node in two zones, four in the third", []uint32{1, 1, 1, 1, 1, 1}, []uint16{7, 8, 9, 9, 9, 9}, 3, 1},
		{"a heavy node holds all slots", []uint32{100, 1, 1, 1}, nil, 2, 0},
		{"a heavy zone holds all slots", []uint32{50, 60, 1, 1}, []uint16{0, 0, 1, 2}, 2, 1},
		{"two zones for three copies", []uint32{1, 1, 1, 1, 1, 1}, []uint16{0, 0, 0, 1, 1, 1}, 3, 2},
		{"two zones for three copies, one of one node", []uint32{1, 1, 1, 1}, []uint16{0, 1, 1, 1}, 3, 2},
		{"three zones for four copies, one light", []uint32{9, 9, 9, 9, 1, 1}, []uint16{0, 0, 1, 1, 2, 2}, 4, 2},
		{"one node against five, five copies", []uint32{1, 1, 1, 1, 1, 1}, []uint16{0, 1, 1, 1, 1, 1}, 5, 4},
		{"one zone", []uint32{1, 2, 3}, []uint16{4, 4, 4}, 2, 2},
		{"fewer nodes than copies", []uint32{1, 0, 3}, []uint16{1, 1, 1}, 3, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fleet{}
			if r := f.change(t, tt.weights, tt.zones, 1000, tt.replicas); r.PerZone != tt.perZone {
				t.Errorf("at most %d copies a zone, want %d", r.PerZone, tt.perZone)
			}
		})
	}
}

// Fewer zones than copies, under many changes: the limits of every zone hold.
func TestRelaxedZones(t *testing.T) {
	for _, c := range []struct{ nodes, zones, replicas int }{{9, 2, 3}, {20, 3, 4}, {12, 3, 5}} {
		_, weights := names(c.nodes)
		f := &fleet{}
		moves, bound := 0, 0
		for h := range uint64(150) {
			h = splitmix.Mix(h + 1)
			weights[h%uint64(c.nodes)] = uint32(h >> 60 % 4)
			r := f.change(t, weights, cycle(c.nodes, c.zones), 256, c.replicas)
			if !r.ZonesRelaxed && r.Copies > c.zones {
				t.Fatalf("%d nodes, %d zones: report %+v", c.nodes, c.zones, r)
			}
			moves, bound = moves+r.Moves, bound+r.Bound
		}
		t.Logf("%+v: %d moves, bound %d", c, moves, bound)
		if float64(moves) > 1.1*float64(bound) {
			t.Errorf("%+v: %d moves, bound %d", c, moves, bound)
		}
	}
}

// A node that changes its zone gives up what it may not keep, and nothing else is lost.
func TestZoneChange(t *testing.T) {
	_, weights := names(12)
	zones := cycle(12, 4)
	f := &fleet{}
	f.change(t, weights, zones, 4096, 3)
	moved := slices.Clone(zones)
	moved[0] = 1
	r := f.change(t, weights, moved, 4096, 3)
	if r.Moves <= r.Bound || r.Moves > 2*1024 {
		t.Errorf("report %+v; the node held 1024 slots, about two thirds of them beside zone 1", r)
	}
}

// Ten thousand nodes, with and without replicas and zones.
func TestManyNodes(t *testing.T) {
	_, weights := names(10_000)
	for _, c := range []struct{ zones, replicas int }{{0, 1}, {3, 3}} {
		zones := cycle(10_000, c.zones)
		f := &fleet{}
		w := slices.Clone(weights)
		f.change(t, w, zones, slots.DefaultCount, c.replicas)
		w[5000] = 0
		if r := f.change(t, w, zones, slots.DefaultCount, c.replicas); r.Moves != r.Bound {
			t.Errorf("%+v: report %+v", c, r)
		}
		all := mustNew(t, 10_000, f.rows).AppendReplicas(nil, 1<<63, 10_000)
		if slices.Sort(all); len(slices.Compact(all)) != 9_999 {
			t.Errorf("%+v: not all nodes in the order, or one twice", c)
		}
	}
}
