package slots

import (
	"cmp"
	"slices"
)

// augment moves entries along cheapest paths from slots with a place to fill and
// nodes above quota to nodes below, until none is left or no path leads there.
// Paths that cost more than limit are left alone. It returns whether all quotas
// are met.
//
// A path is a row of nodes a, b, c, ...: a gives its place in some slot to b, b
// gives its place in another to c, and so on; only the ends change their counts.
// A step costs 1 if the taker is new to the slot, less 1 if the giver was new
// too: a copy that has moved already moves on for nothing, and one that goes
// home is a move saved. Flows that are extended along cheapest paths stay
// cheapest, so the moves at the end are the fewest possible.
func (f *flow) augment(limit int64) bool {
	least := min(limit, 1)
	for !f.done() {
		t := f.search(least)
		if least = t.best; least > limit || !f.applyAll(t) {
			return false
		}
	}
	return true
}

// anyCost is no limit for augment.
const anyCost = unreached

// A label is a path's cost and length: cost<<labelShift + steps, so that of two
// paths at the same cost the shorter is better. The shortest use no slot twice.
const (
	labelShift = 20
	oneStep    = 1
	unreached  = 1 << 40
)

// tree is a set of cheapest paths from all sources at once.
type tree struct {
	label []int64  // by node
	from  []uint16 // the last step's giver; NoOwner: the step fills a place
	via   []int32  // the last step's slot; -1: the node is a source
	step  []int64  // the last step's cost
	open  []uint32 // slots with a place to fill
	best  int64    // the least cost of a path to a node below quota
	queue []uint16
	in    []bool // in the queue
}

func newTree(n int) *tree {
	return &tree{label: slices.Repeat([]int64{unreached}, n), from: make([]uint16, n), via: make([]int32, n), step: make([]int64, n), in: make([]bool, n)}
}

// search finds cheapest paths with a label-correcting search (Bellman and Ford;
// costs may be negative, cycles of negative cost do not exist). No path costs
// less than least, so the search ends when one costs just that.
func (f *flow) search(least int64) *tree {
	t := newTree(len(f.quota))
	for i := range f.quota {
		if f.over(i) > 0 {
			t.reach(uint16(i), NoOwner, -1, 0)
		}
	}
	t.open = f.openSlots()
	for _, s := range t.open {
		f.offer(t, int(s), NoOwner, f.takers(t, int(s), oneStep))
	}
	// Each pass over the queue makes paths one step longer; none needs n steps.
	for pass := 0; pass <= len(f.quota); pass++ {
		if t.best = f.nearest(t); t.best <= least || len(t.queue) == 0 {
			break
		}
		queue := t.queue
		t.queue = nil
		for _, a := range queue {
			t.in[a] = false
			f.relax(t, a)
		}
	}
	return t
}

// nearest returns the least cost of a path to a node below quota.
func (f *flow) nearest(t *tree) int64 {
	best := int64(unreached)
	for i, label := range t.label {
		if label < unreached && f.over(i) < 0 {
			best = min(best, label>>labelShift)
		}
	}
	return best
}

func (t *tree) reach(node, from uint16, via int, label int64) {
	t.label[node], t.from[node], t.via[node] = label, from, int32(via)
	if !t.in[node] {
		t.in[node] = true
		t.queue = append(t.queue, node)
	}
}

// cost returns the cost of the step from out to in at slot s.
func (f *flow) cost(s int, out, in uint16) int64 {
	c := int64(0)
	if !f.before.holds(s, in) {
		c++
	}
	if out != NoOwner && !f.before.holds(s, out) {
		c--
	}
	return c
}

// relax tries all steps from node a. Where any node may take a place, most slots
// offer the same: a place that a had before costs 1, one that it got costs 0,
// whoever takes it, unless the taker had a copy there before. So the nodes that
// could gain from such an offer are listed once and struck off when served.
func (f *flow) relax(t *tree, a uint16) {
	if f.picky {
		for _, s := range f.slots[a] {
			f.offer(t, int(s), a, f.rule.choices(int(s)))
		}
		return
	}
	free, paid := t.label[a]+oneStep, t.label[a]+1<<labelShift+oneStep
	var open [2][]uint16 // takers of a place that a got, and of one that it had
	open[0], open[1] = f.takers(t, 0, free), f.takers(t, 0, paid)
	for _, s := range f.slots[a] {
		s, had := int(s), 1
		if f.dirty[s] {
			f.offer(t, s, a, f.displaced(s))
			if !f.before.holds(s, a) {
				had = 0
			}
		}
		if list := open[had]; len(list) > 0 && f.offer(t, s, a, list) {
			open[had] = slices.DeleteFunc(list, func(b uint16) bool { return t.label[b] <= free+int64(had)<<labelShift })
		}
	}
}

// displaced lists the nodes that had a copy of slot s and do not have it now.
func (f *flow) displaced(s int) []uint16 {
	var list []uint16
	for _, row := range f.before {
		if o := row[s]; o != NoOwner && f.quota[o] > 0 && !slices.Contains(f.at(s), o) {
			list = append(list, o)
		}
	}
	return list
}

// takers lists the nodes that slot s may hold, if it may hold any only those
// that a label would serve.
func (f *flow) takers(t *tree, s int, label int64) []uint16 {
	if f.picky {
		return f.rule.choices(s)
	}
	var list []uint16
	for b, have := range t.label {
		if have > label && f.quota[b] > 0 {
			list = append(list, uint16(b))
		}
	}
	return list
}

// offer labels those of takers that do better by taking a's place in slot s.
func (f *flow) offer(t *tree, s int, a uint16, takers []uint16) bool {
	base, found := int64(0), false
	if a != NoOwner {
		base = t.label[a]
	}
	for _, b := range takers {
		cost := f.cost(s, a, b)
		label := base + cost<<labelShift + oneStep
		if label < t.label[b] && b != a && f.rule.allows(s, a, b) {
			t.reach(b, a, s, label)
			t.step[b] = cost
			found = true
		}
	}
	return found
}

// applyAll extends the flow along the paths of t that cost the least, as often as
// they bear it. It returns whether any did.
func (f *flow) applyAll(t *tree) bool {
	var goals []uint16
	for i, label := range t.label {
		if f.over(i) < 0 && label>>labelShift == t.best {
			goals = append(goals, uint16(i))
		}
	}
	slices.SortStableFunc(goals, func(a, b uint16) int { return cmp.Compare(t.label[a], t.label[b]) })
	applied := false
	for _, g := range goals {
		for f.over(int(g)) < 0 && f.apply(t, g) {
			applied = true
		}
	}
	return applied
}

// step moves node in to where out is in a slot.
type step struct {
	slot    int
	out, in uint16
}

// apply moves one entry along the path to goal. Another path may have used a
// step's slot; then any slot that allows the same step at the same cost will do.
// It returns false, and changes nothing, if there is none or the source has
// nothing more to give.
func (f *flow) apply(t *tree, goal uint16) bool {
	var path []step
	for b := goal; t.via[b] >= 0; b = t.from[b] {
		st, ok := f.resolve(t, b, path)
		if !ok || len(path) > len(f.quota) {
			return false
		}
		path = append(path, st)
		if st.out == NoOwner {
			break
		}
	}
	if source := path[len(path)-1].out; source != NoOwner && f.over(int(source)) <= 0 {
		return false
	}
	for _, st := range slices.Backward(path) {
		f.put(st.slot, st.out, st.in)
	}
	return true
}

// resolve finds a slot for the last step of the path to node b, none of path.
func (f *flow) resolve(t *tree, b uint16, path []step) (step, bool) {
	a := t.from[b]
	fits := func(s int) bool {
		return slices.Contains(f.at(s), a) && f.cost(s, a, b) == t.step[b] && f.rule.allows(s, a, b) &&
			!slices.ContainsFunc(path, func(st step) bool { return st.slot == s })
	}
	if s := int(t.via[b]); fits(s) {
		return step{s, a, b}, true
	}
	list := t.open
	if a != NoOwner {
		list = f.slots[a]
	}
	for _, s := range list {
		if fits(int(s)) {
			return step{int(s), a, b}, true
		}
	}
	return step{}, false
}
