package ring

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// point is one point while lists of them are merged.
type point struct {
	pos   uint64
	owner uint16
}

func comparePoints(a, b point) int {
	if c := cmp.Compare(a.pos, b.pos); c != 0 {
		return c
	}
	return cmp.Compare(a.owner, b.owner)
}

// Update returns the ring that New(ids, weights, r.Vnodes()) returns, and r
// stays as it is. It merges the points of the nodes that changed into those of
// r: about 1.7 ms for one node of 1000 with 160 points each, where New takes 6.
// The errors are those of New.
func (r *Ring) Update(ids []string, weights []uint32) (*Ring, error) {
	n, err := check(ids, weights, r.vnodes)
	if err != nil {
		return nil, err
	}
	next := newRing(ids, weights, r.vnodes, n)
	added, dropped, index := r.changes(next)
	if 8*(len(added)+len(dropped)) > n {
		return New(ids, weights, r.vnodes)
	}
	next.merge(r, added, dropped, index)
	next.countRanges()
	next.fillLines()
	return next, nil
}

// changes compares the nodes of r with those of next. added are the points that
// only next has, with its indices; dropped are those that only r has, with the
// indices of r; both are sorted. index translates the indices of nodes in both.
func (r *Ring) changes(next *Ring) (added, dropped []point, index []uint16) {
	index = make([]uint16, len(r.ids))
	i, j := 0, 0
	for i < len(r.ids) || j < len(next.ids) {
		switch {
		case j == len(next.ids) || i < len(r.ids) && r.ids[i] < next.ids[j]: // gone
			dropped = r.appendPoints(dropped, r.ids[i], i, 0, r.weights[i])
			i++
		case i == len(r.ids) || r.ids[i] > next.ids[j]: // new
			added = r.appendPoints(added, next.ids[j], j, 0, next.weights[j])
			j++
		default:
			index[i] = uint16(j)
			dropped = r.appendPoints(dropped, r.ids[i], i, next.weights[j], r.weights[i])
			added = r.appendPoints(added, next.ids[j], j, r.weights[i], next.weights[j])
			i++
			j++
		}
	}
	slices.SortFunc(added, comparePoints)
	slices.SortFunc(dropped, comparePoints)
	return added, dropped, index
}

// appendPoints appends the points that node id has more with weight to than
// with weight from.
func (r *Ring) appendPoints(dst []point, id string, owner int, from, to uint32) []point {
	if from >= to {
		return dst
	}
	base, v := xxhash.Sum64String(id), uint64(r.vnodes)
	for j := uint64(from) * v; j < uint64(to)*v; j++ {
		dst = append(dst, point{place(base, j), uint16(owner)})
	}
	return dst
}

// merge fills the points of r with those of old without dropped and with added:
// whole stretches between one change and the next.
func (r *Ring) merge(old *Ring, added, dropped []point, index []uint16) {
	from, n := 0, 0 // old points done, points filled
	upTo := func(to int) {
		copy(r.pos[n:], old.pos[from:to])
		for i, o := range old.owner[from:to] {
			r.owner[n+i] = index[o]
		}
		n += to - from
		from = to
	}
	for len(added) > 0 || len(dropped) > 0 {
		if len(added) == 0 || len(dropped) > 0 && dropped[0].pos <= added[0].pos {
			upTo(old.indexOf(dropped[0], from))
			from++
			dropped = dropped[1:]
			continue
		}
		at, _ := slices.BinarySearch(old.pos[from:], added[0].pos)
		upTo(from + at)
		r.pos[n], r.owner[n] = added[0].pos, added[0].owner
		n++
		added = added[1:]
	}
	upTo(len(old.pos))
	r.orderTies()
}

// indexOf returns the index of p, which is a point of r and not before from.
func (r *Ring) indexOf(p point, from int) int {
	i, _ := slices.BinarySearch(r.pos[from:], p.pos)
	i += from
	for r.owner[i] != p.owner {
		i++
	}
	return i
}

// orderTies puts points at the same place in the order of their owners. There
// are none in practice.
func (r *Ring) orderTies() {
	for i := 1; i < len(r.pos); i++ {
		for j := i; j > 0 && r.pos[j-1] == r.pos[j] && r.owner[j-1] > r.owner[j]; j-- {
			r.owner[j-1], r.owner[j] = r.owner[j], r.owner[j-1]
		}
	}
}

// countRanges sets starts from the sorted points.
func (r *Ring) countRanges() {
	ranges := uint64(len(r.lines))
	for _, pos := range r.pos {
		i, _ := bits.Mul64(pos, ranges)
		r.starts[i+1]++
	}
	for i := range r.lines {
		r.starts[i+1] += r.starts[i]
	}
}
