package owner

import (
	"slices"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// view is what a node owns by one version, as far as it has acquired it. Views are
// immutable; each step makes another one. Keys are looked up by their text, since
// versions may differ in the hash of keys.
type view struct {
	table *placement.Table
	me    int   // index of this node, -1 = not in it
	base  *view // what was held when this version came; nil = nothing
	depth int   // number of bases

	acquired bool      // something of this version's gains may be served
	contests []contest // what may not
	fence    uint64    // of what is acquired
}

// contest is a node that has not settled on the view's version: what it owns by its own
// may be served by it still.
type contest struct {
	table *placement.Table
	node  int
}

// maxDepth bounds how many versions a node may go over to before it acquires anything
// of one: beyond, it lets go of everything until it does. From paceDepth on it takes its
// time to go over (Owner.pace), so that this takes minutes of versions that come faster
// than they reach the node.
const (
	maxDepth  = 32
	paceDepth = 8
)

// next returns the view of another version, of which nothing is acquired yet.
func (v *view) next(id string, table *placement.Table) *view {
	n := &view{table: table, me: table.Topology().Index(id)}
	if v != nil && v.depth+1 < maxDepth {
		n.base, n.depth = v, v.depth+1
	}
	return n
}

// whole reports whether everything of the version is acquired.
func (v *view) whole() bool { return v.acquired && len(v.contests) == 0 }

// with returns v after a reading. What v holds already stays held: a node that shows up
// with an old version later sees this node's record, and acquires nothing by it.
func (v *view) with(contests []contest, fence uint64) *view {
	n := *v
	n.acquired, n.contests, n.fence = true, contests, fence
	if v.acquired && !n.covers(v, nil) {
		n.base, n.depth = v, v.depth+1
	}
	switch {
	case n.spare():
		n.base, n.depth = nil, 0
	case n.depth >= maxDepth:
		return v // too many steps by halves: another reading may be enough
	}
	return &n
}

// spare reports whether v serves all that came before it would let it serve.
func (v *view) spare() bool {
	gone := []*placement.Table{v.table}
	for b := v.base; b != nil; b = b.base {
		gone = append(gone, b.table)
		if b.acquired && !v.covers(b, gone) {
			return false
		}
	}
	return true
}

// covers reports whether no key is held by b that is contested in v: each contest is one
// of b, too, or is by a version that the node went over to between b and v (gone), in
// which the key would have been the node's own.
func (v *view) covers(b *view, gone []*placement.Table) bool {
	for _, c := range v.contests {
		if !slices.Contains(b.contests, c) && (c.table == nil || !slices.Contains(gone, c.table)) {
			return false
		}
	}
	return true
}

// needs reports whether the view or one that it is based on goes by the table.
func (v *view) needs(t *placement.Table) bool {
	for ; v != nil; v = v.base {
		if v.table == t {
			return true
		}
	}
	return false
}

// holds returns the fence under which the node serves the key. ok is false if it does
// not.
func (v *view) holds(key string) (fence uint64, ok bool) {
	for ; v != nil && v.mine(key); v = v.base {
		if v.acquired && v.free(key) {
			return v.fence, true
		}
	}
	return 0, false
}

// free reports whether nobody else can serve the key.
func (v *view) free(key string) bool {
	for _, c := range v.contests {
		if c.table == nil || locate(c.table, key) == c.node {
			return false
		}
	}
	return true
}

// claim is Owner.Owns by this view.
func (v *view) claim(key string) (Claim, error) {
	if fence, ok := v.holds(key); ok {
		return Claim{Fence: fence, Version: v.ref().Version}, nil
	}
	if v.mine(key) {
		return Claim{}, ErrPending
	}
	e := &NotOwnerError{Version: v.ref().Version}
	if i := locate(v.table, key); i >= 0 {
		e.Node = v.table.Topology().Node(i)
	}
	return Claim{}, e
}

// mine reports whether the node owns the key by the version.
func (v *view) mine(key string) bool { return v.me >= 0 && locate(v.table, key) == v.me }

func locate(t *placement.Table, key string) int { return t.Locate(t.Hash(key)) }

func (v *view) ref() topology.Ref {
	if v == nil {
		return topology.Ref{}
	}
	return v.table.Topology().Ref()
}
