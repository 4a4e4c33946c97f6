// Package placements holds the Go libraries for consistent hashing that people
// would otherwise pick, and this module's packages, under one small interface,
// and measures them on the same keys and nodes in one run.
//
// Every library is used as its documentation shows, with the settings that its
// name in the table gives: 160 points a node where that can be chosen, 65,537
// entries for Maglev tables. Where a library takes the hash of a key, it gets
// xxhash, as this module's packages do.
package placements

import "github.com/shardd/shardd/bench/internal/ours"

// Instance is a mapping that can change.
type Instance interface {
	// Pass looks up every key and returns the sum of the lengths of the names.
	Pass(keys []string) int
	// Owner returns the name of the node that owns key.
	Owner(key string) string
	// Add and Remove change the mapping by one node.
	Add(name string) error
	Remove(name string) error
}

// Subject is an Instance to be made.
type Subject struct {
	// Name is the import path without its host, or the name of our algorithm,
	// with its parameters.
	Name string
	// Family is the algorithm: ring, jump, rendezvous, maglev, slots, partitions.
	Family string
	// Ours says that it is a package of this module.
	Ours bool
	// Linear says that a lookup takes time in proportion to the nodes.
	Linear bool
	// Batch says that only its speed differs from the subject before it.
	Batch bool
	// MaxNodes is the largest number of nodes that it can serve, 0 = any, and
	// Why is the reason.
	MaxNodes int
	Why      string
	// Note is what a reader of its row must know.
	Note string
	// New returns the mapping of names, which are strictly ascending.
	New func(names []string) (Instance, error)
}

// Subjects returns everything that is measured, ours first.
func Subjects() []Subject {
	var list []Subject
	for _, s := range ours.Subjects() {
		list = append(list, Subject{
			Name: s.Name, Family: s.Family, Ours: true, Linear: s.Linear, Batch: s.Batch,
			MaxNodes: s.MaxNodes, Why: "too few slots to be even",
			New: func(names []string) (Instance, error) { return newOwn(s, names) },
		})
	}
	list = append(list, rings()...)
	return append(list, tables()...)
}
