package rendezvous

import (
	"math"
	"slices"
)

// fewReplicas is up to how many replicas AppendReplicas keeps in order while it
// goes through the nodes; for more it sorts all nodes.
const fewReplicas = 16

// AppendReplicas appends to dst the first n nodes of the preference order of h,
// by ascending score. It appends fewer if fewer own anything, and nothing for
// n <= 0. The first is Locate(h).
//
// It takes O(N) time, about as long as Locate, and allocates only to grow dst
// for n up to 16; for more it takes O(N log N) and allocates.
func (t *HRW) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, t.owners)
	if n <= 0 {
		return dst
	}
	var room [fewReplicas]score
	top := room[:0]
	if n <= fewReplicas {
		top = t.lowestFew(top, h, n)
	} else {
		top = t.sorted(h)[:n]
	}
	for _, s := range top {
		dst = append(dst, s.index)
	}
	return dst
}

// lowestFew returns the n least scores in order, in the room of top.
func (t *HRW) lowestFew(top []score, h uint64, n int) []score {
	g := multiplier(h)
	for i := range t.classes {
		c := &t.classes[i]
		limit := uint64(math.MaxUint64)
		if len(top) == n {
			limit = top[n-1].limit(c.weight)
		}
		for j, sd := range c.seeds {
			d := draw(sd, h, g, uint64(j))
			if d >= limit {
				continue
			}
			s := score{expo(d >> 16), c.weight, int(c.index[j])}
			if len(top) < n {
				top = append(top, s)
			} else if s.less(top[n-1]) {
				top[n-1] = s
			} else {
				limit = d // nor does any greater draw of this class come in
				continue
			}
			for k := len(top) - 1; k > 0 && top[k].less(top[k-1]); k-- {
				top[k-1], top[k] = top[k], top[k-1]
			}
		}
	}
	return top
}

// sorted returns the scores of all nodes in order.
func (t *HRW) sorted(h uint64) []score {
	g := multiplier(h)
	all := make([]score, 0, t.owners)
	for i := range t.classes {
		c := &t.classes[i]
		for j, sd := range c.seeds {
			all = append(all, score{expo(draw(sd, h, g, 0) >> 16), c.weight, int(c.index[j])})
		}
	}
	slices.SortFunc(all, score.compare)
	return all
}

func (s score) compare(t score) int {
	switch {
	case s.less(t):
		return -1
	case t.less(s):
		return 1
	}
	return 0
}

// First returns the first node of h's preference order for which ok, -1 if there
// is none. O(N); it allocates nothing.
func (t *HRW) First(h uint64, ok func(node int) bool) int {
	g := multiplier(h)
	best := score{index: -1}
	for i := range t.classes {
		c := &t.classes[i]
		least, at := uint64(math.MaxUint64), -1
		for j, sd := range c.seeds {
			if d := draw(sd, h, g, uint64(j)); (at < 0 || d < least) && ok(int(c.index[j])) {
				least, at = d, j
			}
		}
		if at < 0 {
			continue
		}
		if s := (score{expo(least >> 16), c.weight, int(c.index[at])}); best.index < 0 || s.less(best) {
			best = s
		}
	}
	return best.index
}
