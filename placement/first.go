package placement

import "slices"

// first returns the first node of h's preference order for which ok; known is
// false where the algorithm has only whole orders.
func (e *engine) first(h uint64, ok func(node int) bool) (node int, known bool) {
	switch e.kind {
	case kindRing:
		return e.ring.First(h, ok), true
	case kindMaglev:
		return e.maglev.First(h, ok), true
	case kindJump:
		return e.jump.First(h, ok), true
	case kindHRW:
		return e.hrw.First(h, ok), true
	case kindHRWTable:
		return e.hrwTable.First(h, ok), true
	}
	return -1, false
}

// apart appends the first n nodes of h's order under the zone rule, one after the
// other: for zones so uneven that the beginning of the order does not have them.
// It reports false where it cannot, with dst as it was.
func (t *Table) apart(dst []int, h uint64, n int) ([]int, bool) {
	base := len(dst)
	for k := range n {
		chosen := dst[base:]
		x, known := t.first(h, func(o int) bool {
			return t.zoning.held(chosen, o) == t.zoning.levels[k] && !slices.Contains(chosen, o)
		})
		if !known || x < 0 {
			return dst[:base], false
		}
		dst = append(dst, x)
	}
	return dst, true
}
