package placement

import (
	"fmt"

	"github.com/shardd/shardd/topology"
)

// Modulo returns the movement of the placement that this module replaces: key
// hash modulo the number of entries, every owner of the topology's order by ID
// listed once for each unit of its weight. It is what clients without consistent
// hashing do, and the yardstick for what consistent hashing saves. The two lists
// may have topology.MaxPoints entries at most. O(entries + flows).
func Modulo(before, after []topology.Node) (Report, error) {
	from, err := moduloTopology(before)
	if err != nil {
		return Report{}, err
	}
	to, err := moduloTopology(after)
	if err != nil {
		return Report{}, err
	}
	r := newRoster(from, to)
	a, b := entriesByWeight(from, r.fromAt), entriesByWeight(to, r.toAt)
	o := MovementOptions{}.withDefaults()
	c := &comparison{roster: r, method: MethodResidues, o: o}
	if len(a) == 0 || len(b) == 0 {
		return Report{}, fmt.Errorf("%w: modulo of %d and %d entries", ErrNoNodes, len(a), len(b))
	}
	return c.assemble(residues(r, a, b, o.MaxFlows), 1, 1, CauseKind(from, to.Spec(), after)), nil
}

// moduloTopology sorts and checks nodes. A ring of one point a unit has the
// limit wanted here.
func moduloTopology(nodes []topology.Node) (*topology.Topology, error) {
	return topology.New(topology.Draft{Cluster: "modulo", ID: topology.ClusterID{1}, History: 1,
		Version: topology.Version{Epoch: 1, Seq: 1}, Spec: topology.Spec{Algorithm: topology.Ring, VNodes: 1}, Nodes: nodes})
}

func entriesByWeight(t *topology.Topology, at []int) []int {
	var entries []int
	for i, n := range t.Nodes() {
		for range n.OwnerWeight() {
			entries = append(entries, at[i])
		}
	}
	return entries
}

// residues is the movement of h mod len(a) to h mod len(b), where a and b hold
// roster indices. With g the greatest common divisor, the pairs of residues that
// occur are those equal modulo g, each for the same share of hashes. If g is 1
// all pairs occur, and what stays is the sum of the products of the shares.
func residues(r *roster, a, b []int, maxFlows int) *sheet {
	g := gcd(len(a), len(b))
	pairs := float64(len(a)) / float64(g) * float64(len(b)) // the least common multiple
	before, after := make([]float64, len(r.ids)), make([]float64, len(r.ids))
	for _, x := range a {
		before[x] += 1 / float64(len(a))
	}
	for _, x := range b {
		after[x] += 1 / float64(len(b))
	}
	amounts := make(map[uint64]float64)
	for class := range g {
		ca, cb := countClass(a, class, g), countClass(b, class, g)
		for x, n := range ca {
			for y, m := range cb {
				amounts[flowKey(x, y)] += float64(n) * float64(m)
			}
		}
	}
	l := newLawSheet(r, before, after, maxFlows)
	for _, k := range sortedFlowKeys(amounts) {
		if x, y := int(k>>32), int(uint32(k)); x != y {
			l.move(x, y, amounts[k]/pairs)
		}
	}
	return l.done()
}

// countClass counts the owners of the entries equal to class modulo g.
func countClass(owners []int, class, g int) map[int]int {
	counts := make(map[int]int)
	for i := class; i < len(owners); i += g {
		counts[owners[i]]++
	}
	return counts
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
