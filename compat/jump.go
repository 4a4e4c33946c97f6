package compat

import (
	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/keyhash"
)

// Jump is Jump consistent hash over a plain list.
type Jump struct {
	order []uint16
	shift uint // 32 for hashes of 32 bits, which the libraries widen with zeros
}

func newJump(hash keyhash.Func, live []server) *Jump {
	j := &Jump{order: make([]uint16, len(live))}
	for i, s := range live {
		j.order[i] = uint16(s.index)
	}
	if hash.Kind().Low32() {
		j.shift = 32
	}
	return j
}

// Buckets returns the node of each bucket. Read only.
func (j *Jump) Buckets() []uint16 { return j.order }

// Locate returns the node of hash h, -1 without nodes.
func (j *Jump) Locate(h uint64) int {
	if len(j.order) == 0 {
		return -1
	}
	return int(j.order[jump.Hash(h>>j.shift, len(j.order))])
}

// AppendReplicas appends the first n nodes of h's order to dst: the list from h's
// bucket on, round.
func (j *Jump) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, len(j.order))
	if n <= 0 {
		return dst
	}
	at := jump.Hash(h>>j.shift, len(j.order))
	for i := range n {
		dst = append(dst, int(j.order[(at+i)%len(j.order)]))
	}
	return dst
}
