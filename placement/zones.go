package placement

import (
	"slices"

	"github.com/shardd/shardd/topology"
)

// zoning is the zone rule of a table: empty unless replicas must stand in
// distinct zones and the algorithm itself knows no zones.
type zoning struct {
	zone  []uint16 // zone number of each node
	zones int      // zones with owners
}

func newZoning(nodes []topology.Node) zoning {
	z := zoning{zone: make([]uint16, len(nodes))}
	z.zones = numberZones(nodes, z.zone)
	return z
}

// numberZones writes each node's zone as a number from 0, in the order of the
// nodes, and returns how many zones have owners.
func numberZones(nodes []topology.Node, zone []uint16) int {
	numbers := make(map[string]uint16)
	owning := make(map[uint16]bool)
	for i, n := range nodes {
		z, known := numbers[n.Zone]
		if !known {
			z = uint16(len(numbers)) // at most topology.MaxNodes
			numbers[n.Zone] = z
		}
		zone[i] = z
		if n.OwnerWeight() > 0 {
			owning[z] = true
		}
	}
	return len(owning)
}

// arrange moves nodes of list forward so that the first n stand in distinct
// zones, each the first of its zone in list; the others keep their order. It
// reports false, and may have moved some, if list has too few zones.
func (z *zoning) arrange(list []int, n int) bool {
	for k := range n {
		i := k + slices.IndexFunc(list[k:], func(x int) bool { return !z.taken(list[:k], x) })
		if i < k {
			return false
		}
		x := list[i]
		copy(list[k+1:i+1], list[k:i])
		list[k] = x
	}
	return true
}

func (z *zoning) taken(chosen []int, x int) bool {
	for _, c := range chosen {
		if z.zone[c] == z.zone[x] {
			return true
		}
	}
	return false
}

// spread is AppendReplicas under the zone rule. It walks as much of the
// preference order as it takes to meet enough zones; in rings and permutations
// of z zones that is seldom more than 4 nodes for each replica.
func (t *Table) spread(dst []int, h uint64, n int) []int {
	base := len(dst)
	apart := min(n, t.replicas, t.zoning.zones)
	for m := max(n, 4*apart); ; m *= 4 {
		dst = t.prefer(dst[:base], h, m)
		if t.zoning.arrange(dst[base:], apart) || m >= t.owners {
			return dst[:min(len(dst), base+n)]
		}
	}
}
