package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// Show presents a version; see membership.Epochs.
func (c *clusterStore) Show(ctx context.Context, s membership.Shown) (evidence bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("memstore: show: %w", err)
	}
	err = c.locked("show", func(cl *cluster) error {
		if evidence = cl.state.Position().WentBack(s.Ref, cl.inChain(s.Ref)); !evidence {
			return nil
		}
		changed, err := cl.state.Admit(cl.state.Epoch, s)
		if changed {
			c.s.notify()
		}
		return err
	})
	return evidence && err == nil, err
}

// inChain reports whether ref is in the chain of the head; its history may be 0.
func (cl *cluster) inChain(ref topology.Ref) bool {
	link, ok := cl.chain[ref.Version]
	return ok && link.Digest == ref.Digest && (ref.History == 0 || ref.History == link.History)
}

// Bump begins an epoch; see membership.Epochs.
func (c *clusterStore) Bump(ctx context.Context, l membership.Leadership, b membership.Bump) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memstore: bump: %w", err)
	}
	return c.locked("bump", func(cl *cluster) error {
		if l != nil && !c.leads(l) {
			return membership.ErrNotLeader
		}
		if err := cl.state.Position().CheckBump(b); err != nil {
			return err
		}
		cl.state.Epoch, cl.state.History = b.Epoch, b.History
		cl.state.Shown, cl.state.BumpedAt = nil, b.At
		cl.chain = map[topology.Version]topology.Ref{}
		if b.Next != nil {
			cl.publish(membership.Publication{Next: b.Next, Movement: b.Movement})
		}
		c.s.notify()
		return nil
	})
}

func (c *clusterStore) leads(l membership.Leadership) bool {
	lead, ok := l.(*leadership)
	return ok && lead.s == c.s && c.s.leaders[c.name] == lead
}

// Freeze holds back publication or lets it go on; see membership.Epochs.
func (c *clusterStore) Freeze(ctx context.Context, f *membership.Freeze) (s membership.State, err error) {
	if err := ctx.Err(); err != nil {
		return s, fmt.Errorf("memstore: freeze: %w", err)
	}
	if err := f.Check(); err != nil {
		return s, fmt.Errorf("memstore: freeze: %w", err)
	}
	err = c.locked("freeze", func(cl *cluster) error {
		if (f == nil) != (cl.state.Frozen == nil) {
			cl.state.Frozen = f
			c.s.notify()
		}
		s = cl.state
		return nil
	})
	return s, err
}

// Delete removes a cluster; see membership.Directory.
func (s *Store) Delete(_ context.Context, name string, id topology.ClusterID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.clusters[name]
	switch {
	case cl == nil:
		return fmt.Errorf("memstore: delete: %w: %q", membership.ErrNoCluster, name)
	case cl.state.ID != id:
		return fmt.Errorf("memstore: delete: %w: cluster %q has id %s, not %s", membership.ErrConflict, name, cl.state.ID, id)
	}
	for _, p := range slices.Collect(maps.Values(cl.live)) {
		p.remove()
	}
	delete(s.clusters, name)
	ids := append([]topology.ClusterID{id}, s.deleted[name]...)
	s.deleted[name] = ids[:min(len(ids), membership.KeptDeletions)]
	if l := s.leaders[name]; l != nil {
		l.end()
	}
	s.notify()
	return nil
}

// Backup returns a function that makes the cluster what it is now, as restoring
// a backup of the store under running processes does. Presences and leaderships
// stay. It may be called more than once.
func (s *Store) Backup(name string) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.clusters[name]
	if cl == nil {
		return func() {}
	}
	state, versions, chain := cl.state, slices.Clone(cl.versions), maps.Clone(cl.chain)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		cl.state, cl.versions, cl.chain = state, slices.Clone(versions), maps.Clone(chain)
		s.clusters[name] = cl
		s.notify()
	}
}

// Deleted returns the ids of deleted clusters of this name.
func (c *clusterStore) Deleted(context.Context) ([]topology.ClusterID, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return slices.Clone(c.s.deleted[c.name]), nil
}
