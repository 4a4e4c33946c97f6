package owner

import (
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// view is what a node owns by one version, as far as it has acquired it. Views are
// immutable; each step makes another one.
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
// of one: beyond, it holds nothing until it does.
const maxDepth = 8

// next returns the view of another version, of which nothing is acquired yet.
func (v *view) next(id string, table *placement.Table) *view {
	n := &view{table: table, me: table.Topology().Index(id)}
	base := v
	if v != nil && v.whole() {
		base = v.alone()
	}
	if base != nil && base.depth+1 < maxDepth {
		n.base, n.depth = base, base.depth+1
	}
	return n
}

// whole reports whether everything of the version is acquired.
func (v *view) whole() bool { return v.acquired && len(v.contests) == 0 }

// alone is v without what came before, which it does not need when it is whole.
func (v *view) alone() *view {
	a := *v
	a.base, a.depth = nil, 0
	return &a
}

// with returns v after a reading. What v holds already stays held: a node that shows up
// with an old version later sees this node's record, and acquires nothing by it.
func (v *view) with(contests []contest, fence uint64) *view {
	n := *v
	n.acquired, n.contests, n.fence = true, contests, fence
	switch {
	case n.whole():
		n.base, n.depth = nil, 0
	case v.acquired && v.depth+1 >= maxDepth:
		return v // too many steps by halves: the next is whole
	case v.acquired:
		n.base, n.depth = v, v.depth+1
	}
	return &n
}

// holds returns the fence under which the node serves hash h. ok is false if it does
// not.
func (v *view) holds(h uint64) (fence uint64, ok bool) {
	if v == nil || v.me < 0 || v.table.Locate(h) != v.me {
		return 0, false
	}
	if v.acquired && v.free(h) {
		return v.fence, true
	}
	return v.base.holds(h)
}

// free reports whether nobody else can serve h.
func (v *view) free(h uint64) bool {
	for _, c := range v.contests {
		if c.table == nil || c.table.Locate(h) == c.node {
			return false
		}
	}
	return true
}

// claim is Owner.Owns by this view.
func (v *view) claim(key string) (Claim, error) {
	h := v.table.Hash(key)
	if fence, ok := v.holds(h); ok {
		return Claim{Fence: fence, Version: v.ref().Version}, nil
	}
	if v.mine(h) {
		return Claim{}, ErrPending
	}
	e := &NotOwnerError{Version: v.ref().Version}
	if i := v.table.Locate(h); i >= 0 {
		e.Node = v.table.Topology().Node(i)
	}
	return Claim{}, e
}

// mine reports whether the node owns h by the version.
func (v *view) mine(h uint64) bool { return v.me >= 0 && v.table.Locate(h) == v.me }

func (v *view) ref() topology.Ref {
	if v == nil {
		return topology.Ref{}
	}
	return v.table.Topology().Ref()
}
