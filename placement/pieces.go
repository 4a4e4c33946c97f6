package placement

import (
	"math"
	"math/bits"
)

// pieces is the key space cut into runs of hashes that have the same preference
// order: between two points of a ring, or within one slot of a table. Piece i
// holds the hashes after the end of piece i-1 up to and including its own; a
// piece may be empty. The last piece ends at the last hash.
type pieces interface {
	len() int
	end(i int) uint64
}

// ringPieces are the arcs of a ring. The last, behind the last point, belongs
// to point 0 like the first.
type ringPieces struct{ points pointList }

// pointList is a ring's points in ascending order.
type pointList interface {
	NumPoints() int
	Point(i int) (place uint64, owner int)
}

func (r ringPieces) len() int { return r.points.NumPoints() + 1 }

func (r ringPieces) end(i int) uint64 {
	if i == r.points.NumPoints() {
		return math.MaxUint64
	}
	place, _ := r.points.Point(i)
	return place
}

// slotPieces are the slots of a table of so many: slot s holds the hashes h with
// s = floor(h * slots / 2^64).
type slotPieces int

func (s slotPieces) len() int { return int(s) }

// end returns the largest h with h * slots < (i+1) * 2^64.
func (s slotPieces) end(i int) uint64 {
	h, _ := bits.Div64(uint64(i), math.MaxUint64, uint64(s))
	return h
}

// merge cuts the key space wherever a or b does and calls visit for each part
// that is not empty, in ascending order: its first and last hash, and the piece
// of a and of b that it lies in. O(a.len() + b.len()).
func merge(a, b pieces, visit func(first, last uint64, i, j int)) {
	first := uint64(0)
	i, j := 0, 0
	endA, endB := a.end(0), b.end(0)
	for {
		last := min(endA, endB)
		visit(first, last, i, j)
		if last == math.MaxUint64 {
			return
		}
		first = last + 1
		for endA <= last {
			i++
			endA = a.end(i)
		}
		for endB <= last {
			j++
			endB = b.end(j)
		}
	}
}

// walk is merge for one side.
func walk(p pieces, visit func(first, last uint64, i int)) {
	first := uint64(0)
	for i := range p.len() {
		last := p.end(i)
		if last < first { // two points at one place
			continue
		}
		visit(first, last, i)
		if last == math.MaxUint64 {
			return
		}
		first = last + 1
	}
}
