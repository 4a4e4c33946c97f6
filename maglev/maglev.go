// Package maglev places keys by a table of prime size in which every node owns
// a share of the entries to within one entry: a lookup is a multiply, a load
// and nothing else.
//
// # Law
//
// An entry's owner changes only if it must. [Update] refills the previous table
// instead of building a new one, and moves exactly sum max(0, q_i - old_i)
// entries for quotas q_i within one entry of the exact share M w_i / W. No
// table with such quotas moves fewer. The price is that the table is state: it
// is published, and a client never rebuilds it from the list of nodes.
//
// # Cost
//
// Locate: one multiply-high and one load of two bytes. [Table] holds two bytes
// an entry (128 KiB at 65537). [Build] and a full refill: about M ln(M)/2 steps;
// a refill after a change of one node in N: about M ln(M/N) steps.
//
// # Source
//
// Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
// Balancer", NSDI 2016, section 3.4: each node walks the table by its own
// permutation (offset + k skip) mod M and the nodes take turns at the next free
// entry. Weights are turns, by integer credit: the k-th turn of a node of
// weight w falls into round 1 + ceil((k - 1) w_max / w). The refill is this
// project's own.
//
// # Not here
//
// The tables of other systems (Envoy, Katran, Cilium), which hash and reduce
// otherwise; and zones: replicas are distinct nodes, wherever they stand. Use
// slots where replicas must be in distinct zones.
package maglev

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/shardd/shardd/internal/nearest"
	"github.com/shardd/shardd/internal/quota"
)

// NoOwner marks an entry that nobody owns.
const NoOwner = quota.NoOwner

// DefaultSize is the usual number of entries: with up to 655 nodes of equal
// weight the heaviest is at most 1 % above the mean.
const DefaultSize = 65_537

// MaxSize is the largest table, the largest prime below 2^22: 8 MiB of entries.
const MaxSize = 4_194_301

// ErrSize is wrapped by errors about a table size that is not a prime from 2 to
// MaxSize or too small for the nodes. The text names a size that would do.
var ErrSize = errors.New("maglev: unusable table size")

// Table is an immutable lookup table, safe for concurrent use.
type Table struct {
	// owners holds owner + 1, so that 0 stands for nobody and Locate needs no branch.
	owners []uint16
	nodes  int
	live   int // distinct owners
	// nearest finds the further nodes of a key where walking takes long.
	nearest nearest.Index
}

// New returns the lookup object of entries, which index a list of n nodes. The
// entries come from Build, Update or a published object and are copied. It
// refuses a size that Build would refuse, entries that name nodes beyond n, and
// a table that is owned in part only; a table that nobody owns is valid.
// Cost: O(M).
func New(n int, entries []uint16) (*Table, error) {
	if err := checkSize(uint64(len(entries))); err != nil {
		return nil, err
	}
	if n < 0 || n > quota.MaxNodes {
		return nil, fmt.Errorf("maglev: %d nodes: want 0 to %d", n, quota.MaxNodes)
	}
	if err := quota.CheckEntries("maglev", n, entries); err != nil {
		return nil, err
	}
	t := &Table{owners: make([]uint16, len(entries)), nodes: n}
	seen := make([]bool, n)
	for i, e := range entries {
		if (e == NoOwner) != (entries[0] == NoOwner) {
			return nil, fmt.Errorf("maglev: entry %d has no owner though others have one; refill the table with Update", i)
		}
		t.owners[i] = e + 1
		if e != NoOwner && !seen[e] {
			seen[e] = true
			t.live++
		}
	}
	return t, nil
}

// Len returns the number of nodes, those that own nothing included.
func (t *Table) Len() int { return t.nodes }

// Size returns the number of entries.
func (t *Table) Size() int { return len(t.owners) }

// Entries returns a copy of the entries that New was given: what Update starts
// from, so that nobody has to keep them beside the table. O(M).
func (t *Table) Entries() []uint16 {
	entries := make([]uint16, len(t.owners))
	for i, o := range t.owners {
		entries[i] = o - 1
	}
	return entries
}

// Locate returns the index of the node that owns hash h, or -1 if none does.
// The entry is the high word of h x M, so h must be spread over its high bits.
func (t *Table) Locate(h uint64) int {
	e, _ := bits.Mul64(h, uint64(len(t.owners)))
	return int(t.owners[e]) - 1
}

// smallReplicas is the number of replicas up to which looking for a duplicate
// among those found is quicker than marking them in a bitmap of 8 KiB.
const smallReplicas = 32

// AppendReplicas appends the first n nodes of h's preference order to dst, or
// all owners if there are fewer: the owners of h's entry and the entries after
// it, cyclically, each once. It reads about n entries for n well below the number
// of nodes, about N ln N for all N. Where one node has nearly all entries it stops
// walking after some 16 N and searches for the next entry of each other node, for
// which all entries are sorted by node once (4 bytes each). It allocates only to
// grow dst, for that, and where it searches for more than 16 nodes.
func (t *Table) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, t.live)
	if n <= 0 {
		return dst
	}
	e, _ := bits.Mul64(h, uint64(len(t.owners)))
	dst = slices.Grow(dst, n)
	base, patience := len(dst), nearest.Patience(t.live)
	if n > smallReplicas {
		dst = t.appendMany(dst, int(e), n, patience)
	} else {
		dst = t.appendFew(dst, int(e), n, patience)
	}
	if len(dst) < base+n {
		return t.nearest.Append(dst, base, n, int(e), t.owners, 1, t.nodes)
	}
	return dst
}

// appendFew walks from entry e until n nodes are found, or for so many steps.
func (t *Table) appendFew(dst []int, e, n, steps int) []int {
	for base := len(dst); len(dst)-base < n && steps > 0; steps-- {
		if o := int(t.owners[e]) - 1; !slices.Contains(dst[base:], o) {
			dst = append(dst, o)
		}
		if e++; e == len(t.owners) {
			e = 0
		}
	}
	return dst
}

// appendMany is the same walk with a mark for each node seen.
func (t *Table) appendMany(dst []int, e, n, steps int) []int {
	var seen [(quota.MaxNodes + 63) / 64]uint64
	for ; n > 0 && steps > 0; steps-- {
		if o := int(t.owners[e]) - 1; seen[o>>6]>>(o&63)&1 == 0 {
			seen[o>>6] |= 1 << (o & 63)
			dst = append(dst, o)
			n--
		}
		if e++; e == len(t.owners) {
			e = 0
		}
	}
	return dst
}

// First returns the first node of h's preference order for which ok, -1 if there
// is none. ok may be asked about one node more than once, and about nodes that own
// nothing. It allocates nothing but what AppendReplicas may.
func (t *Table) First(h uint64, ok func(node int) bool) int {
	if t.live == 0 {
		return -1
	}
	from, _ := bits.Mul64(h, uint64(len(t.owners)))
	e := int(from)
	for range min(nearest.Patience(t.live), len(t.owners)) {
		if o := int(t.owners[e]) - 1; ok(o) {
			return o
		}
		if e++; e == len(t.owners) {
			e = 0
		}
	}
	return t.nearest.First(int(from), t.owners, 1, t.nodes, ok)
}
