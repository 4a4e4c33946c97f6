package placement

import (
	"cmp"
	"container/heap"
	"slices"
)

// topFlows keeps the largest flows of many, in a heap whose root is the
// smallest kept. Order: larger amount, then smaller from, then smaller to, so
// that the result does not depend on the order of adding.
type topFlows struct {
	kept []flow
	max  int // -1 = all
	left int // not kept
}

func newTopFlows(maxFlows int) *topFlows { return &topFlows{max: maxFlows} }

func compareFlows(a, b flow) int {
	return cmp.Or(cmp.Compare(b.amount, a.amount), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

func (t *topFlows) Len() int           { return len(t.kept) }
func (t *topFlows) Less(i, j int) bool { return compareFlows(t.kept[i], t.kept[j]) > 0 }
func (t *topFlows) Swap(i, j int)      { t.kept[i], t.kept[j] = t.kept[j], t.kept[i] }
func (t *topFlows) Push(x any)         { t.kept = append(t.kept, x.(flow)) }
func (t *topFlows) Pop() any {
	last := t.kept[len(t.kept)-1]
	t.kept = t.kept[:len(t.kept)-1]
	return last
}

func (t *topFlows) add(f flow) {
	switch {
	case t.max < 0:
		t.kept = append(t.kept, f)
	case len(t.kept) < t.max:
		heap.Push(t, f)
	default:
		t.left++
		if t.max > 0 && compareFlows(f, t.kept[0]) < 0 {
			t.kept[0] = f
			heap.Fix(t, 0)
		}
	}
}

// sorted returns the kept flows, largest first, and how many were not kept.
func (t *topFlows) sorted() ([]flow, int) {
	slices.SortFunc(t.kept, compareFlows)
	return t.kept, t.left
}
