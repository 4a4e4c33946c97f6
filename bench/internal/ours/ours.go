// Package ours offers this module's placement packages to the benchmarks under
// one small interface, each used as a program would use it: the hash of the key
// is part of a lookup, and so is the name of the node that it ends at.
//
// The lookups are written out loop by loop, so that what is measured is the
// package and not a call through an interface.
package ours

import (
	"errors"

	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/slots"
)

// Mapping is one algorithm over a list of nodes of equal weight.
type Mapping interface {
	// Pass looks up every key and returns the sum of the lengths of the names.
	Pass(keys []string) int
	// Owner returns the name of the node that owns key.
	Owner(key string) string
	// With returns the mapping after an update to these names, which are
	// strictly ascending. The receiver stays as it is.
	With(names []string) (Mapping, error)
}

// Subject is a Mapping to be made.
type Subject struct {
	// Name is the algorithm with its parameters; Family is that of the
	// algorithm alone.
	Name, Family string
	// Linear says that a lookup takes time in proportion to the nodes.
	Linear bool
	// Batch says that it looks up several keys at once; in all else it is the
	// subject before it.
	Batch bool
	// MaxNodes is the largest number of nodes that it is meant for; 0 = any.
	MaxNodes int
	// New returns the mapping of names, which are strictly ascending.
	New func(names []string) (Mapping, error)
}

// ErrEmpty is returned for an empty list of names.
var ErrEmpty = errors.New("ours: no nodes")

// Subjects returns all forms of the five algorithms that have figures of their
// own, in the order in which tables list them.
func Subjects() []Subject {
	return []Subject{
		{Name: "ring, 160 points", Family: "ring", New: func(n []string) (Mapping, error) { return newRing(n, 160) }},
		{Name: "ring, 160 points, 64 at a time", Family: "ring", Batch: true, New: newRingBatch},
		{Name: "jump", Family: "jump", New: func(n []string) (Mapping, error) { return newJump(n, jump.Classic) }},
		{Name: "jump, 4 at a time", Family: "jump", Batch: true, New: newJumpBatch},
		{Name: "jump, variant back", Family: "jump", New: func(n []string) (Mapping, error) { return newJump(n, jump.Back) }},
		{Name: "rendezvous", Family: "rendezvous", Linear: true, New: newRendezvous},
		{Name: "rendezvous, table of 65536", Family: "rendezvous", MaxNodes: 1000,
			New: func(n []string) (Mapping, error) { return newRendezvousTable(n, rendezvous.DefaultSlots) }},
		{Name: "maglev, 65537", Family: "maglev", New: func(n []string) (Mapping, error) { return newMaglev(n, maglev.DefaultSize) }},
		{Name: "slots, 16384", Family: "slots", MaxNodes: 1000, New: func(n []string) (Mapping, error) { return newSlots(n, slots.DefaultCount) }},
		{Name: "slots, 16384, CRC16", Family: "slots", MaxNodes: 1000, New: newRedisSlots},
	}
}

// ones returns n weights of 1.
func ones(n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

// moved returns for each index into from the index of the same name in to, or
// gone. Both lists ascend.
func moved(from, to []string, gone uint16) []uint16 {
	at := make([]uint16, len(from))
	j := 0
	for i, name := range from {
		for j < len(to) && to[j] < name {
			j++
		}
		at[i] = gone
		if j < len(to) && to[j] == name {
			at[i] = uint16(j)
		}
	}
	return at
}

// reindexed returns entries with every index i replaced by at[i]; what is not
// an index stays.
func reindexed(entries, at []uint16) []uint16 {
	next := make([]uint16, len(entries))
	for i, e := range entries {
		next[i] = e
		if int(e) < len(at) {
			next[i] = at[e]
		}
	}
	return next
}
