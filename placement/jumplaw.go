package placement

import (
	"maps"
	"slices"
)

// jumpMovement is the movement of Jump between two bucket arrays, from and to,
// whose entries are roster indices or -1 for a hole.
//
// A key draws bucket c of the shorter array (n buckets) and c' of the longer (m
// buckets): the same one with probability n/m, else c' is uniform over the m - n
// further buckets and c, independent of it, over the n. A side that hits a hole
// draws again from a fresh hash, the same fresh hash on both sides. With p and q
// the shares before and after, the first draw of both sides decides so:
//
//	both live            from[c] -> to[c]
//	one side in a hole   its owner is independent of the other's: p or q
//	both in a hole       draw again, as if nothing had happened
//	c' beyond n, live    the shorter side's owner is independent of it
//	c' beyond n, a hole  if c is live both owners are independent; else again
//
// What happens before drawing again is normalised away. Without holes beyond n
// this is |n - m| / max for plain Jump and the sum over the union of the live
// buckets in general.
func jumpMovement(r *roster, from, to []int, maxFlows int) *sheet {
	p, live := bucketShares(from, len(r.ids))
	q, liveTo := bucketShares(to, len(r.ids))
	l := newLawSheet(r, p, q, maxFlows)
	d := newJumpDraws(len(r.ids))
	short, long := from, to
	d.swapped = len(from) > len(to)
	if d.swapped {
		short, long = to, from
		live = liveTo
	}
	for c, x := range short {
		d.same(x, long[c])
	}
	for _, y := range long[len(short):] {
		d.beyond(y, float64(live)/float64(len(short)))
	}
	d.settle(l, p, q)
	return l.done()
}

// bucketShares returns the share of each of n nodes and the number of live buckets.
func bucketShares(owners []int, n int) (share []float64, live int) {
	share = make([]float64, n)
	for _, o := range owners {
		if o >= 0 {
			live++
		}
	}
	for _, o := range owners {
		if o >= 0 {
			share[o] += 1 / float64(live)
		}
	}
	return share, live
}

// jumpDraws weighs the outcomes of the first draw, one bucket of the longer
// array counting 1.
type jumpDraws struct {
	swapped bool               // short is the array after the change
	known   map[uint64]float64 // from[c] -> to[c], by flowKey
	leaves  []float64          // owner before known, after independent
	enters  []float64          // owner after known, before independent
	neither float64            // both independent
	total   float64
}

func newJumpDraws(n int) *jumpDraws {
	return &jumpDraws{known: map[uint64]float64{}, leaves: make([]float64, n), enters: make([]float64, n)}
}

// same weighs a bucket of both arrays: x of the shorter, y of the longer.
func (d *jumpDraws) same(x, y int) {
	if d.swapped {
		x, y = y, x
	}
	switch {
	case x >= 0 && y >= 0:
		d.known[flowKey(x, y)]++
	case x >= 0:
		d.leaves[x]++
	case y >= 0:
		d.enters[y]++
	default:
		return
	}
	d.total++
}

// beyond weighs a bucket that only the longer array has.
func (d *jumpDraws) beyond(y int, liveShort float64) {
	switch {
	case y < 0:
		d.neither += liveShort
		d.total += liveShort
		return
	case d.swapped:
		d.leaves[y]++
	default:
		d.enters[y]++
	}
	d.total++
}

// settle books what moves, node by node in roster order.
func (d *jumpDraws) settle(l *lawSheet, p, q []float64) {
	var takers []int // nodes that draw from all others
	for b, amount := range d.enters {
		if amount > 0 {
			takers = append(takers, b)
		}
	}
	known := slices.Sorted(maps.Keys(d.known))
	row := newSparseRow(len(q))
	for a := range p {
		for len(known) > 0 && int(known[0]>>32) == a {
			row.add(int(uint32(known[0])), d.known[known[0]])
			known = known[1:]
		}
		for _, b := range takers {
			row.add(b, p[a]*d.enters[b])
		}
		if spread := d.leaves[a] + d.neither*p[a]; spread > 0 {
			for b := range q {
				row.add(b, spread*q[b])
			}
		}
		row.drain(func(b int, amount float64) {
			if a != b {
				l.move(a, b, amount/d.total)
			}
		})
	}
}

// sparseRow is one row of a matrix of which most rows are nearly empty.
type sparseRow struct {
	value []float64
	used  []int
}

func newSparseRow(n int) *sparseRow { return &sparseRow{value: make([]float64, n)} }

func (r *sparseRow) add(i int, x float64) {
	if x == 0 {
		return
	}
	if r.value[i] == 0 {
		r.used = append(r.used, i)
	}
	r.value[i] += x
}

// drain calls fn for what is in the row, in the order of adding, and empties it.
func (r *sparseRow) drain(fn func(i int, x float64)) {
	for _, i := range r.used {
		fn(i, r.value[i])
		r.value[i] = 0
	}
	r.used = r.used[:0]
}
