package migrate

import (
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// moduloRow is the movement of hash(key) mod n over the owners in the order of
// their ids. A key has residue i mod n before and j mod m after; each pair with
// i = j mod gcd(n, m) has the same share, 1/lcm(n, m) (Chinese remainder
// theorem), so what stays is counted, not sampled.
func moduloRow(from, to *topology.Topology) Row {
	row := Row{Algorithm: Modulo, Note: "hash(key) mod nodes: a warning, not a choice"}
	p := newPairing(from, to)
	if len(p.before) == 0 || len(p.after) == 0 {
		row.Note += "; not defined without owners"
		return row
	}
	s := p.summary()
	row.Movement = &s
	row.PeakBefore, row.PeakAfter = unevenness(p.before), unevenness(p.after)
	if row.PeakAfter > 1.000001 {
		row.Note += "; it ignores weights"
	}
	if from.Spec().Replicas > 1 || to.Spec().Replicas > 1 {
		row.Note += "; owners only, without further replicas"
	}
	return row
}

// pairing is two lists of owners in the order of their ids.
type pairing struct {
	before, after []topology.Node
	was, is       map[string]int // positions in them
}

func newPairing(from, to *topology.Topology) *pairing {
	p := &pairing{was: map[string]int{}, is: map[string]int{}}
	p.before, p.after = owners(from, p.was), owners(to, p.is)
	return p
}

func owners(t *topology.Topology, at map[string]int) (out []topology.Node) {
	for _, n := range t.Nodes() {
		if n.OwnerWeight() > 0 {
			at[n.ID] = len(out)
			out = append(out, n)
		}
	}
	return out
}

// unchanged reports whether the owner is there on both sides with one weight.
func (p *pairing) unchanged(id string) bool {
	i, was := p.was[id]
	j, is := p.is[id]
	return was && is && p.before[i].Weight == p.after[j].Weight
}

func (p *pairing) summary() placement.Summary {
	n, m := len(p.before), len(p.after)
	g := gcd(n, m)
	lcm := float64(n) * float64(m/g)
	// Pairs of residues, all and those that stay; and of the former those of
	// two unchanged nodes, class by class.
	stay, stayUnchanged, unchangedPairs := 0, 0, 0.0
	before, after := make([]int, g), make([]int, g)
	for i, o := range p.before {
		unchanged := p.unchanged(o.ID)
		if unchanged {
			before[i%g]++
		}
		if j, ok := p.is[o.ID]; ok && i%g == j%g {
			stay++
			if unchanged {
				stayUnchanged++
			}
		}
	}
	for j, o := range p.after {
		if p.unchanged(o.ID) {
			after[j%g]++
		}
	}
	for r := range g {
		unchangedPairs += float64(before[r]) * float64(after[r])
	}
	s := placement.Summary{Ratio: 1 - float64(stay)/lcm, Method: placement.MethodResidues,
		BetweenUnchanged: (unchangedPairs - float64(stayUnchanged)) / lcm}
	s.Minimum, s.MinimumRealised = p.least(weightShare), p.least(evenShare)
	s.Excess = s.Ratio - s.Minimum
	return s
}

// least returns the least movement between the two sides' shares.
func (p *pairing) least(share func([]topology.Node, int) float64) float64 {
	wasTotal, isTotal := share(p.before, -1), share(p.after, -1)
	sum := 0.0
	for j, o := range p.after {
		was := 0.0
		if i, ok := p.was[o.ID]; ok {
			was = share(p.before, i) / wasTotal
		}
		sum += max(0, share(p.after, j)/isTotal-was)
	}
	return sum
}

// weightShare returns the weight of node i, or of all nodes for -1.
func weightShare(nodes []topology.Node, i int) float64 {
	if i >= 0 {
		return float64(nodes[i].Weight)
	}
	total := 0.0
	for _, n := range nodes {
		total += float64(n.Weight)
	}
	return total
}

// evenShare is weightShare as if all weights were 1.
func evenShare(nodes []topology.Node, i int) float64 {
	if i >= 0 {
		return 1
	}
	return float64(len(nodes))
}

// unevenness returns the largest ratio of an even share to the one asked for.
func unevenness(nodes []topology.Node) float64 {
	total, lightest := weightShare(nodes, -1), nodes[0].Weight
	for _, n := range nodes {
		lightest = min(lightest, n.Weight)
	}
	return total / float64(lightest) / float64(len(nodes))
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
