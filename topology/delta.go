package topology

import (
	"fmt"
	"slices"
	"strings"
)

// Delta leads from one topology, its base, to a later one, its target, of the
// same cluster: the nodes that change, and the entries of tables that change. It
// names the content digests of both, so that applying it gives exactly the
// target or an error. Deltas are immutable. Make one with Diff or DecodeDelta.
type Delta struct {
	d       delta
	encoded []byte
}

// delta is what a Delta says. Zero values mean "as in the base" unless stated.
type delta struct {
	base, target Digest
	history      History
	epoch        uint64
	seq          uint64  // of the target
	parent       *Digest // nil = the base
	spec         *Spec
	removed      []int  // positions in the base's nodes, ascending
	put          []Node // nodes that are new or other than in the base, by id
	edited       bool   // tables is what the target refers to
	tables       []tableEdit
	mapping      *Digest
	cause        Cause       // of the target
	transition   *Transition // of the target
	tenure       *Tenure     // of the target
}

// Diff returns the delta from base to target. The error says that they are of
// different clusters. Tables that are not attached, or whose edits would be
// longer than the table, are named for the receiver to fetch.
// O(nodes + table entries).
func Diff(base, target *Topology) (*Delta, error) {
	if base.d.ID != target.d.ID || base.d.Cluster != target.d.Cluster {
		return nil, fmt.Errorf("topology: no delta from version %s of cluster %s (%s) to %s of %s (%s): they are different clusters",
			base.d.Version, base.d.Cluster, base.d.ID, target.d.Version, target.d.Cluster, target.d.ID)
	}
	d := delta{base: base.digest, target: target.digest, seq: target.d.Version.Seq, cause: target.d.Cause, transition: target.d.Transition, tenure: target.d.Tenure}
	if target.d.History != base.d.History {
		d.history = target.d.History
	}
	if target.d.Version.Epoch != base.d.Version.Epoch {
		d.epoch = target.d.Version.Epoch
	}
	if target.d.Parent != base.digest {
		d.parent = &target.d.Parent
	}
	if target.d.Spec != base.d.Spec {
		d.spec = &target.d.Spec
	}
	if target.d.Mapping != base.d.Mapping {
		d.mapping = &target.d.Mapping
	}
	d.removed, d.put = diffNodes(base.d.Nodes, target.d.Nodes)
	if d.edited = !slices.Equal(base.refs, target.refs); d.edited {
		for _, ref := range target.refs {
			d.tables = append(d.tables, diffTable(base, target, ref))
		}
	}
	return &Delta{d, d.encode()}, nil
}

// diffNodes compares two lists in id order.
func diffNodes(base, target []Node) (removed []int, put []Node) {
	i := 0
	for _, n := range target {
		for ; i < len(base) && base[i].ID < n.ID; i++ {
			removed = append(removed, i)
		}
		if i < len(base) && base[i].ID == n.ID {
			if base[i] != n {
				put = append(put, n)
			}
			i++
			continue
		}
		put = append(put, n)
	}
	for ; i < len(base); i++ {
		removed = append(removed, i)
	}
	return removed, put
}

// Base returns the content digest of the topology that the delta applies to.
func (d *Delta) Base() Digest { return d.d.base }

// Target returns the content digest of the topology that it leads to.
func (d *Delta) Target() Digest { return d.d.target }

// Encode returns the canonical encoding. Read only.
func (d *Delta) Encode() []byte { return d.encoded }

// Apply returns the target, without its tables, and those of its tables that
// base and the delta determine; the others are to be fetched by digest and
// attached with them (Topology.Attach). base is not changed, and should be
// complete. Errors: ErrDeltaBase; ErrCorrupt if what comes out is not the target;
// ErrUnknown. O(nodes + entries of edited tables).
func (d *Delta) Apply(base *Topology) (*Topology, []*Object, error) {
	if base == nil || base.digest != d.d.base {
		return nil, nil, fmt.Errorf("%w: it applies to %s", ErrDeltaBase, d.d.base)
	}
	draft := d.d.draft(base)
	var err error
	if draft.Nodes, err = d.d.nodes(base.d.Nodes); err != nil {
		return nil, nil, err
	}
	refs, objects := base.refs, base.d.Objects
	if d.d.edited {
		refs, objects = d.d.applyTables(base)
	}
	if x := d.d.transition; x != nil {
		objects = x.amongBefore(objects, base)
	}
	t, err := build(draft, refs)
	if err != nil {
		return nil, nil, corrupt(err)
	}
	if t.digest != d.d.target {
		return nil, nil, fmt.Errorf("%w: delta from %s leads to digest %s in place of %s", ErrCorrupt, base.Ref(), t.digest, d.d.target)
	}
	return t, objects, nil
}

// draft is the base with everything edited but nodes and tables.
func (d *delta) draft(base *Topology) Draft {
	t := base.d
	t.Objects = nil
	t.Version.Seq, t.Cause, t.Parent = d.seq, d.cause, base.digest
	t.Tenure = d.tenure
	if t.Transition = d.transition.clone(); t.Transition != nil {
		t.Transition.Tables = nil
	}
	if d.history != 0 {
		t.History = d.history
	}
	if d.epoch != 0 {
		t.Version.Epoch = d.epoch
	}
	if d.parent != nil {
		t.Parent = *d.parent
	}
	if d.spec != nil {
		t.Spec = *d.spec
	}
	if d.mapping != nil {
		t.Mapping = *d.mapping
	}
	return t
}

func (d *delta) nodes(base []Node) ([]Node, error) {
	if n := len(d.removed); n > 0 && d.removed[n-1] >= len(base) {
		return nil, fmt.Errorf("%w: delta removes node %d of %d", ErrCorrupt, d.removed[n-1], len(base))
	}
	nodes := make([]Node, 0, len(base)-len(d.removed)+len(d.put))
	removed, put := d.removed, d.put
	for i, n := range base {
		for len(put) > 0 && put[0].ID < n.ID {
			nodes, put = append(nodes, put[0]), put[1:]
		}
		switch {
		case len(removed) > 0 && removed[0] == i:
			removed = removed[1:]
		case len(put) > 0 && put[0].ID == n.ID:
			nodes, put = append(nodes, put[0]), put[1:]
		default:
			nodes = append(nodes, n)
		}
	}
	return append(nodes, put...), nil
}

func compareIDs(a, b Node) int { return strings.Compare(a.ID, b.ID) }
