package placement

import (
	"slices"

	"github.com/shardd/shardd/topology"
)

// zoning is the zone rule of a table: copies stand in distinct zones while there
// are enough, and with more copies than zones no zone gets a second copy before
// every other zone that can has one, and so on.
type zoning struct {
	zone   []uint16 // zone number of each node
	levels []int    // copies that the zone of the k-th node of a list holds already
	zones  int      // zones with owners
}

func newZoning(spec topology.Spec, nodes []topology.Node, replicas int) zoning {
	z := zoning{zone: make([]uint16, len(nodes))}
	sizes := numberZones(spec, nodes, z.zone)
	z.zones = len(sizes)
	for level := 0; len(z.levels) < replicas; level++ {
		open := 0
		for _, size := range sizes {
			if size > level {
				open++
			}
		}
		if open == 0 {
			break
		}
		z.levels = append(z.levels, slices.Repeat([]int{level}, min(open, replicas-len(z.levels)))...)
	}
	return z
}

// numberZones writes each node's zone as a number from 0, in the order of the
// nodes, and returns how many owners each zone with owners has.
func numberZones(spec topology.Spec, nodes []topology.Node, zone []uint16) map[uint16]int {
	numbers := make(map[string]uint16)
	sizes := make(map[uint16]int)
	for i, n := range nodes {
		z, known := numbers[n.Zone]
		if !known {
			z = uint16(len(numbers)) // at most topology.MaxNodes
			numbers[n.Zone] = z
		}
		zone[i] = z
		if spec.OwnerWeight(n) > 0 {
			sizes[z]++
		}
	}
	return sizes
}

// arrange moves nodes of list forward so that its first n obey the rule, each
// the first of list that does; the others keep their order. It reports false,
// and may have moved some, if list is too short to tell.
func (z *zoning) arrange(list []int, n int) bool {
	for k := range n {
		i := k
		for i < len(list) && z.held(list[:k], list[i]) != z.levels[k] {
			i++
		}
		if i == len(list) {
			return false
		}
		x := list[i]
		copy(list[k+1:i+1], list[k:i])
		list[k] = x
	}
	return true
}

// held counts the chosen nodes in the zone of node x.
func (z *zoning) held(chosen []int, x int) int {
	n := 0
	for _, c := range chosen {
		if z.zone[c] == z.zone[x] {
			n++
		}
	}
	return n
}

// spread is AppendReplicas under the zone rule. It walks as much of the
// preference order as it takes to meet enough zones, seldom more than 4 nodes for
// each replica.
func (t *Table) spread(dst []int, h uint64, n int) []int {
	base := len(dst)
	apart := min(n, len(t.zoning.levels))
	for m := max(n, 4*apart); ; m *= 4 {
		dst = t.prefer(dst[:base], h, m)
		if t.zoning.arrange(dst[base:], apart) || m >= t.owners {
			return dst[:min(len(dst), base+n)]
		}
		if n == apart {
			if list, ok := t.apart(dst[:base], h, n); ok {
				return list
			}
		}
	}
}
