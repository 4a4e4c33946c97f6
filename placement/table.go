package placement

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

// Errors that callers decide on.
var (
	// ErrNoNodes: no node owns anything, because the topology has none or all
	// of them have weight 0 or give up their keys. Wait for the next version.
	ErrNoNodes = errors.New("placement: no node owns any key")
	// ErrMapping: this build computes another mapping than the publisher did.
	// Keep the topology you have and upgrade; never route by this one.
	ErrMapping = errors.New("placement: mapping digest differs")
	// ErrTable: the topology's table does not fit its spec or its nodes. Keep
	// the topology you have; the publisher is at fault.
	ErrTable = errors.New("placement: table does not fit the topology")
	// ErrPlanOnly: the foreign mapping is known for planning away from it, not
	// to be published or routed with.
	ErrPlanOnly = errors.New("placement: mapping is for planning only")
)

// Placer is a mapping from 64-bit key hash to node index. The algorithms' own
// types satisfy it without importing it, and so does *Table.
type Placer interface {
	// Len returns the number of nodes, owners or not; results are below it.
	Len() int
	// Locate returns the owner of hash h, or -1 if no node owns anything.
	Locate(h uint64) int
	// AppendReplicas appends the first n distinct nodes of h's preference
	// order to dst, fewer if fewer own anything. The first is Locate(h).
	AppendReplicas(dst []int, h uint64, n int) []int
}

// Table is one immutable mapping: a topology and what its algorithm reads. All
// methods are safe for concurrent use. Node indices are positions in the
// topology's list, which is sorted by ID. Make one with New, Next or Update.
type Table struct {
	engine
	hash     keyhash.Func
	plain    bool // hash is xxHash64 of the whole key
	topo     *topology.Topology
	owners   int // nodes that own something
	replicas int // Spec.Replicas
	zoned    bool
	zoning   zoning
	relaxed  bool
	digest   topology.Digest
	past     *past  // for OwnedSince
	downs    []bool // owners that are published as down; nil if none is
}

// New builds the mapping of t, which must be Complete (topology.ErrMissingObject
// otherwise). If t carries a mapping digest and this build computes another,
// ErrMapping names both. ErrTable says that a table does not fit.
func New(t *topology.Topology) (*Table, error) { return Next(nil, t) }

// Next is New for the topology that comes after prev: the same result, sooner
// where only some nodes changed (a ring of 1000 nodes: 1.5 ms for 5 ms). prev
// may be nil, and stays as it is.
func Next(prev *Table, t *topology.Topology) (*Table, error) {
	if !t.Complete() {
		return nil, fmt.Errorf("placement: version %s: %w; attach the objects that it refers to", t.Version(), topology.ErrMissingObject)
	}
	table, err := build(prev, t)
	if err != nil {
		return nil, fmt.Errorf("placement: version %s: %w", t.Version(), err)
	}
	if want := t.Mapping(); !want.IsZero() && want != table.digest {
		return nil, fmt.Errorf("%w: version %s was published with mapping %s, this build computes %s; upgrade, and keep the topology held so far", ErrMapping, t.Version(), want, table.digest)
	}
	return table, nil
}

// Topology returns what the table was built from.
func (t *Table) Topology() *topology.Topology { return t.topo }

// Len returns the number of nodes in the topology, owners or not.
func (t *Table) Len() int { return t.topo.Len() }

// Owners returns the number of nodes that own keys.
func (t *Table) Owners() int { return t.owners }

// Hash returns the hash of key under the spec's key hash and hash tag. 0 allocations.
func (t *Table) Hash(key string) uint64 {
	if t.plain { // spares a call, about 1 ns
		return xxhash.Sum64String(key)
	}
	return t.hash.Sum(key)
}

// HashBytes is Hash of a byte slice.
func (t *Table) HashBytes(key []byte) uint64 {
	if t.plain {
		return xxhash.Sum64(key)
	}
	return t.hash.SumBytes(key)
}

// Locate returns the owner of hash h, or -1 if no node owns anything. It is the
// hot path: one switch in front of the algorithm's lookup, 0 allocations.
func (t *Table) Locate(h uint64) int { return t.locate(h) }

// Owner returns the index of the node that owns key, or ErrNoNodes.
func (t *Table) Owner(key string) (int, error) {
	var i int
	if t.kind == kindKeyed {
		i = t.foreign.Keyed.LocateKey(key)
	} else {
		i = t.Locate(t.Hash(key))
	}
	if i < 0 {
		return -1, ErrNoNodes
	}
	return i, nil
}

// AppendNodes appends the first n nodes of key's preference order to dst: under
// every mapping, also one that maps keys and not hashes; under all others it is
// AppendReplicas of the key's hash.
func (t *Table) AppendNodes(dst []int, key []byte, n int) []int {
	switch {
	case t.kind != kindKeyed:
		return t.AppendReplicas(dst, t.HashBytes(key), n)
	case t.zoned && n > 1: // the whole order: this is for planning
		base := len(dst)
		dst = t.foreign.Keyed.AppendKey(dst, string(key), t.owners)
		t.zoning.arrange(dst[base:], min(n, len(t.zoning.levels)))
		return dst[:min(len(dst), base+n)]
	}
	return t.foreign.Keyed.AppendKey(dst, string(key), n)
}

// AppendReplicas appends the first n nodes of h's preference order to dst: all
// distinct, the owner first. The first Spec.Replicas of them stand in distinct
// zones if the spec is zone aware and there are enough zones (see ZonesRelaxed);
// then the list goes on with the remaining owners. It appends fewer than n only
// if fewer nodes own anything, and nothing for n < 1. No allocation if dst has
// room for n more (under the zone rule for 4*max(n, Spec.Replicas), and more only
// where so many nodes stand in too few zones), up to n = 16 for rendezvous.
func (t *Table) AppendReplicas(dst []int, h uint64, n int) []int {
	if t.kind == kindSteps {
		t = t.steps.side(h)
	}
	if t.zoned && n > 1 {
		return t.spread(dst, h, n)
	}
	return t.prefer(dst, h, n)
}

// ZonesRelaxed reports whether the spec asks for replicas in distinct zones but
// the owners stand in too few: replicas then share zones, never fewer copies.
func (t *Table) ZonesRelaxed() bool { return t.relaxed }

// Digest returns the mapping digest: of what Locate and AppendReplicas read.
// Addresses, weights that move nothing, health and nodes that own nothing do
// not enter it.
func (t *Table) Digest() topology.Digest { return t.digest }

// copies is the number of nodes that hold a key: Spec.Replicas while there are
// as many owners.
func (t *Table) copies() int { return min(t.replicas, t.owners) }
