package sdk

import (
	"sync/atomic"

	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// snapshot is everything a lookup reads: one immutable value per version. A
// client always has one; before the first topology and after Close it only
// holds an error.
type snapshot struct {
	// special is false where a lookup is hash and locate and nothing else:
	// the one branch that everything out of the ordinary costs the hot path.
	special bool
	table   *placement.Table // nil if nothing is held
	records []record         // by node index, as the table counts them
	// detours are the records of nodes that stand in for a node that is
	// down; nil if no node is down.
	detours []record
	err     error // what lookups return; nil if there are owners
	// plan is what Acquire goes by; nil if nothing is held. It is made with
	// the snapshot and anew when health or a slow start changes a weight.
	plan atomic.Pointer[plan]
}

// record is one node of one snapshot, as a Route points at it. The node's
// fields that requests need stand beside each other: 64 bytes, a cache line.
type record struct {
	snap   *snapshot
	id     string
	addr   string
	load   *bounded.Node // of the node's incarnation; for tickets
	index  int32         // of the node in the topology
	down   bool          // requests go to the next in order
	detour bool          // stands in for the owner
}

func newSnapshot(table *placement.Table) *snapshot {
	s := &snapshot{table: table}
	s.records = s.makeRecords(false)
	for i := range s.records {
		if s.records[i].down {
			s.detours = s.makeRecords(true)
			break
		}
	}
	if table.Owners() == 0 {
		s.err = ErrNoNodes
	}
	s.special = s.err != nil || s.detours != nil
	return s
}

func (s *snapshot) makeRecords(detour bool) []record {
	nodes := s.table.Topology().Nodes()
	records := make([]record, len(nodes))
	for i, n := range nodes {
		records[i] = record{snap: s, id: n.ID, addr: n.Addr, index: int32(i),
			down: n.State == topology.StateDown, detour: detour}
	}
	return records
}

func errorSnapshot(err error) *snapshot { return &snapshot{special: true, err: err} }

// topology returns what is held, or nil.
func (s *snapshot) topology() *topology.Topology {
	if s.table == nil {
		return nil
	}
	return s.table.Topology()
}

// ref returns what is held; zero is nothing.
func (s *snapshot) ref() topology.Ref {
	if t := s.topology(); t != nil {
		return t.Ref()
	}
	return topology.Ref{}
}

// locateUp is Locate where some node is down: the owner, or the first node of
// the key's order that is up, or the owner if none is. It looks at 4 nodes,
// then at 4 times as many, and so on.
func (s *snapshot) locateUp(h uint64) *record {
	owner := &s.records[s.table.Locate(h)]
	if !owner.down {
		return owner
	}
	var room [32]int
	order, seen := s.table.AppendReplicas(room[:0], h, 4), 0
	for {
		for _, i := range order[seen:] {
			if !s.records[i].down {
				return &s.detours[i]
			}
		}
		seen = len(order)
		if order = s.table.AppendReplicas(order[:0], h, 4*seen); len(order) == seen {
			return owner
		}
	}
}

// home is the node that a key prefers.
func (s *snapshot) home(h uint64) int { return s.table.Locate(h) }

// appendOrder appends the first n nodes of the key's order of preference.
func (s *snapshot) appendOrder(dst []int, h uint64, n int) []int {
	return s.table.AppendReplicas(dst, h, n)
}
