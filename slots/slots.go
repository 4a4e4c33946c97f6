// Package slots places keys by a fixed number of slots, each owned by a primary
// and, with replicas, by further nodes in distinct zones. It is the model of
// Redis Cluster: keys belong to slots for ever, slots move between nodes.
//
// # Law
//
// Every node holds its exact share of all copies, rounded down or up, where no
// node holds a slot twice and no zone more copies of a slot than it must. An
// update moves the fewest copies that lead there, sum max(0, q_i - old_i) for
// quotas q_i, whenever that is possible, and its Report proves it: Moves ==
// Bound is a certificate. The table is state: it is published, and a client
// never makes it from the list of nodes.
//
// # Cost
//
// Locate: one multiply-high and one load of two bytes. [Table] holds 2 bytes a
// slot, and as many a copy if there are replicas. [Update] of 16384 slots takes
// 1 to 4 ms without replicas at 1000 nodes and 5 to 70 ms with two or three.
//
// # Source
//
// Quotas: largest remainder with a preference for what is held (package quota).
// Replicas: a minimum-cost flow slot -> zone -> node, by successive shortest
// paths on the graph of nodes (Ahuja, Magnanti and Orlin, "Network Flows",
// 1993, section 9.7). First sets: systematic sampling with probability
// proportional to size (Madow 1949), shuffled, so that partners are mixed.
//
// # Not here
//
// The ranges of contiguous slots that redis-cli deals out, and the order in
// which it moves them: package compat's concern.
package slots

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/shardd/shardd/internal/nearest"
	"github.com/shardd/shardd/internal/quota"
)

// NoOwner marks a place that nobody holds.
const NoOwner = quota.NoOwner

// DefaultCount is Redis Cluster's number of slots: with 100 nodes the heaviest
// is .1 % above the mean, with 1000 nodes 3.8 %.
const DefaultCount = 16_384

// Limits.
const (
	MaxCount    = 1 << 16
	MaxReplicas = 16
)

// ErrCount is wrapped by errors about a number of slots that is out of range or
// too small for the nodes. The text says what would do.
var ErrCount = errors.New("slots: unusable number of slots")

// Rows are the owners of all slots: row 0 the primaries, the further rows the
// other copies. All rows have one entry a slot, indices into one list of nodes.
// The entries of a slot are distinct. With fewer nodes than rows the last rows
// are NoOwner throughout.
type Rows [][]uint16

// Count returns the number of slots.
func (r Rows) Count() int {
	if len(r) == 0 {
		return 0
	}
	return len(r[0])
}

// check refuses rows that no update and no table can start from.
func (r Rows) check(nodes int) error {
	for _, row := range r {
		if len(row) != r.Count() {
			return fmt.Errorf("slots: rows of %d and %d slots; they belong to different tables", r.Count(), len(row))
		}
		if err := quota.CheckEntries("slots", nodes, row); err != nil {
			return err
		}
	}
	for s := range r.Count() {
		for j := range r {
			for k := range j {
				if o := r[j][s]; o != NoOwner && o == r[k][s] {
					return fmt.Errorf("slots: slot %d names node %d twice; the rows are damaged", s, o)
				}
			}
		}
	}
	return nil
}

// Table is an immutable lookup table, safe for concurrent use.
type Table struct {
	// Both hold owner + 1, so that 0 stands for nobody and Locate needs no branch.
	primary []uint16
	copies  []uint16 // count x width, slot by slot, the primary first
	width   int
	nodes   int
	owners  int
	// nearest finds the further nodes of a key where walking takes long.
	nearest nearest.Index
}

// New returns the lookup object of rows, which index a list of n nodes. The rows
// come from Build, Update or a published object and are copied. It refuses
// entries beyond n, a node twice in a slot, and a row that is owned in part
// only; rows that nobody owns are valid. Cost: O(count x rows^2).
func New(n int, rows Rows) (*Table, error) {
	if err := checkShape(rows.Count(), len(rows)); err != nil {
		return nil, err
	}
	if n < 0 || n > quota.MaxNodes {
		return nil, fmt.Errorf("slots: %d nodes: want 0 to %d", n, quota.MaxNodes)
	}
	if err := rows.check(n); err != nil {
		return nil, err
	}
	t := &Table{primary: make([]uint16, rows.Count()), nodes: n}
	for j, row := range rows {
		for s, o := range row {
			if (o == NoOwner) != (row[0] == NoOwner) {
				return nil, fmt.Errorf("slots: row %d has no owner for some slots, such as %d or 0; refill it with Update", j, s)
			}
		}
		if row[0] != NoOwner {
			if j > t.width {
				return nil, fmt.Errorf("slots: row %d has owners but row %d has none", j, j-1)
			}
			t.width++
		}
	}
	t.fill(rows[:t.width])
	return t, nil
}

func (t *Table) fill(rows Rows) {
	seen := make([]bool, t.nodes)
	t.copies = make([]uint16, len(t.primary)*t.width)
	for j, row := range rows {
		for s, o := range row {
			t.copies[s*t.width+j] = o + 1
			if !seen[o] {
				seen[o] = true
				t.owners++
			}
		}
	}
	switch t.width {
	case 0: // nobody: all 0
	case 1:
		t.primary = t.copies
	default:
		for s := range t.primary {
			t.primary[s] = t.copies[s*t.width]
		}
	}
}

// Len returns the number of nodes, those that own nothing included.
func (t *Table) Len() int { return t.nodes }

// Size returns the number of slots.
func (t *Table) Size() int { return len(t.primary) }

// Slot returns the slot of hash h: the high word of h x count. With a CRC16 in
// the high bits of h (rotated left by 50) and 16384 slots that is the slot of
// Redis Cluster.
func (t *Table) Slot(h uint64) int {
	s, _ := bits.Mul64(h, uint64(len(t.primary)))
	return int(s)
}

// Locate returns the index of the node that is primary of h's slot, or -1 if
// there is none. h must be spread over its high bits.
func (t *Table) Locate(h uint64) int {
	s, _ := bits.Mul64(h, uint64(len(t.primary)))
	return int(t.primary[s]) - 1
}

// smallReplicas is the number of replicas up to which looking for a duplicate
// among those found is quicker than marking them in a bitmap of 8 KiB.
const smallReplicas = 32

// AppendReplicas appends the first n nodes of h's preference order to dst, or
// all owners if there are fewer: the copies of h's slot in order of row, then
// those of the slots after it, cyclically, each node once. Up to the number of
// rows that is one read of the slot; beyond, about N ln N copies are read for
// all N nodes. Where one node has nearly all copies it stops walking after some
// 16 N and searches for the next copy of each other node, for which all copies
// are sorted by node once (4 bytes each). It allocates only to grow dst, for that,
// and where it searches for more than 16 nodes.
func (t *Table) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, t.owners)
	if n <= 0 {
		return dst
	}
	dst = slices.Grow(dst, n)
	s := t.Slot(h)
	if n > t.width {
		return t.appendBeyond(dst, s, n)
	}
	for _, o := range t.copies[s*t.width:][:n] {
		dst = append(dst, int(o)-1)
	}
	return dst
}

// appendBeyond is AppendReplicas for more nodes than a slot has copies.
func (t *Table) appendBeyond(dst []int, s, n int) []int {
	base, from, patience := len(dst), s*t.width, nearest.Patience(t.owners)
	if n > smallReplicas {
		dst = t.appendMany(dst, from, n, patience)
	} else {
		dst = t.appendFew(dst, from, n, patience)
	}
	if len(dst) < base+n {
		return t.nearest.Append(dst, base, n, from, t.copies, 1, t.nodes)
	}
	return dst
}

// appendFew walks from copy i until n nodes are found, or for so many steps.
func (t *Table) appendFew(dst []int, i, n, steps int) []int {
	for base := len(dst); len(dst)-base < n && steps > 0; steps-- {
		if o := int(t.copies[i]) - 1; !slices.Contains(dst[base:], o) {
			dst = append(dst, o)
		}
		if i++; i == len(t.copies) {
			i = 0
		}
	}
	return dst
}

// appendMany is the same walk with a mark for each node seen.
func (t *Table) appendMany(dst []int, i, n, steps int) []int {
	var seen [(quota.MaxNodes + 63) / 64]uint64
	for ; n > 0 && steps > 0; steps-- {
		if o := int(t.copies[i]) - 1; seen[o>>6]>>(o&63)&1 == 0 {
			seen[o>>6] |= 1 << (o & 63)
			dst = append(dst, o)
			n--
		}
		if i++; i == len(t.copies) {
			i = 0
		}
	}
	return dst
}
