package placementtest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/topology"
)

// countedKeys is how many keys are counted where shares are not exact.
const countedKeys = 2000

// sampleKeys returns n keys.
func sampleKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k:%d", i)
	}
	return keys
}

// names are ids of which some are prefixes, suffixes and neighbours of others:
// labels glued together without a separator would be the same for two of them.
var names = []string{
	"a", "b", "a1", "a11", "1a", "11a", "a-1", "a-1-1", "a#1", "a.b", "A", "node1", "node11", "1node",
	"h:1", "h:1:2", "h:12", "cache", "1cache", "zz", "n-1", "n-1-1", "node-1", "node-10", "node-2",
}

// drawNodes draws 1 to most nodes in any order, with weights from 0, at least
// one above; about one in ten gives its keys up.
func (s Subject) drawNodes(t *rapid.T, most int) []topology.Node {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, min(most, len(names)), rapid.ID).Draw(t, "ids")
	nodes := make([]topology.Node, len(ids))
	for i, id := range ids {
		nodes[i] = drawNode(t, id)
	}
	if s.owners(nodes) == 0 {
		nodes[0].Weight, nodes[0].State = 1, topology.StateActive
	}
	return nodes
}

func drawNode(t *rapid.T, id string) topology.Node {
	return topology.Node{
		ID:     id,
		Addr:   rapid.SampledFrom([]string{"", "10.0.0.1:1", "10.0.0.2:1"}).Draw(t, "addr of "+id),
		Zone:   rapid.SampledFrom([]string{"x", "y", "z", ""}).Draw(t, "zone of "+id),
		Weight: uint32(rapid.SampledFrom([]int{1, 1, 1, 1, 2, 3, 5, 8, 0}).Draw(t, "weight of "+id)),
		State:  rapid.SampledFrom([]topology.State{0, 0, 0, 0, topology.StateDown, 0, 0, topology.StateDraining}).Draw(t, "state of "+id),
	}
}

// weight is the weight by which n owns keys.
func (s Subject) weight(n topology.Node) uint32 {
	if s.Weight != nil {
		return s.Weight(n)
	}
	return n.OwnerWeight()
}

// owners counts the nodes that own keys.
func (s Subject) owners(nodes []topology.Node) int {
	n := 0
	for _, x := range nodes {
		if s.weight(x) > 0 {
			n++
		}
	}
	return n
}

// edit draws one change of nodes and says whose it is: a node comes, leaves,
// gets another weight or gives its keys up. The last owner stays one.
func (s Subject) edit(t *rapid.T, nodes []topology.Node) (after []topology.Node, id string) {
	after = slices.Clone(nodes)
	i := rapid.IntRange(0, len(nodes)-1).Draw(t, "node")
	id = nodes[i].ID
	switch rapid.SampledFrom([]string{"add", "remove", "reweight", "drain"}).Draw(t, "change") {
	case "add":
		id = rapid.SampledFrom(names).Draw(t, "new id")
		if !slices.ContainsFunc(nodes, func(n topology.Node) bool { return n.ID == id }) {
			after = append(after, drawNode(t, id))
		}
	case "remove":
		after = without(nodes, id)
	case "reweight":
		after[i].Weight = uint32(rapid.IntRange(0, 9).Draw(t, "new weight"))
	case "drain":
		after[i].State = topology.StateDraining
	}
	if s.owners(after) == 0 {
		return nodes, ""
	}
	return after, id
}
