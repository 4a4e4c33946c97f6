package bounded

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// haproxyScale is the points that HAProxy gives a unit of weight on its ring, by
// which it also counts shares here.
const haproxyScale = 16

// NewHAProxySet returns a set under HAProxy's rule (hash-balance-factor, 2.6:
// src/lb_chash.c): percent is the factor, above 100, and position the place of each
// member in the declaration, by which what is left over in dividing the slots goes
// round. A member is under its cap while its load is below
//
//	S = ((served + q) * percent + 99) / 100, of which its share is
//	share * (S / T) + ((before + share) * (S mod T)) / T - (before * (S mod T)) / T
//
// in whole numbers, at least 1: served is the load of all, share 16 times the
// weight, before the shares of those declared before, T all shares. q is 1 in
// HAProxy. In place of the first to refuse, the next point on the ring is asked.
// Errors: ErrInvalid, also for weights that are not whole numbers up to 256.
func (g *Group) NewHAProxySet(members []Member, position []uint32, percent int) (*Set, error) {
	if percent <= 100 || percent > 100*MaxFactor || len(position) != len(members) {
		return nil, fmt.Errorf("%w: factor %d with %d positions of %d members; give 101 to %d percent, and a position each", ErrInvalid, percent, len(position), len(members), 100*MaxFactor)
	}
	for i, m := range members {
		if m.Weight != math.Trunc(m.Weight) || m.Weight > 256 {
			return nil, fmt.Errorf("%w: member %d has weight %v; HAProxy's are whole numbers up to 256", ErrInvalid, i, m.Weight)
		}
	}
	s, err := g.NewSet(members, float64(percent)/100)
	if err != nil {
		return nil, err
	}
	s.percent, s.plain = uint64(percent), false
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(position[a], position[b]) })
	for _, i := range order {
		m := &s.rest[i]
		m.share, m.before = uint64(m.weight)*haproxyScale, s.shares
		s.shares += m.share
	}
	return s, nil
}

// slots is the member's share of HAProxy's slots, 0 if it takes no requests.
func (s *Set) slots(i int, total, q int64) uint64 {
	m := &s.rest[i]
	if m.share == 0 {
		return 0
	}
	all := (uint64(min(max(total, 0), MaxFlight)+q)*s.percent + 99) / 100
	per, rest := all/s.shares, all%s.shares
	n := m.share*per + (m.before+m.share)*rest/s.shares - m.before*rest/s.shares
	return max(1, min(n, MaxFlight))
}
