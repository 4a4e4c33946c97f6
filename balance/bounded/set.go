package bounded

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrInvalid says that a set was refused; the text says why.
var ErrInvalid = errors.New("bounded: invalid")

// MaxFactor is the largest factor of a bound.
const MaxFactor = 1000

// Member is a node of a set.
type Member struct {
	Node *Node
	// Weight is the node's share of the load, relative to the others; 0 for a
	// node that may take no requests: it is not in E, counts in no sum and never
	// admits.
	Weight float64
}

// Set is the nodes of one topology with their caps: immutable, named by their
// index. Make one with NewSet.
type Set struct {
	group   *Group
	members []member
	rest    []memberRest // of the same indices
	weights float64      // sum
	factor  float64      // 0 = no bound
	plain   bool         // a bound on own requests by an exact total
	percent uint64       // HAProxy's factor; 0 = our own rule
	shares  uint64       // sum of the members' shares; for HAProxy's rule
}

// member is what an admission reads: two words, so that a thousand of them stay
// in a core's first cache.
type member struct {
	node  *Node
	reach uint64 // c w / W * 2^48; 0 = not in E
}

type memberRest struct {
	weight float64
	// For HAProxy's rule: the member's share of the slots, and those of the
	// members declared before it.
	share, before uint64
}

// NewSet returns the set of the members with factor c: 0 for no bound, else
// 1 or more. Negative weights, a factor below 1 and what is not a number are
// refused with ErrInvalid. O(n).
func (g *Group) NewSet(members []Member, c float64) (*Set, error) {
	if c != 0 && !(c >= 1 && c <= MaxFactor) {
		return nil, fmt.Errorf("%w: factor %v; give 0 for no bound, or 1 to %d: below 1 not every request finds a node", ErrInvalid, c, MaxFactor)
	}
	s := &Set{group: g, members: make([]member, len(members)), rest: make([]memberRest, len(members)), factor: c, plain: c != 0 && !g.reported && g.every == 0}
	for i, m := range members {
		if m.Node == nil || m.Node.group != g || !(m.Weight >= 0) || math.IsInf(m.Weight, 0) {
			return nil, fmt.Errorf("%w: member %d has weight %v or a node of another group", ErrInvalid, i, m.Weight)
		}
		s.members[i].node, s.rest[i].weight = m.Node, m.Weight
		s.weights += m.Weight
	}
	if math.IsInf(max(c, 1)*s.weights, 0) {
		return nil, fmt.Errorf("%w: the weights add up to more than a number can be; give smaller ones, only their proportions count", ErrInvalid)
	}
	for i := range s.members {
		m, weight := &s.members[i], s.rest[i].weight
		if weight == 0 {
			continue
		}
		m.reach = math.MaxUint64
		if c != 0 {
			// A little too small, so that a cap that is a whole number comes out as that
			// number: the cap is rounded up, and c >= 1 leaves less than one to lose.
			m.reach = uint64(max(1, c*weight/s.weights*(1<<reachBits)*(1-0x1p-50)))
		}
	}
	return s, nil
}

// reachBits is the scale of member.reach. 48 keeps caps exact up to totals of
// 2^48 / n, where 32 would be off by one now and then with c = 1.
const reachBits = 48

// Len returns the number of members, those outside of E included.
func (s *Set) Len() int { return len(s.members) }

// Node returns the node of member i.
func (s *Set) Node(i int) *Node { return s.members[i].node }

// Eligible reports whether member i may take requests at all.
func (s *Set) Eligible(i int) bool { return s.members[i].reach > 0 }

// Admit reserves cost q at member i if that is under its cap. Release it at
// Node(i). q is 1 to MaxCost.
func (s *Set) Admit(i int, q int64) bool {
	m := &s.members[i]
	if !s.plain {
		return s.admit(i, q)
	}
	// Node.admit and Node.take by hand, which are calls otherwise: 3 ns.
	n, g := m.node, s.group
	w := n.word.Load()
	next := w + one + uint64(q)<<1
	if w>>1&flightMax >= limit(m.reach, g.total.Load(), q) {
		return false
	}
	if next < one || w&counts == 0 || !n.word.CompareAndSwap(w, next) {
		return n.admit(limit(m.reach, g.total.Load(), q), q, false)
	}
	g.total.Add(q)
	return true
}

func (s *Set) admit(i int, q int64) bool {
	m := &s.members[i]
	if s.factor == 0 && m.reach > 0 {
		return m.node.Count(q)
	}
	return m.node.admit(s.most(i, s.group.total.Load(), q), q, s.group.reported)
}

// most is the load under which member i admits cost q.
func (s *Set) most(i int, total, q int64) uint64 {
	if s.percent > 0 {
		return s.slots(i, total, q)
	}
	return limit(s.members[i].reach, total, q)
}

// AdmitExact is Admit by the exact total, where that lags; it counts a refusal.
func (s *Set) AdmitExact(i int, q int64) bool {
	m := &s.members[i]
	if m.node.admit(s.most(i, s.group.Total(), q), q, s.group.reported) {
		return true
	}
	if m.reach > 0 {
		m.node.refused.Add(1)
	}
	return false
}

// None reports whether no member may take requests.
func (s *Set) None() bool { return s.weights == 0 }

// Cap returns the largest whole load at which member i still admits cost q,
// plus one: ceil(c (T + q) w / W). 0 for a member outside of E, the largest
// number without a bound.
func (s *Set) Cap(i int, q int64) int64 {
	m := &s.members[i]
	switch {
	case m.reach == 0:
		return 0
	case s.factor == 0:
		return math.MaxInt64
	}
	return int64(s.most(i, s.group.Total(), q))
}

// Load returns the load of member i in the group's view.
func (s *Set) Load(i int) int64 {
	n := s.members[i].node
	if s.group.reported {
		return n.InFlight() + n.Others()
	}
	return n.InFlight()
}

// Least returns the member among order that has the least load by weight, the
// first of equals, or -1 if none of them is in E.
func (s *Set) Least(order []int) int {
	best, least := -1, math.Inf(1)
	for _, i := range order {
		if s.members[i].reach == 0 {
			continue
		}
		if x := float64(s.Load(i)) / s.rest[i].weight; x < least {
			best, least = i, x
		}
	}
	return best
}

// Sample adds d to the time over its cap of each member whose load exceeds it.
// Call it every d. O(n).
func (s *Set) Sample(d time.Duration) {
	if s.factor == 0 {
		return
	}
	total := max(0, s.group.Total())
	for i := range s.members {
		m := &s.members[i]
		if m.reach > 0 && s.Load(i) > int64(s.most(i, total, 0)) {
			m.node.overFor.Add(int64(d))
		}
	}
}

// Fade moves the reported load of members that have not reported since the last
// Fade towards the mean of all by share, 0 to 1. Without it a node that once said
// that it was full, and therefore gets no requests, would be full for ever. Who
// is a whole unit off moves by one at least. O(n).
func (s *Set) Fade(share float64) {
	if !s.group.reported || s.weights == 0 {
		return
	}
	sum := 0.0
	for i := range s.members {
		if m := &s.members[i]; m.reach > 0 {
			sum += float64(m.node.Others())
		}
	}
	for i := range s.members {
		m := &s.members[i]
		if m.reach == 0 || m.node.fresh.Swap(false) {
			continue
		}
		mean := sum * s.rest[i].weight / s.weights
		m.node.setOthers(func(old int64) int64 { return old + fadeStep(mean-float64(old), share) })
	}
}

// fadeStep is a share of the way off, rounded away from 0, and never beyond.
func fadeStep(off, share float64) int64 {
	step := math.Copysign(math.Ceil(math.Abs(off)*share), off)
	if math.Abs(step) > math.Abs(off) {
		step = math.Trunc(off)
	}
	return int64(step)
}
