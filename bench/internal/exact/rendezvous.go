package exact

import (
	"math"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/topology"
)

// RendezvousBalance counts a million keys: by law all shares are equal.
func RendezvousBalance() (page.Table, error) {
	t := page.Table{Header: sampleHeader()}
	hs := hashes(floorbench.NumKeys)
	for _, n := range sizes {
		m, err := rendezvous.New(names(n), ones(n))
		if err != nil {
			return t, err
		}
		t.Add(sampled("exact", n, hs, m.Locate)...)
	}
	return t, nil
}

// RendezvousTable is the spread of the table form, whose slots fall on nodes
// like keys: exact shares beside sqrt((N-1)/slots).
func RendezvousTable() (page.Table, error) {
	t := page.Table{Header: []string{"slots", "N", "peak", "cv", "law: cv"}}
	for _, c := range []struct{ slots, n int }{{16384, 100}, {65536, 10}, {65536, 100}, {65536, 1000}, {1 << 20, 100}} {
		s, err := tableSpread(c.slots, c.n)
		if err != nil {
			return t, err
		}
		t.Add(count(c.slots), count(c.n), f(s.Peak, 3), f(s.CV, 4), f(shares.Noise(c.n, c.slots), 4))
	}
	return t, nil
}

// RendezvousCurve is the cv of the table form of 100 nodes by slots, and the
// law.
func RendezvousCurve() (measured, law []Point, err error) {
	for slots := 1 << 12; slots <= 1<<20; slots *= 4 {
		s, err := tableSpread(slots, 100)
		if err != nil {
			return nil, nil, err
		}
		measured = append(measured, Point{float64(slots), s.CV})
		law = append(law, Point{float64(slots), shares.Noise(100, slots)})
	}
	return measured, law, nil
}

func tableSpread(slots, n int) (shares.Spread, error) {
	m, err := rendezvous.NewTable(names(n), ones(n), slots)
	if err != nil {
		return shares.Spread{}, err
	}
	counts := make([]int, n)
	for s := range m.Slots() {
		counts[m.Slot(s)]++
	}
	return shares.Of(counts), nil
}

// RendezvousChanges is what changes of several nodes move, in the law of the
// hash, beside the minimum and the bound 2d/(1+d) for a minimum of d.
func RendezvousChanges() (page.Table, error) {
	t := page.Table{Header: []string{"20 nodes", "moved", "minimum", "x minimum", "at most"}}
	spec := topology.Spec{Algorithm: topology.Rendezvous}
	from, err := placement.Update(nil, draft(spec, equal(names(20)), 1))
	if err != nil {
		return t, err
	}
	for _, c := range severalNodes() {
		to, err := placement.Update(from, draft(spec, c.after, 2))
		if err != nil {
			return t, err
		}
		m, err := placement.Movement(from, to)
		if err != nil {
			return t, err
		}
		most := 2 / (1 + m.Minimum)
		t.Add(c.name, percent(m.Ratio, 2), percent(m.Minimum, 2), f(m.Ratio/m.Minimum, 3), f(most, 3))
	}
	return t, nil
}

// severalNodes are changes of 20 nodes of weight 1.
func severalNodes() []change {
	list := equal(names(20))
	five := equal(names(25))
	without := list[5:]
	halves, drawn := equal(names(20)), equal(names(20))
	for i := range halves {
		halves[i].Weight = uint32(1 + 2*(i%2))
		// 1 to 8, each of the doublings equally likely
		drawn[i].Weight = uint32(math.Exp2(float64(splitmix.Mix(uint64(i)+1) >> 62)))
	}
	replaced := equal(names(20))
	replaced[10].ID += "-b"
	return []change{
		{name: "add five", after: five},
		{name: "remove five", after: without},
		{name: "replace one by another name", after: replaced},
		{name: "every second to weight 3", after: halves},
		{name: "all weights drawn from 1, 2, 4, 8", after: drawn},
	}
}
