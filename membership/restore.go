package membership

import (
	"context"
	"errors"
	"slices"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// A rollback declares the spec and the nodes of a version again. Where tables are
// the result of the changes so far (slots, maglev, jump) a refill from the newest
// version gives other tables than that version had, though as even ones. So the
// edit names the version, and while that is kept and the owners are those of then, its
// tables are published again: the mapping is the old one, and what moves back is what
// moved forth.

// CauseRestored is the kind of cause of a version that differs from the one before in
// its tables only.
const CauseRestored = "tables restored"

// restored returns the version whose tables answer the declared state, nil = none.
// An error is worth another try.
func (c *Controller) restored(ctx context.Context, s *State) (*topology.Topology, error) {
	notes := s.pending()
	reader, ok := c.c.Store.(Reader)
	if len(notes) == 0 || !ok || s.Head == nil {
		return nil, nil
	}
	var last Note // later edits, of admission say, may have left the owners as they are
	for _, n := range notes {
		if !n.Restore.IsZero() {
			last = n
		}
	}
	if last.Restore.IsZero() {
		return nil, nil
	}
	old, err := reader.Version(ctx, last.Restore)
	if errors.Is(err, ErrNoVersion) || errors.Is(err, ErrCorrupt) {
		c.log.Warn("the version to go back to is not kept any more; its nodes get tables that come from the newest ones", "version", last.Restore, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(old.Refs()) == 0 || old.Transition() != nil || !sameOwners(old, s.Declared) {
		return nil, nil
	}
	return old, nil
}

// sameOwners reports whether the tables of t answer d: nodes that own keys have the
// same weight, and zone where that counts; what others are, and addresses and which
// node is down, is in no table. Foreign mappings hash more than ids.
func sameOwners(t *topology.Topology, d topology.Declared) bool {
	if t.Spec().Algorithm == topology.Compat {
		return t.Spec() == d.Spec && slices.Equal(t.Nodes(), d.Nodes)
	}
	_, _, err := placement.Heading(t, d.Spec, d.Nodes)
	return err == nil
}

// buildFrom makes the next version with the tables of old.
func buildFrom(prev *placement.Table, d topology.Draft, old *topology.Topology) (*placement.Table, error) {
	head := prev.Topology()
	d.Objects, d.Mapping, d.Parent = old.Objects(), old.Mapping(), head.Digest()
	d.Cause.Kind = placement.CauseKind(head, d.Spec, d.Nodes)
	if d.Cause.Kind == placement.CauseNone {
		d.Cause.Kind = CauseRestored
	}
	if err := placement.Record(prev, &d); err != nil {
		return nil, err
	}
	t, err := topology.New(d)
	if err != nil {
		return nil, err
	}
	return placement.New(t)
}
