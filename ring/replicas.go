package ring

import (
	"math/bits"
	"slices"
)

// AppendReplicas appends to dst the first n nodes of the preference order of h:
// the owners of the points from h on, each once. It appends fewer if fewer own
// anything, and nothing for n <= 0. The first is Locate(h).
//
// It takes about n steps for n much smaller than the number of owners, never
// more than the number of points, and allocates only to grow dst.
func (r *Ring) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, r.owners)
	if n <= 0 {
		return dst
	}
	i, _ := bits.Mul64(h, uint64(len(r.lines)))
	at := r.first(h, i)
	if n > fewReplicas {
		return r.appendMany(dst, at, n)
	}
	base := len(dst)
	for ; len(dst) < base+n; at++ {
		if at == len(r.owner) {
			at = 0
		}
		if o := int(r.owner[at]); !slices.Contains(dst[base:], o) {
			dst = append(dst, o)
		}
	}
	return dst
}

// fewReplicas is up to where looking through the nodes found so far is cheaper
// than clearing 8 KiB of marks.
const fewReplicas = 16

// appendMany is the same walk from point at with a mark for each node seen.
func (r *Ring) appendMany(dst []int, at, n int) []int {
	var seen [(MaxNodes + 63) / 64]uint64
	for base := len(dst); len(dst) < base+n; at++ {
		if at == len(r.owner) {
			at = 0
		}
		o := r.owner[at]
		if bit := uint64(1) << (o % 64); seen[o/64]&bit == 0 {
			seen[o/64] |= bit
			dst = append(dst, int(o))
		}
	}
	return dst
}
