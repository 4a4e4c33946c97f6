package lalb

import (
	"sync/atomic"
)

// tree is a complete binary tree of weights in an array: the children of i are
// 2i+1 and 2i+2, and left is the sum of the weights in i's left subtree. One
// belongs to one picker; whoever changes a weight adds the difference to the
// sums on the way up. Every difference comes from one exchange of the weight, so
// the sums add up once all are done, whatever the order.
type tree struct {
	leaves []leaf
	total  atomic.Int64
}

type leaf struct {
	left   atomic.Int64
	weight atomic.Int64
	server *server
	member int32 // in the set
	down   bool
	_      [64 - 8*3 - 8]byte
}

// sum fills in the sums of a tree that nobody uses yet.
func (t *tree) sum() {
	for i := range t.leaves {
		t.add(i, t.leaves[i].weight.Load())
	}
}

// set makes w the weight of leaf i and returns the difference.
func (t *tree) set(i int, w int64) int64 {
	diff := w - t.leaves[i].weight.Swap(w)
	if diff != 0 {
		t.add(i, diff)
	}
	return diff
}

// add adds a difference to the sums that leaf i is part of.
func (t *tree) add(i int, diff int64) {
	for i > 0 {
		parent := (i - 1) / 2
		if i == 2*parent+1 {
			t.leaves[parent].left.Add(diff)
		}
		i = parent
	}
	t.total.Add(diff)
}
