package slots

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/shardd/shardd/internal/quota"
)

// plan is what a table must look like: how many copies a slot has, how many of
// them one zone may and must hold, and how many each node holds in all.
type plan struct {
	count   int            // slots
	width   int            // copies of a slot
	zone    []uint16       // by node, from 0 without gaps; nil: no zone rule
	limits  []quota.Bounds // copies of one slot in each zone
	owed    int            // sum of the lower limits
	quotas  []int
	primary []int // of the quotas, how many are primaries
}

// apart returns the limits for the copies of one slot in each zone, where zone
// z has nodes[z] nodes with weight and width copies are to be placed: the
// smallest c such that c copies a zone suffice, and at least c - 1 in each. c is
// 1 while there are enough zones.
func apart(nodes []int, width int) []quota.Bounds {
	limits := make([]quota.Bounds, len(nodes))
	for c, room := 1, 0; room < width; c++ {
		room = 0
		for z, n := range nodes {
			limits[z] = quota.Bounds{Lo: min(c-1, n), Hi: min(c, n)}
			room += limits[z].Hi
		}
	}
	return limits
}

// level is a rate at which weight is served: share = weight x num / den, but at
// most the cap.
type level struct{ num, den uint64 }

// waterLevel pours total over nodes, sorted by descending weight, each of which
// holds at most limit: the nodes whose share would be above it hold just that.
// It returns how many, and the level of the rest.
func waterLevel(nodes []int32, weights []uint32, limit, total int) (full int, l level) {
	var sum uint64
	for _, i := range nodes {
		sum += uint64(weights[i])
	}
	l = level{num: uint64(total), den: sum}
	for full < len(nodes) && uint64(weights[nodes[full]])*l.num > uint64(limit)*l.den {
		l.num -= uint64(limit)
		l.den -= uint64(weights[nodes[full]])
		full++
	}
	return full, l
}

// setShares writes the shares of nodes for a total of their own.
func setShares(shares []quota.Share, nodes []int32, weights []uint32, limit, total int) {
	full, l := waterLevel(nodes, weights, limit, total)
	for k, i := range nodes {
		if k < full {
			shares[i] = quota.Share{Num: uint64(limit), Den: 1}
		} else {
			shares[i] = quota.Share{Num: uint64(weights[i]) * l.num, Den: l.den}
		}
	}
}

// byWeight lists the nodes with weight, heaviest first, ties by index.
func byWeight(weights []uint32) []int32 {
	var order []int32
	for i, w := range weights {
		if w > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
	return order
}

// shares returns the exact share of every node: proportional to weight, as far
// as no node holds more than all slots and every zone holds what its limits
// allow and demand. Zones that would be beyond a limit are held at it, which
// changes the level of the others, until none is beyond. It also returns the
// bounds of each zone's sum: its exact share rounded down and up.
//
// While some zones are above and some below their limits, those on the side
// that decides are held first: if the limits in sum take more than they give,
// the level can only fall, so what is below now is below at the end.
func (p *plan) shares(weights []uint32) ([]quota.Share, []quota.Bounds) {
	shares := make([]quota.Share, len(weights))
	order, total := byWeight(weights), p.count*p.width
	if p.zone == nil {
		setShares(shares, order, weights, p.count, total)
		return shares, nil
	}
	bounds := make([]quota.Bounds, len(p.limits))
	members := make([][]int32, len(p.limits))
	for _, i := range order {
		members[p.zone[i]] = append(members[p.zone[i]], i)
	}
	held := make([]bool, len(p.limits))
	for {
		free := slices.DeleteFunc(slices.Clone(order), func(i int32) bool { return held[p.zone[i]] })
		full, l := waterLevel(free, weights, p.count, total)
		beyond := p.beyond(free, full, l, weights, held, bounds)
		if len(beyond) == 0 {
			setShares(shares, free, weights, p.count, total)
			return shares, bounds
		}
		for _, z := range beyond {
			setShares(shares, members[z], weights, p.count, bounds[z].Lo)
			total -= bounds[z].Lo
			held[z] = true
		}
	}
}

// beyond returns the zones to be held at a limit, with the limit in bounds; and
// for the others the bounds at the present level.
func (p *plan) beyond(free []int32, full int, l level, weights []uint32, held []bool, bounds []quota.Bounds) []int {
	capped, rest := make([]int, len(held)), make([]uint64, len(held))
	for k, i := range free {
		if k < full {
			capped[p.zone[i]] += p.count
		} else {
			rest[p.zone[i]] += uint64(weights[i])
		}
	}
	var above, below []int
	var over, under wide // by how much, times l.den
	for z := range held {
		if held[z] || capped[z] == 0 && rest[z] == 0 {
			continue
		}
		l.den = max(1, l.den) // 0 if all nodes are capped
		demand := mul(uint64(capped[z]), l.den).add(mul(rest[z], l.num))
		most, least := mul(uint64(p.limits[z].Hi*p.count), l.den), mul(uint64(p.limits[z].Lo*p.count), l.den)
		switch {
		case most.less(demand):
			above, over = append(above, z), over.add(demand.sub(most))
		case demand.less(least):
			below, under = append(below, z), under.add(least.sub(demand))
		default:
			quo, rem := demand.div(l.den)
			bounds[z] = quota.Bounds{Lo: int(quo), Hi: int(quo) + int(min(rem, 1))}
		}
	}
	if over.less(under) {
		above = nil
	} else if under.less(over) {
		below = nil
	}
	for _, z := range above {
		bounds[z] = quota.Bounds{Lo: p.limits[z].Hi * p.count, Hi: p.limits[z].Hi * p.count}
	}
	for _, z := range below {
		bounds[z] = quota.Bounds{Lo: p.limits[z].Lo * p.count, Hi: p.limits[z].Lo * p.count}
	}
	return append(above, below...)
}

// wide is an unsigned number of 128 bits: weights of 2^48 in sum times 2^20
// copies need 68.
type wide struct{ hi, lo uint64 }

func mul(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

func (a wide) sub(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// div divides by d, where the quotient fits into 64 bits.
func (a wide) div(d uint64) (quo, rem uint64) { return bits.Div64(a.hi, a.lo, d) }
