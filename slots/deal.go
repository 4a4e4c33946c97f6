package slots

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/shardd/shardd/internal/splitmix"
)

// sums keeps numbers under updates and finds the one that a running sum falls
// into, both in O(log n) (Fenwick 1994).
type sums struct {
	tree  []int // 1-based
	total int
}

func newSums(x []int) *sums {
	s := &sums{tree: make([]int, len(x)+1)}
	s.reset(x)
	return s
}

func (s *sums) reset(x []int) {
	s.total = 0
	copy(s.tree[1:], x)
	for i, v := range x {
		s.total += v
		if up := i + 1 + (i+1)&-(i+1); up < len(s.tree) {
			s.tree[up] += s.tree[i+1]
		}
	}
}

func (s *sums) add(i, d int) {
	s.total += d
	for i++; i < len(s.tree); i += i & -i {
		s.tree[i] += d
	}
}

// upTo returns sum(x[:n]).
func (s *sums) upTo(n int) int {
	sum := 0
	for ; n > 0; n -= n & -n {
		sum += s.tree[n]
	}
	return sum
}

// find returns the i with sum(x[:i]) <= v < sum(x[:i+1]), for 0 <= v < total.
func (s *sums) find(v int) int {
	i := 0
	for step := 1 << (bits.Len(uint(len(s.tree)-1)) - 1); step > 0; step >>= 1 {
		if next := i + step; next < len(s.tree) && s.tree[next] <= v {
			i = next
			v -= s.tree[next]
		}
	}
	return i
}

// deal assigns all copies afresh, width nodes a slot, slot by slot.
//
// With L slots left, a node that still has to hold d of them must be in this one
// with probability d/L. Put the nodes on a line, each of length d, the nodes of
// a zone together; the line is width x L long. Take the nodes at u, u + L,
// u + 2L, ... for a random u below L. A node of length at most L is met at most
// once, one of length L for certain, and so for a zone of length up to k L: k
// times at most, and no more than k (L - 1) is left. So every slot gets width
// distinct nodes within the zones' limits, and all quotas are met at the end,
// without a second thought (Madow's systematic sampling). The order on the line
// decides who meets whom, so it is shuffled again and again: every N/16 slots.
func deal(p *plan, rng *splitmix.Source) []uint16 {
	cells := make([]uint16, p.count*p.width)
	line := newLine(p)
	need := make([]int, len(line.nodes))
	for k, i := range line.nodes {
		need[k] = p.quotas[i]
	}
	var lengths *sums
	every := max(1, len(line.nodes)/16)
	for s := range p.count {
		if s%every == 0 {
			line.shuffle(need, rng)
			if lengths == nil {
				lengths = newSums(need)
			}
			lengths.reset(need)
		}
		left := p.count - s
		u := int(rng.Below(uint64(left)))
		cell := cells[s*p.width:][:p.width]
		for j := range cell {
			cell[j] = uint16(lengths.find(u + j*left))
		}
		for j, k := range cell {
			lengths.add(int(k), -1)
			need[k]--
			cell[j] = line.nodes[k]
		}
	}
	return cells
}

// line is the nodes with weight, those of a zone together.
type line struct {
	nodes  []uint16
	groups [][2]int // begin and end of each zone, or one group for all
	spare  []uint16
	spareN []int
}

func newLine(p *plan) *line {
	l := &line{}
	for i, q := range p.quotas {
		if q > 0 {
			l.nodes = append(l.nodes, uint16(i))
		}
	}
	zone := func(node uint16) uint16 {
		if p.zone == nil {
			return 0
		}
		return p.zone[node]
	}
	slices.SortStableFunc(l.nodes, func(a, b uint16) int { return cmp.Compare(zone(a), zone(b)) })
	for k, node := range l.nodes {
		if k == 0 || zone(node) != zone(l.nodes[k-1]) {
			l.groups = append(l.groups, [2]int{k, k})
		}
		l.groups[len(l.groups)-1][1]++
	}
	l.spare, l.spareN = make([]uint16, len(l.nodes)), make([]int, len(l.nodes))
	return l
}

// shuffle puts the zones, and the nodes within each, into a new order, and need
// along with them.
func (l *line) shuffle(need []int, rng *splitmix.Source) {
	splitmix.Shuffle(rng, l.groups)
	at := 0
	for g, span := range l.groups {
		begin := at
		for k := span[0]; k < span[1]; k++ {
			l.spare[at], l.spareN[at] = l.nodes[k], need[k]
			at++
		}
		l.groups[g] = [2]int{begin, at}
		for i := at - 1; i > begin; i-- {
			j := begin + int(rng.Below(uint64(i-begin)+1))
			l.spare[i], l.spare[j] = l.spare[j], l.spare[i]
			l.spareN[i], l.spareN[j] = l.spareN[j], l.spareN[i]
		}
	}
	copy(l.nodes, l.spare)
	copy(need, l.spareN)
}
