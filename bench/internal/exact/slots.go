package exact

import (
	"fmt"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/slots"
)

// SlotsBalance is the spread of slots over nodes: quotas rounded down or up.
func SlotsBalance() (page.Table, error) {
	t := page.Table{Header: []string{"slots", "N", "peak", "least", "cv"}}
	for _, slotCount := range []int{slots.DefaultCount, slots.MaxCount} {
		for _, n := range sizes {
			s, err := slotSpread(slotCount, n)
			if err != nil {
				return t, err
			}
			t.Add(count(slotCount), count(n), f(s.Peak, 4), f(s.Least, 4), f(s.CV, 4))
		}
	}
	return t, nil
}

// SlotsCurve is the peak by nodes, for that many slots.
func SlotsCurve(slotCount int) ([]Point, error) {
	var peaks []Point
	for n := 10; n <= 2000; n += n/4 + 1 {
		s, err := slotSpread(slotCount, n)
		if err != nil {
			return nil, err
		}
		peaks = append(peaks, Point{float64(n), s.Peak})
	}
	return peaks, nil
}

func slotSpread(slotCount, n int) (shares.Spread, error) {
	rows, err := slots.Build(names(n), ones(n), nil, slotCount, 1)
	if err != nil {
		return shares.Spread{}, err
	}
	return shares.Of(tally(rows[0], n)), nil
}

// fleet is a set of nodes of weight 1 with replicas and zones; no zones at 0.
type fleet struct{ nodes, zones, replicas int }

// SlotsZones is what changes move with replicas in distinct zones, beside the
// bound below which nothing can move: equal numbers prove that each is least.
func SlotsZones() (page.Table, error) {
	t := page.Table{Header: []string{"16384 slots", "add one", "remove one", "weight x2", "one more a zone", "replace one"}}
	for _, c := range []fleet{{12, 3, 2}, {12, 3, 3}, {30, 5, 3}, {100, 3, 2}, {100, 4, 3}, {30, 0, 3}} {
		row, err := c.row()
		if err != nil {
			return t, err
		}
		t.Add(row...)
	}
	return t, nil
}

func (c fleet) row() ([]string, error) {
	zones := fmt.Sprintf("%d zones", c.zones)
	if c.zones == 0 {
		zones = "no zones"
	}
	row := []string{fmt.Sprintf("%d nodes, %s, %d copies", c.nodes, zones, c.replicas)}
	room := max(5, c.zones)
	ids := names(c.nodes + room)
	before := ones(c.nodes + room)
	clear(before[c.nodes:])
	prev, err := slots.Build(ids, before, c.zoneList(len(ids)), slots.DefaultCount, c.replicas)
	if err != nil {
		return nil, err
	}
	for _, change := range c.changes() {
		after := append(ones(c.nodes), make([]uint32, room)...)
		change(after)
		_, r, err := slots.Update(prev, ids, after, c.zoneList(len(ids)), slots.DefaultCount, c.replicas)
		if err != nil {
			return nil, err
		}
		row = append(row, fmt.Sprintf("%d of %d", r.Moves, r.Bound))
	}
	return row, nil
}

// changes set the weights after each change, given those before it.
func (c fleet) changes() []func(w []uint32) {
	middle := c.nodes / 2
	return []func(w []uint32){
		func(w []uint32) { w[c.nodes] = 1 },
		func(w []uint32) { w[middle] = 0 },
		func(w []uint32) { w[middle] = 2 },
		func(w []uint32) {
			for k := range max(1, c.zones) {
				w[c.nodes+k] = 1
			}
		},
		func(w []uint32) { // by a node of the same zone
			w[middle] = 0
			by := c.nodes
			for c.zones > 0 && by%c.zones != middle%c.zones {
				by++
			}
			w[by] = 1
		},
	}
}

func (c fleet) zoneList(n int) []uint16 {
	if c.zones == 0 {
		return nil
	}
	list := make([]uint16, n)
	for i := range list {
		list[i] = uint16(i % c.zones)
	}
	return list
}
