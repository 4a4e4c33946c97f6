package placement

import (
	"errors"

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
// topology's list, which is sorted by ID. Make one with New or Update.
type Table struct {
	topo *topology.Topology
}

// New builds the mapping of t, which must be Complete (topology.ErrMissingObject
// otherwise). If t carries a mapping digest and this build computes another,
// ErrMapping names both. ErrTable says that a table does not fit.
func New(t *topology.Topology) (*Table, error) { return nil, errors.New("placement: not built yet") }

// Topology returns what the table was built from.
func (t *Table) Topology() *topology.Topology { return t.topo }

// Len returns the number of nodes in the topology, owners or not.
func (t *Table) Len() int { return t.topo.Len() }

// Hash returns the hash of key under the spec's key hash and hash tag. 0 allocations.
func (t *Table) Hash(key string) uint64 { return 0 }

// HashBytes is Hash of a byte slice.
func (t *Table) HashBytes(key []byte) uint64 { return 0 }

// Locate returns the owner of hash h, or -1 if no node owns anything. It is the
// hot path: one switch in front of the algorithm's lookup, 0 allocations.
func (t *Table) Locate(h uint64) int { return -1 }

// Owner returns the index of the node that owns key, or ErrNoNodes.
func (t *Table) Owner(key string) (int, error) { return -1, ErrNoNodes }

// AppendReplicas appends the first n nodes of h's preference order to dst: all
// distinct, the owner first. The first Spec.Replicas of them stand in distinct
// zones if the spec is zone aware and there are enough zones (see ZonesRelaxed);
// then the list goes on with the remaining owners. It appends fewer than n only
// if fewer nodes own anything. No allocation if dst has room for 4*n+16 more.
func (t *Table) AppendReplicas(dst []int, h uint64, n int) []int { return dst }

// ZonesRelaxed reports whether the spec asks for replicas in distinct zones but
// the owners stand in too few: replicas then share zones, never fewer copies.
func (t *Table) ZonesRelaxed() bool { return false }

// Digest returns the mapping digest: of what Locate and AppendReplicas read.
// Addresses, weights that move nothing, health and nodes that own nothing do
// not enter it.
func (t *Table) Digest() topology.Digest { return topology.Digest{} }

// Shares returns each node's share of the key space as its owner, 0..1, parallel
// to the topology's nodes: exact for ring, maglev, slots and a rendezvous table,
// and for any algorithm under crc16 (all 65,536 hashes are looked at); under jump
// and exact rendezvous it is the law that the hash follows.
func (t *Table) Shares() []float64 { return nil }

// Peak returns the largest ratio of a node's share to the share that its weight
// asks for: 1 is perfect balance, 0 means that no node owns anything.
func (t *Table) Peak() float64 { return 0 }
