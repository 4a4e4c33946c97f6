package ring

import "fmt"

// Point is one point of a ring: it owns the hashes after the point before it up
// to and including its own place.
type Point struct {
	Place uint64
	Owner uint16 // node index
}

// FromPoints returns a ring of n nodes with just these points, for mappings
// that place them in another way than New: the lookups are the same. Points
// ascend by place; of points at one place the first owns the hashes, the others
// only follow in the preference order. A node without a point owns nothing. The
// slice is not kept, and Update refuses such a ring.
//
// Errors wrap ErrTooManyNodes, ErrTooManyPoints or ErrInput. O(points).
func FromPoints(n int, points []Point) (*Ring, error) {
	switch {
	case n < 0 || n > MaxNodes:
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooManyNodes, n, MaxNodes)
	case len(points) > MaxPoints:
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooManyPoints, len(points), MaxPoints)
	}
	r := newRing(nil, nil, 0, len(points))
	r.nodes = n
	seen := make([]bool, n)
	for i, p := range points {
		if int(p.Owner) >= n || i > 0 && points[i-1].Place > p.Place {
			return nil, fmt.Errorf("%w: point %d at %#x of node %d: points ascend, and there are %d nodes", ErrInput, i, p.Place, p.Owner, n)
		}
		r.pos[i], r.owner[i] = p.Place, p.Owner
		if !seen[p.Owner] {
			seen[p.Owner] = true
			r.owners++
		}
	}
	r.countRanges()
	r.fillLines()
	return r, nil
}
