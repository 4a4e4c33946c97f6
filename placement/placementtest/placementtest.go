// Package placementtest holds the laws that every placement must obey, as
// properties that are run on any of them: the native algorithms, and whatever
// maps keys like a foreign system.
//
// Law: Run fails a subject that depends on the order in which nodes are listed,
// moves a key that it need not move, gives a node too much, too little or
// nothing, repeats a node among a key's replicas, or comes back from its own
// published form as another mapping.
//
// Cost: a few seconds a subject, a hundred random clusters each; pass small
// tables. It draws with pgregory.net/rapid, whose flags apply.
//
// It does not test speed, and not the movement report: placement's own tests do.
package placementtest

import (
	"testing"

	"github.com/shardd/shardd/topology"
)

// Mapping is what the laws look at: names in, names out.
type Mapping interface {
	// Owner returns the id of the node that owns key, "" if no node owns any.
	Owner(key string) string
	// Replicas returns the first n distinct nodes of key's preference order,
	// fewer if there are fewer.
	Replicas(key string, n int) []string
}

// Subject is a placement under test.
type Subject struct {
	// Name names the subtest.
	Name string
	// Next maps nodes; prev is the mapping before, nil for none. An error
	// refuses the nodes, and is right only for what Refuses says.
	Next func(prev Mapping, nodes []topology.Node) (Mapping, error)
	// Replace maps nodes after prev, from which old is gone and for which by
	// has come, so that only old's keys move; nil = not offered.
	Replace func(prev Mapping, nodes []topology.Node, old, by string) (Mapping, error)
	// Reload takes a mapping through its published form; nil = has none.
	Reload func(Mapping) (Mapping, error)
	// Shares returns each node's exact share by id; nil = laws count keys.
	Shares func(Mapping) map[string]float64
	// History says that the mapping depends on the changes so far. Without
	// it, the same nodes give the same mapping on every path.
	History bool
	// Moves says that a change of one node may move other nodes' keys too.
	Moves bool
	// Weight returns the weight by which a node owns keys; nil =
	// Node.OwnerWeight. A mapping that ignores weights has 1 for all above 0.
	Weight func(topology.Node) uint32
	// Zones says that the first Replicas nodes of a key stand in distinct
	// zones while there are enough.
	Zones bool
	// Replicas is for how many replicas the subject is set up; 0 = 1.
	Replicas int
	// Tolerance is by how much the share of a node may differ from target,
	// which is weight/total; nil = not checked.
	Tolerance func(weight, total uint32, nodes int) float64
	// Refuses says which nodes the subject rightly refuses; nil = none.
	Refuses func(nodes []topology.Node) bool
	// Large is the size of the largest cluster tried; 0 = 10,000.
	Large int
}

// Run runs every law on s in subtests, beside those of other subjects.
func Run(t *testing.T, s Subject) {
	t.Helper()
	t.Run(s.Name, func(t *testing.T) {
		t.Parallel()
		t.Run("order", s.order)
		t.Run("path", s.path)
		t.Run("moves", s.moves)
		t.Run("replace", s.replace)
		t.Run("shares", s.shares)
		t.Run("replicas", s.replicas)
		t.Run("empty", s.empty)
		t.Run("single", s.single)
		t.Run("weightless", s.weightless)
		t.Run("large", s.large)
	})
}
