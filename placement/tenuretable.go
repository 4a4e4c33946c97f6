package placement

import (
	"maps"
	"slices"

	"github.com/shardd/shardd/topology"
)

// sincer makes the object that tells since when each entry of a table has had its
// server: a node that is up or down, or nobody.
type sincer struct {
	o, before *topology.Object
	was       []topology.Version // of the table before; nil = nothing is known of it
	wasSize   int
	v         topology.Version
	rows      int
	at        []uint16 // by position in o's list of nodes: that in before's
	flipped   []bool   // the same: it went down or came up
	moved     []bool   // the same: it is at another address, another server, since now
	now       topology.Version
}

func newSincer(prev *Table, d *topology.Draft, o *topology.Object, v topology.Version) *sincer {
	s := &sincer{o: o, v: v, rows: sinceRows(o), now: d.Version}
	if !continues(prev, d) {
		return s
	}
	before, since := prev.topo.Object(o.Kind()), prev.topo.Object(topology.KindSince)
	if before == nil || since == nil || since.Rows() != s.rows || since.Size() < before.Size() ||
		o.Kind() != topology.KindJump && (before.Size() != o.Size() || since.Size() != o.Size() || before.Rows() != o.Rows()) {
		return s
	}
	s.before, s.wasSize = before, since.Size()
	s.was, _ = since.Since()
	find := indexIn(before.Nodes())
	down := downNodes(d.Nodes)
	wasDown := downNodes(prev.topo.Nodes())
	moved := movedNodes(prev.topo, d.Nodes)
	for _, id := range o.Nodes() {
		s.at = append(s.at, find(id))
		s.flipped = append(s.flipped, down[id] != wasDown[id])
		s.moved = append(s.moved, moved[id])
	}
	return s
}

// sinceRows is the number of rows beside a table: one of each of the table's; for
// slots with copies one more, of who is the first of them, where there is room for it.
// Of Jump's two the second tells of former owners.
func sinceRows(o *topology.Object) int {
	switch rows := o.Rows(); {
	case o.Kind() == topology.KindJump:
		return 1
	case rows > 1 && rows < topology.MaxRows:
		return rows + 1
	default:
		return rows
	}
}

// movedNodes are those of another address than in prev.
func movedNodes(prev *topology.Topology, nodes []topology.Node) map[string]bool {
	moved := map[string]bool{}
	for _, n := range nodes {
		if i := prev.Index(n.ID); i >= 0 && prev.Node(i).Addr != n.Addr {
			moved[n.ID] = true
		}
	}
	return moved
}

func downNodes(nodes []topology.Node) map[string]bool {
	down := map[string]bool{}
	for _, n := range nodes {
		if n.State == topology.StateDown {
			down[n.ID] = true
		}
	}
	return down
}

func (s *sincer) object() (*topology.Object, error) {
	size := max(s.o.Size(), s.wasSize) // of Jump's buckets some may be gone
	list := make([]topology.Version, s.rows*size)
	for row := range s.rows {
		for e := range size {
			list[row*size+e] = s.entry(row, e)
		}
	}
	merge := mergeBelow(list)
	for i := range list {
		if !list[i].IsZero() {
			list[i] = later(list[i], merge)
		}
	}
	return topology.NewSince(s.rows, list)
}

func (s *sincer) entry(row, e int) topology.Version {
	owner, first := uint16(topology.NoOwner), row == s.o.Rows()
	if first {
		owner = s.o.Entries(0)[e]
	} else if e < s.o.Size() {
		owner = s.o.Entries(row)[e]
	}
	switch {
	case s.was == nil && owner == topology.NoOwner:
		return topology.Version{}
	case s.was != nil && owner != topology.NoOwner && s.moved[owner]:
		return s.now
	case s.was == nil || owner != topology.NoOwner && s.flipped[owner]:
		return s.v
	case (e < s.o.Size()) != (e < s.before.Size()): // a hole draws again, where nothing is it does not
		return s.v
	case owner == topology.NoOwner:
		if e < s.before.Size() && s.before.Entries(row % s.o.Rows())[e] != topology.NoOwner {
			return s.v
		}
		return s.was[row*s.wasSize+e]
	case first && s.held(owner, 0, e):
		return s.was[row*s.wasSize+e]
	case first:
		return s.v
	}
	for r := range min(s.rows, s.before.Rows()) { // who changes rows has the slot all the time
		if s.held(owner, r, e) {
			return s.was[r*s.wasSize+e]
		}
	}
	return s.v
}

// held reports whether the owner, as o counts, had the entry in the table before.
func (s *sincer) held(owner uint16, row, e int) bool {
	x := s.before.Entries(row)[e]
	return x != topology.NoOwner && x == s.at[owner]
}

// maxSince is the largest number of versions that a table of versions names, so
// that an entry takes a byte at most.
const maxSince = 255

// mergeBelow returns the version that stands for the older half of the versions in
// list where they are over the limit, else zero.
func mergeBelow(list []topology.Version) topology.Version {
	seen := map[topology.Version]bool{}
	for _, v := range list {
		seen[v] = !v.IsZero()
	}
	if len(seen) <= maxSince {
		return topology.Version{}
	}
	all := slices.SortedFunc(maps.Keys(seen), topology.Version.Compare)
	return all[len(all)/2]
}
