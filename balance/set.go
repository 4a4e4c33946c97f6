package balance

import (
	"slices"
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// MaxWeight is the largest weight of a member.
const MaxWeight = 1 << 32

// Member is one candidate as the caller describes it.
type Member struct {
	Node *Node
	// Weight is the share of requests the node should get, relative to the
	// others, 0 to MaxWeight. 0 gets no picks. Policies that do not weigh treat
	// every other weight alike.
	Weight float64
	// Down says that the node must not be picked now, though it belongs here: it
	// keeps its weight and what the policy knows of it.
	Down bool
}

// Set is an immutable list of candidates: the nodes of one topology, in its
// order. Members are named by their index in it.
type Set struct {
	all   []candidate // in the order given
	live  []candidate // those that may be picked
	equal bool        // the live ones all have the same weight
	total float64     // sum of the live weights
	table aliases     // for weighted draws; empty if equal
}

// candidate is what a Ticket points to: a member of a set, bound to the
// policy that wants to hear of it.
type candidate struct {
	node     *Node
	observer Observer // nil if the policy does not learn
	starter  Starter  // the observer, if it is one
	weight   float64
	index    int32
	down     bool
}

// NewSet returns the set of the members. A member without a Node, a Node given
// twice, and a weight that is negative, not a number or above MaxWeight are
// refused with ErrInvalid. A set may be empty, or without anybody to pick: its
// pickers return ErrNoNode. O(n).
func NewSet(members []Member) (*Set, error) {
	seen := make(map[*Node]bool, len(members))
	s := &Set{all: make([]candidate, len(members))}
	for i, m := range members {
		switch {
		case m.Node == nil:
			return nil, Invalidf("balance: member %d has no node", i)
		case seen[m.Node]:
			return nil, Invalidf("balance: member %d (%s) is in the set twice", i, m.Node.id)
		case !(m.Weight >= 0 && m.Weight <= MaxWeight):
			return nil, Invalidf("balance: member %d (%s) has weight %v; give one in 0..%.0f", i, m.Node.id, m.Weight, float64(MaxWeight))
		}
		seen[m.Node] = true
		s.all[i] = candidate{node: m.Node, weight: m.Weight, index: int32(i), down: m.Down}
	}
	s.arrange()
	return s, nil
}

// arrange finds who may be picked.
func (s *Set) arrange() {
	s.live = s.all
	if slices.ContainsFunc(s.all, candidate.barred) {
		s.live = slices.DeleteFunc(slices.Clone(s.all), candidate.barred)
	}
	s.equal = true
	for i := range s.live {
		s.total += s.live[i].weight
		s.equal = s.equal && s.live[i].weight == s.live[0].weight
	}
	if !s.equal {
		s.table = newAliases(s.live, s.total)
	}
}

func (c candidate) barred() bool { return c.down || c.weight == 0 }

// Observed returns the same set with o told of the end of each request picked
// from it, and of its beginning if o is a Starter. For policies; nil tells
// nobody.
func (s *Set) Observed(o Observer) *Set {
	n := *s
	n.all = bind(s.all, o)
	n.live = n.all
	if len(s.live) != len(s.all) {
		n.live = bind(s.live, o)
	}
	return &n
}

func bind(list []candidate, o Observer) []candidate {
	list = slices.Clone(list)
	starter, _ := o.(Starter)
	for i := range list {
		list[i].observer, list[i].starter = o, starter
	}
	return list
}

// Len returns the number of members, with those that may not be picked.
func (s *Set) Len() int { return len(s.all) }

// Live returns the number of members that may be picked: not down, weight
// above 0.
func (s *Set) Live() int { return len(s.live) }

// LiveIndex returns the index of the k-th live member, 0 <= k < Live().
func (s *Set) LiveIndex(k int) int { return int(s.live[k].index) }

// Member returns member i.
func (s *Set) Member(i int) Member {
	c := &s.all[i]
	return Member{Node: c.node, Weight: c.weight, Down: c.down}
}

// Node returns the node of member i.
func (s *Set) Node(i int) *Node { return s.all[i].node }

// Total returns the sum of the live members' weights.
func (s *Set) Total() float64 { return s.total }

// Equal reports whether all live members have the same weight.
func (s *Set) Equal() bool { return s.equal }

// Take counts a request on member i, which was chosen by other means (the owner
// of a key, say), eligible or not.
func (s *Set) Take(i int, now time.Duration) Ticket { return s.all[i].take(now) }

// take counts a request on the candidate.
func (c *candidate) take(now time.Duration) Ticket {
	n := c.node
	if c.starter != nil {
		c.starter.Start(int(c.index), now)
	}
	slot, word := n.occupy(n.flight.Add(1), now)
	return Ticket{c: c, slot: slot, word: word, start: now}
}

// Expire closes requests of the set's members that have been in flight for
// longer than limit, as if they had timed out, and returns how many: the picks
// whose Done was forgotten, and those that are merely slow. Their Done, should
// it come, changes nothing. Choose a limit above every time-out, and call it
// every now and then; it walks all requests in flight. Requests that began more
// than limit in the future, because the clock has gone back since, are closed too:
// nobody could tell when they are lost.
func (s *Set) Expire(now, limit time.Duration) int {
	count := 0
	for i := range s.all {
		c := &s.all[i]
		count += c.node.expire(now, limit, func(start time.Duration) {
			if c.observer != nil {
				c.observer.Observe(int(c.index), start, now, Outcome{Result: Timeout, Timeout: limit})
			}
		})
	}
	return count
}

// From returns for each member its index in old, -1 if it was not there. old
// may be nil. O(n).
func (s *Set) From(old *Set) []int {
	was := make(map[*Node]int, len(s.all))
	if old != nil {
		for i := range old.all {
			was[old.all[i].node] = i
		}
	}
	from := make([]int, len(s.all))
	for i := range s.all {
		from[i] = -1
		if j, ok := was[s.all[i].node]; ok {
			from[i] = j
		}
	}
	return from
}

// Draw returns the index of a live member that is not excluded, by weight, or
// ErrNoNode or ErrExcluded. Bounded: 16 draws, then one exact pass over the
// members. dice is advanced.
func (s *Set) Draw(dice *splitmix.Source, exclude []*Node) (int, error) {
	c := s.draw(dice, exclude, nil)
	if c == nil {
		return -1, s.none(exclude)
	}
	return int(c.index), nil
}

// Pair returns the indices of two different live members that are not excluded,
// by weight; b is -1 if there is only one. Errors as for Draw.
func (s *Set) Pair(dice *splitmix.Source, exclude []*Node) (a, b int, err error) {
	ca, cb := s.pair(dice, exclude)
	switch {
	case ca == nil:
		return -1, -1, s.none(exclude)
	case cb == nil:
		return int(ca.index), -1, nil
	}
	return int(ca.index), int(cb.index), nil
}

// none returns the error for a pick that found nobody.
func (s *Set) none(exclude []*Node) error {
	if len(s.live) == 0 || len(exclude) == 0 {
		return ErrNoNode
	}
	return ErrExcluded
}

// None returns the error that stands for a pick that found nobody, given its
// exclude list. For policies.
func (s *Set) None(exclude []*Node) error { return s.none(exclude) }
