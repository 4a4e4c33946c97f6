package ring

import (
	"math/bits"
	"slices"

	"github.com/shardd/shardd/internal/nearest"
)

// AppendReplicas appends to dst the first n nodes of the preference order of h:
// the owners of the points from h on, each once. It appends fewer if fewer own
// anything, and nothing for n <= 0. The first is Locate(h).
//
// It takes about n steps for n much smaller than the number of owners. Where one
// node has nearly all points it stops walking after some 16 N and searches for
// the next point of each other node, for which all points are sorted by node once
// (4 bytes each). It allocates only to grow dst, for that, and where it searches
// for more than 16 nodes.
func (r *Ring) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, r.owners)
	if n <= 0 {
		return dst
	}
	i, _ := bits.Mul64(h, uint64(len(r.lines)))
	from := r.first(h, i)
	base, patience := len(dst), nearest.Patience(r.owners)
	if n > fewReplicas {
		dst = r.appendMany(dst, from, n, patience)
	} else {
		dst = r.appendFew(dst, from, n, patience)
	}
	if len(dst) < base+n {
		return r.nearest.Append(dst, base, n, from, r.owner, 0, r.nodes)
	}
	return dst
}

// fewReplicas is up to where looking through the nodes found so far is cheaper
// than clearing 8 KiB of marks.
const fewReplicas = 16

// appendFew walks from point at until n nodes are found, or for so many steps.
func (r *Ring) appendFew(dst []int, at, n, steps int) []int {
	for base := len(dst); len(dst) < base+n && steps > 0; steps-- {
		if at == len(r.owner) {
			at = 0
		}
		if o := int(r.owner[at]); !slices.Contains(dst[base:], o) {
			dst = append(dst, o)
		}
		at++
	}
	return dst
}

// appendMany is the same walk with a mark for each node seen.
func (r *Ring) appendMany(dst []int, at, n, steps int) []int {
	var seen [(MaxNodes + 63) / 64]uint64
	for base := len(dst); len(dst) < base+n && steps > 0; steps-- {
		if at == len(r.owner) {
			at = 0
		}
		o := r.owner[at]
		if bit := uint64(1) << (o % 64); seen[o/64]&bit == 0 {
			seen[o/64] |= bit
			dst = append(dst, int(o))
		}
		at++
	}
	return dst
}

// First returns the first node of h's preference order for which ok, -1 if there
// is none. ok may be asked about one node more than once, and about nodes that own
// nothing. It allocates nothing but what AppendReplicas may.
func (r *Ring) First(h uint64, ok func(node int) bool) int {
	if r.owners == 0 {
		return -1
	}
	i, _ := bits.Mul64(h, uint64(len(r.lines)))
	from := r.first(h, i)
	at := from
	for range min(nearest.Patience(r.owners), len(r.owner)) {
		if o := int(r.owner[at]); ok(o) {
			return o
		}
		if at++; at == len(r.owner) {
			at = 0
		}
	}
	return r.nearest.First(from, r.owner, 0, r.nodes, ok)
}
