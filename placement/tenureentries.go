package placement

import (
	"math/bits"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/topology"
)

// entrySince tells of each entry of a table when it changed its server last. Where
// the entries ahead of a node's, in the order in which a lookup meets them, have been
// what they are, the node has served the key; each that was another may have held one
// node more.
type entrySince struct {
	owners, at *topology.Object
	node       []int              // by position in owners' list: index in the topology, or -1
	versions   []topology.Version // by position in at's list
	draw       func(h uint64, n int) int
}

// newEntrySince returns nil where the topology has no object that fits.
func newEntrySince(t *Table) *entrySince {
	kinds := map[kind]topology.Kind{kindMaglev: topology.KindMaglev, kindSlots: topology.KindSlots, kindJump: topology.KindJump}
	e := &entrySince{owners: t.topo.Object(kinds[t.kind]), at: t.topo.Object(topology.KindSince), draw: jump.Hash}
	if t.topo.Spec().JumpVariant == topology.JumpBack {
		e.draw = jump.BackHash
	}
	if e.owners == nil || e.at == nil || e.at.Rows() != sinceRows(e.owners) || e.at.Size() < e.owners.Size() || t.kind != kindJump && e.at.Size() != e.owners.Size() {
		return nil
	}
	for _, id := range e.owners.Nodes() {
		e.node = append(e.node, t.topo.Index(id))
	}
	for _, text := range e.at.Nodes() {
		v, err := topology.ParseVersion(text)
		if err != nil {
			v = t.topo.Version()
		}
		e.versions = append(e.versions, v)
	}
	return e
}

// owner is the owner of an entry, -1 if it has none.
func (e *entrySince) owner(row, at int) int {
	if o := e.owners.Entries(row)[at]; o != topology.NoOwner {
		return e.node[o]
	}
	return -1
}

// changed is when the entry changed its server; zero = not since the record begins.
func (e *entrySince) changed(row, at int) topology.Version {
	if v := e.at.Entries(row)[at]; v != topology.NoOwner {
		return e.versions[v]
	}
	return topology.Version{}
}

// look reports false where the entries do not tell.
func (e *entrySince) look(g *gap, t *Table, q *question) bool {
	switch t.kind {
	case kindJump:
		return e.draws(g, q.h, q.i)
	case kindMaglev:
		return e.walk(g, q.h, q.i)
	}
	return e.slot(g, q)
}

// slot looks at a slot's rows: whose it is serves, whatever the other rows have. Who
// was the first of them has a row of its own.
func (e *entrySince) slot(g *gap, q *question) bool {
	rows := e.owners.Rows()
	high, _ := bits.Mul64(q.h, uint64(e.owners.Size()))
	slot := int(high)
	if rows > 1 && q.copies < rows {
		if e.at.Rows() == rows || q.copies > 1 || e.owner(0, slot) != q.i {
			return false
		}
		g.own = e.changed(rows, slot)
		return true
	}
	for row := range rows {
		if e.owner(row, slot) == q.i {
			g.own = e.changed(row, slot)
			return true
		}
	}
	return false
}

// mostEntries is how far a walk goes at most.
const mostEntries = 1024

// walk is maglev's order: the entries from the key's on.
func (e *entrySince) walk(g *gap, h uint64, i int) bool {
	first, _ := bits.Mul64(h, uint64(e.owners.Size()))
	at := int(first)
	for range min(mostEntries, e.owners.Size()) {
		if e.owner(0, at) == i {
			g.own = e.changed(0, at)
			return true
		}
		g.add(e.changed(0, at))
		if at++; at == e.owners.Size() {
			at = 0
		}
	}
	return false
}

// draws is jump's order: the buckets that the key draws, as they would be drawn if
// the array had kept its largest size; from a bucket that is no more the draw falls
// back to the one that it came from.
func (e *entrySince) draws(g *gap, h uint64, i int) bool {
	for range jump.Draws {
		b, since := e.draw(h, e.at.Size()), topology.Version{}
		for ; b >= e.owners.Size(); b = e.draw(h, b) {
			since = later(since, e.changed(0, b)) // while that was there this draw met it
		}
		since = later(since, e.changed(0, b))
		if e.owner(0, b) == i {
			g.own = since
			return true
		}
		g.add(since)
		h = splitmix.Mix(h + splitmix.Golden) // jump's next draw
	}
	return false
}
