// Package quota turns exact shares into whole numbers of table entries.
//
// The law: every quota is its exact share rounded down or up, quotas add up to
// the total, and among all such roundings the chosen one moves the fewest
// entries away from an earlier state. With old_i entries held now, moving to
// quotas q_i takes sum max(0, q_i - old_i) entries; a unit given on top of the
// floor saves exactly one of them iff old_i > floor_i, so those nodes are
// served first. Largest remainder without that preference moves up to N - 1
// entries more.
//
// All arithmetic is on integers (products of 128 bits where needed), so the
// result is the same on every architecture. Cost: O(N log N).
package quota

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// NoOwner marks a table entry without an owner.
const NoOwner = 0xffff

// MaxNodes is the largest number of nodes in one table: entries are uint16 and
// NoOwner is taken.
const MaxNodes = 65_534

// CheckNodes refuses what no table can be built from: slices of different
// lengths, more than MaxNodes nodes, ids that are not strictly ascending. The
// error begins with the package's name and says what to do.
func CheckNodes(pkg string, ids []string, weights []uint32) error {
	if len(ids) != len(weights) {
		return fmt.Errorf("%s: %d ids but %d weights; give one weight a node", pkg, len(ids), len(weights))
	}
	if len(ids) > MaxNodes {
		return fmt.Errorf("%s: %d nodes are more than %d; split the cluster", pkg, len(ids), MaxNodes)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i-1] >= ids[i] {
			return fmt.Errorf("%s: ids must be strictly ascending, but ids[%d] = %q follows %q; sort them and drop duplicates", pkg, i, ids[i], ids[i-1])
		}
	}
	return nil
}

// CheckEntries refuses a table that points at nodes which do not exist.
func CheckEntries(pkg string, nodes int, entries []uint16) error {
	for i, e := range entries {
		if int(e) >= nodes && e != NoOwner {
			return fmt.Errorf("%s: entry %d names node %d, but there are %d nodes; the table belongs to another topology", pkg, i, e, nodes)
		}
	}
	return nil
}

// Share is a node's exact share of a total, Num / Den. Den 0 stands for none.
type Share struct{ Num, Den uint64 }

func (s Share) floor() int {
	if s.Den == 0 {
		return 0
	}
	return int(s.Num / s.Den)
}

// frac returns the fractional part's numerator.
func (s Share) frac() uint64 {
	if s.Den == 0 {
		return 0
	}
	return s.Num % s.Den
}

// Proportional returns the shares of total by weight. total must be below
// 2^32; without any weight the shares are none.
func Proportional(total int, weights []uint32) []Share {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	shares := make([]Share, len(weights))
	for i, w := range weights {
		if w > 0 {
			shares[i] = Share{Num: uint64(total) * uint64(w), Den: sum}
		}
	}
	return shares
}

// Bounds limits the sum of a group's quotas, both ends included.
type Bounds struct{ Lo, Hi int }

// Given is what Round takes into account besides the shares. The zero value is
// nothing held and no groups.
type Given struct {
	// Old is the number of entries that each node holds now; nil for none.
	Old []int
	// Tie orders nodes with equal claims: the larger first, then the lower
	// index; nil for the lower index alone.
	Tie []int
	// Group is each node's group, and Bounds the limits for the sum of each
	// group's quotas, which must hold the group's exact share; nil for none.
	Group  []uint16
	Bounds []Bounds
}

// Round rounds shares, which must add up to total, to quotas that do. Units on
// top of the floors go first to nodes that would have none, then to nodes that
// hold more than their floor, then by the largest fraction, then by Tie and
// index, as far as the bounds of groups allow.
//
// A node whose share is below one may end with 0; the caller decides whether
// that is an error.
func Round(shares []Share, total int, given Given) []int {
	q := make([]int, len(shares))
	group, room := given.Group, slices.Clone(given.Bounds)
	if group == nil {
		group, room = make([]uint16, len(shares)), []Bounds{{0, total}}
	}
	for i, s := range shares {
		q[i] = s.floor()
		total -= q[i]
		room[group[i]].Lo -= q[i]
		room[group[i]].Hi -= q[i]
	}
	order := byClaim(shares, given)
	give := func(needed func(Bounds) bool) {
		for k, i := range order {
			if i < 0 { // served in the first pass
				continue
			}
			b := &room[group[i]]
			if total > 0 && b.Hi > 0 && needed(*b) {
				q[i]++
				total--
				b.Lo--
				b.Hi--
				order[k] = -1
			}
		}
	}
	give(func(b Bounds) bool { return b.Lo > 0 })
	give(func(Bounds) bool { return true })
	return q
}

// byClaim lists the nodes with a fractional part by their claim to a unit.
func byClaim(shares []Share, given Given) []int32 {
	var order []int32
	class := make([]uint8, len(shares))
	for i, s := range shares {
		if s.frac() == 0 {
			continue
		}
		order = append(order, int32(i))
		if s.floor() > 0 {
			class[i] = 2
		}
		if given.Old == nil || given.Old[i] <= s.floor() {
			class[i]++
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		byTie := 0
		if given.Tie != nil {
			byTie = cmp.Compare(given.Tie[b], given.Tie[a])
		}
		return cmp.Or(cmp.Compare(class[a], class[b]), compareFrac(shares[b], shares[a]), byTie, cmp.Compare(a, b))
	})
	return order
}

// compareFrac compares the fractional parts of two shares exactly.
func compareFrac(a, b Share) int {
	if a.Den == b.Den {
		return cmp.Compare(a.frac(), b.frac())
	}
	ah, al := bits.Mul64(a.frac(), b.Den)
	bh, bl := bits.Mul64(b.frac(), a.Den)
	return cmp.Or(cmp.Compare(ah, bh), cmp.Compare(al, bl))
}

// Bound returns sum max(0, q_i - old_i): the fewest entries that must get a new
// owner on the way from old to q. old may be nil.
func Bound(q, old []int) int {
	sum := 0
	for i, n := range q {
		if old != nil {
			n -= old[i]
		}
		sum += max(0, n)
	}
	return sum
}

// Starved returns the first node with weight and without quota.
func Starved(q []int, weights []uint32) (int, bool) {
	for i, w := range weights {
		if w > 0 && q[i] == 0 {
			return i, true
		}
	}
	return 0, false
}
