package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

type clusterStore struct {
	s    *Store
	name string
}

// locked calls fn with the cluster under the lock.
func (c *clusterStore) locked(op string, fn func(*cluster) error) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	cl := c.s.clusters[c.name]
	if cl == nil {
		return fmt.Errorf("memstore: %s: %w: %q", op, membership.ErrNoCluster, c.name)
	}
	if err := fn(cl); err != nil {
		return fmt.Errorf("memstore: %s: %w", op, err)
	}
	return nil
}

func (c *clusterStore) Load(ctx context.Context) (s membership.State, err error) {
	if err := ctx.Err(); err != nil {
		return s, fmt.Errorf("memstore: load: %w", err)
	}
	err = c.locked("load", func(cl *cluster) error {
		s = cl.state // its slices are never written again
		s.Overlay = cl.overlay
		return nil
	})
	return s, err
}

// Declare applies the edit to a snapshot and writes it if nothing came between.
func (c *clusterStore) Declare(ctx context.Context, e membership.Edit) (membership.State, error) {
	for {
		before, err := c.Load(ctx)
		if err != nil {
			return before, err
		}
		next, err := before.Apply(e)
		if err != nil {
			return membership.State{}, fmt.Errorf("memstore: declare: %w", err)
		}
		written := false
		err = c.locked("declare", func(cl *cluster) error {
			if e.HeedFreeze && cl.state.Frozen != nil {
				return cl.state.Frozen.Err()
			}
			if written = cl.state.Generation == before.Generation; written {
				next.Head, next.Applied = cl.state.Head, cl.state.Applied
				next.ID, next.Epoch, next.History, next.Standing = cl.state.ID, cl.state.Epoch, cl.state.History, cl.state.Standing
				cl.state, next.Overlay = next, cl.overlay
				c.s.notify()
			}
			return nil
		})
		if err != nil || written {
			return next, err
		}
	}
}

func (c *clusterStore) Publish(ctx context.Context, l membership.Leadership, p membership.Publication) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memstore: publish: %w", err)
	}
	return c.locked("publish", func(cl *cluster) error {
		if lead, ok := l.(*leadership); !ok || lead.s != c.s || c.s.leaders[c.name] != lead {
			return membership.ErrNotLeader
		}
		if err := cl.state.Position().Check(p); err != nil {
			return err
		}
		if p.Next != nil {
			cl.publish(p)
		}
		cl.state.Applied = p.Generation
		cl.state.Edits = slices.DeleteFunc(slices.Clone(cl.state.Edits), func(n membership.Note) bool { return n.Generation <= p.Generation })
		c.s.notify()
		return nil
	})
}

func (cl *cluster) publish(p membership.Publication) {
	t := p.Next
	moved := cl.state.Head == nil || cl.state.Head.Mapping() != t.Mapping()
	cl.versions = append(cl.versions, version{topology: t, movement: p.Movement, info: membership.VersionInfo{
		Version: t.Version(), History: t.Ref().History, Digest: t.Digest(), Cause: t.Cause(), Nodes: t.Len(), Moved: moved, Ratio: p.Movement.Ratio}})
	cl.versions = keep(cl.versions)
	cl.chain[t.Version()] = t.Ref()
	if seq := t.Version().Seq; seq > membership.KeptDigests {
		delete(cl.chain, topology.Version{Epoch: t.Version().Epoch, Seq: seq - membership.KeptDigests})
	}
	cl.state.Head = t
}

// keep drops what is neither among the last KeptVersions nor among the last
// KeptVersions that changed ownership.
func keep(versions []version) []version {
	var kept []version
	moved := 0
	for i, v := range slices.Backward(versions) {
		if len(versions)-i <= membership.KeptVersions || v.info.Moved && moved < membership.KeptVersions {
			kept = append(kept, v)
		}
		if v.info.Moved {
			moved++
		}
	}
	slices.Reverse(kept)
	return kept
}

func (c *clusterStore) Watch(ctx context.Context, fn func(membership.State) error) error {
	type mark struct {
		head       topology.Ref
		generation uint64
		applied    uint64
		id         topology.ClusterID
		standing   string
	}
	var last mark
	var overlay *membership.Overlay
	return c.s.watch(ctx, func() (func() error, error) {
		cl := c.s.clusters[c.name]
		if cl == nil {
			return nil, fmt.Errorf("memstore: watch: %w: %q", membership.ErrNoCluster, c.name)
		}
		s := cl.state
		now := mark{s.Position().Head, s.Generation, s.Applied, s.ID, fmt.Sprint(s.Epoch, s.Shown, s.Frozen, s.BumpedAt)}
		if s.Overlay = cl.overlay; now == last && s.Overlay.Equal(overlay) {
			return nil, nil
		}
		last, overlay = now, s.Overlay
		return func() error { return fn(s) }, nil
	})
}

func (c *clusterStore) find(op string, v topology.Version, fn func(version)) error {
	return c.locked(op, func(cl *cluster) error {
		for _, kept := range cl.versions {
			if kept.info.Version == v {
				fn(kept)
				return nil
			}
		}
		return fmt.Errorf("%w: %s", membership.ErrNoVersion, v)
	})
}

func (c *clusterStore) Version(_ context.Context, v topology.Version) (t *topology.Topology, err error) {
	err = c.find("version", v, func(k version) { t = k.topology })
	return t, err
}

func (c *clusterStore) Movement(_ context.Context, v topology.Version) (r placement.Report, err error) {
	err = c.find("movement", v, func(k version) { r = k.movement })
	return r, err
}

func (c *clusterStore) Versions(context.Context) (infos []membership.VersionInfo, err error) {
	err = c.locked("versions", func(cl *cluster) error {
		for _, v := range cl.versions {
			infos = append(infos, v.info)
		}
		return nil
	})
	return infos, err
}

func (c *clusterStore) Descends(_ context.Context, ref topology.Ref) (ok bool, err error) {
	err = c.locked("descends", func(cl *cluster) error {
		ok = cl.state.Head != nil && cl.chain[ref.Version] == ref && !ref.IsZero() && ref.Version.Epoch == cl.state.Head.Version().Epoch
		return nil
	})
	return ok, err
}
