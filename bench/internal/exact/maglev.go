package exact

import (
	"slices"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// bigTable is the larger table of the Maglev paper.
const bigTable = 655_373

// MaglevBalance is the spread of the paper's fill.
func MaglevBalance() (page.Table, error) {
	t := page.Table{Header: []string{"entries", "N", "peak", "least", "cv"}}
	for _, size := range []uint32{maglev.DefaultSize, bigTable} {
		for _, n := range sizes {
			entries, err := maglev.Build(names(n), ones(n), size)
			if err != nil {
				return t, err
			}
			s := shares.Of(tally(entries, n))
			t.Add(count(int(size)), count(n), f(s.Peak, 4), f(s.Least, 4), f(s.CV, 4))
		}
	}
	return t, nil
}

func tally(entries []uint16, n int) []int {
	counts := make([]int, n)
	for _, e := range entries {
		counts[e]++
	}
	return counts
}

// MaglevMovement is what changes of one node move: with a refill, and with a
// table filled anew as in the paper.
func MaglevMovement() (page.Table, error) {
	t := page.Table{Header: movementHeader()}
	for _, size := range []uint32{maglev.DefaultSize, bigTable} {
		for _, n := range sizes {
			r, err := changes(topology.Spec{Algorithm: topology.Maglev, TableSize: size}, n)
			if err != nil {
				return t, err
			}
			t.Add(r.cells(count(int(size))+", refilled", n)...)
		}
		for _, n := range sizes {
			r, err := filledAnew(size, n)
			if err != nil {
				return t, err
			}
			t.Add(r.cells(count(int(size))+", filled anew", n)...)
		}
	}
	return t, nil
}

// filledAnew is changes for tables that are built from the nodes each time.
func filledAnew(size uint32, n int) (ratios, error) {
	var r ratios
	before, err := maglev.Build(names(n), ones(n), size)
	if err != nil {
		return r, err
	}
	for _, c := range oneNode(n) {
		ids, weights := split(c.after)
		after, err := maglev.Build(ids, weights, size)
		if err != nil {
			return r, err
		}
		changed := names(n)[n/2]
		if c.name == "add" {
			changed = ""
		}
		d := compare(before, names(n), after, ids, changed)
		least := leastMove(names(n), ones(n), ids, weights)
		unit := 1 / float64(size) / least
		r.note(c, float64(d.moved)*unit, float64(d.moved)/float64(d.least), float64(d.unchanged)*unit)
	}
	return r, nil
}

func split(nodes []topology.Node) (ids []string, weights []uint32) {
	slices.SortFunc(nodes, func(a, b topology.Node) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	for _, n := range nodes {
		ids, weights = append(ids, n.ID), append(weights, n.Weight)
	}
	return ids, weights
}

// leastMove is the minimum by weight: sum max(0, q - p).
func leastMove(ids []string, weights []uint32, nextIDs []string, next []uint32) float64 {
	p := map[string]float64{}
	for i, id := range ids {
		p[id] = float64(weights[i]) / float64(total(weights))
	}
	sum := 0.
	for i, id := range nextIDs {
		sum += max(0, float64(next[i])/float64(total(next))-p[id])
	}
	return sum
}

func total(weights []uint32) int {
	sum := 0
	for _, w := range weights {
		sum += int(w)
	}
	return sum
}

// difference is how two tables differ, in entries.
type difference struct {
	moved     int // have another owner
	unchanged int // of these, between nodes that are in both lists and stay as they are
	least     int // sum max(0, after - before) over the nodes
}

// compare compares two tables; the node changed, if any, leaves or has another
// weight.
func compare(before []uint16, ids []string, after []uint16, nextIDs []string, changed string) difference {
	stays, gained := map[string]bool{}, map[string]int{}
	for _, id := range nextIDs {
		_, stays[id] = slices.BinarySearch(ids, id)
	}
	stays[changed] = false
	var d difference
	for i, b := range before {
		from, to := ids[b], nextIDs[after[i]]
		gained[to]++
		gained[from]--
		if from != to {
			d.moved++
			if stays[from] && stays[to] {
				d.unchanged++
			}
		}
	}
	for _, g := range gained {
		d.least += max(0, g)
	}
	return d
}

// MaglevSize is what the loss of one node moves, by the size of the table.
func MaglevSize() (page.Table, error) {
	t := page.Table{Header: []string{"N", "entries", "entries / N", "peak", "filled anew: moved x minimum", "refilled"}}
	for _, n := range sizes {
		for _, per := range []int{10, 100, 655, 6554} {
			size := int(maglev.NextPrime(uint32(n * per)))
			if size > maglev.MaxSize {
				continue
			}
			anew, refilled, peak, err := lossOfOne(n, size)
			if err != nil {
				return t, err
			}
			t.Add(count(n), count(size), count(per), f(peak, 4), f(anew, 2), f(refilled, 2))
		}
	}
	return t, nil
}

// MaglevCurve is the loss of one node of 100 by entries a node.
func MaglevCurve() (anew, refilled []Point, err error) {
	const n = 100
	for per := 10; per <= 20480; per *= 2 {
		a, r, _, err := lossOfOne(n, int(maglev.NextPrime(uint32(n*per))))
		if err != nil {
			return nil, nil, err
		}
		anew, refilled = append(anew, Point{float64(per), a}), append(refilled, Point{float64(per), r})
	}
	return anew, refilled, nil
}

// losses is how many single losses lossOfOne takes the mean of.
const losses = 5

// lossOfOne is what moves when one of n nodes leaves, the mean over several of
// them, as a multiple of 1/n.
func lossOfOne(n, size int) (anew, refilled, peak float64, err error) {
	ids, weights := names(n), ones(n)
	before, err := maglev.Build(ids, weights, uint32(size))
	if err != nil {
		return 0, 0, 0, err
	}
	for k := range losses {
		gone := k * n / losses
		weights := ones(n)
		weights[gone] = 0
		after, err := maglev.Build(ids, weights, uint32(size))
		if err != nil {
			return 0, 0, 0, err
		}
		_, moves, err := maglev.Update(before, ids, weights)
		if err != nil {
			return 0, 0, 0, err
		}
		unit := float64(n) / float64(size) / losses
		anew += float64(compare(before, ids, after, ids, ids[gone]).moved) * unit
		refilled += float64(moves.Moved) * unit
	}
	return anew, refilled, shares.Of(tally(before, n)).Peak, nil
}

// MaglevFailures is the figure of the paper's section 5.3: entries of nodes
// that stay which change, when k of 1000 nodes leave at once.
func MaglevFailures() (page.Table, error) {
	t := page.Table{Header: []string{"of 1000 nodes leave", "65537, filled anew", "655373, filled anew", "refilled"}}
	const n = 1000
	ids := names(n)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	dice := splitmix.Source(1)
	splitmix.Shuffle(&dice, order)
	var full [2][]uint16
	for i, size := range []uint32{maglev.DefaultSize, bigTable} {
		var err error
		if full[i], err = maglev.Build(ids, ones(n), size); err != nil {
			return t, err
		}
	}
	for _, k := range []int{1, 10, 50, 100, 200, 500} {
		weights := ones(n)
		for _, i := range order[:k] {
			weights[i] = 0
		}
		row := []string{count(k)}
		for _, before := range full {
			after, err := maglev.Build(ids, weights, uint32(len(before)))
			if err != nil {
				return t, err
			}
			row = append(row, percent(survivorsMoved(before, after, weights), 2))
		}
		refilled, _, err := maglev.Update(full[0], ids, weights)
		if err != nil {
			return t, err
		}
		t.Add(append(row, percent(survivorsMoved(full[0], refilled, weights), 2))...)
	}
	return t, nil
}

// survivorsMoved is the share of entries whose owner stays and which have
// another one nevertheless.
func survivorsMoved(before, after []uint16, weights []uint32) float64 {
	moved := 0
	for i, b := range before {
		if weights[b] > 0 && after[i] != b {
			moved++
		}
	}
	return float64(moved) / float64(len(before))
}

// MaglevSeed is what a change from a ring to Maglev moves: with the first table
// seeded from the ring, and with one that knows nothing of it.
func MaglevSeed() (page.Table, error) {
	t := page.Table{Header: []string{"from a ring of 160 points", "N", "seeded: moved", "anew: moved"}}
	for _, size := range []uint32{maglev.DefaultSize, bigTable} {
		for _, n := range []int{20, 100} {
			row, err := seeded(size, n)
			if err != nil {
				return t, err
			}
			t.Add(row...)
		}
	}
	return t, nil
}

func seeded(size uint32, n int) ([]string, error) {
	spec := topology.Spec{Algorithm: topology.Maglev, TableSize: size}
	from, err := placement.Update(nil, draft(topology.Spec{Algorithm: topology.Ring}, equal(names(n)), 1))
	if err != nil {
		return nil, err
	}
	row := []string{count(int(size)) + " entries", count(n)}
	for _, prev := range []*placement.Table{from, nil} {
		to, err := placement.Update(prev, draft(spec, equal(names(n)), 2))
		if err != nil {
			return nil, err
		}
		m, err := placement.Movement(from, to)
		if err != nil {
			return nil, err
		}
		row = append(row, percent(m.Ratio, 1))
	}
	return row, nil
}
