package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// cluster is the store of one cluster. What was read last stays, by digest.
type cluster struct {
	s    *Store
	name string
	keys etcdkv.Keys
	err  error // the name is not legal

	mu        sync.Mutex
	head      *topology.Topology
	declared  topology.Declared
	digest    topology.Digest // of declared
	published int
}

// retries bounds how often a reading is made anew because what it referred to
// was replaced meanwhile.
const retries = 5

func (c *cluster) records() []etcdkv.Range {
	return []etcdkv.Range{{Key: c.keys.Meta()}, {Key: c.keys.Declared()}, {Key: c.keys.Head()}}
}

// shown is what a reading of the state takes: the records, and the overlay,
// which no write compares.
func (c *cluster) shown() []etcdkv.Range {
	return append(c.records(), etcdkv.Range{Key: c.keys.Overlay()})
}

// fence returns what a reading of the records compares: meta and one of them.
func (c *cluster) fence(r etcdkv.Reading, i int) []etcdkv.Compare {
	return []etcdkv.Compare{r.First(0).As(c.keys.Meta()), r.First(i).As(c.records()[i].Key)}
}

// Load returns one linearizable reading; see membership.Store.
func (c *cluster) Load(ctx context.Context) (membership.State, error) {
	s, _, err := c.load(ctx)
	return s, translate("load", err)
}

func (c *cluster) load(ctx context.Context) (membership.State, etcdkv.Reading, error) {
	if c.err != nil {
		return membership.State{}, etcdkv.Reading{}, c.noCluster()
	}
	for n := 1; ; n++ {
		r, err := c.s.kv.Get(ctx, c.shown()...)
		if err != nil {
			return membership.State{}, r, err
		}
		s, err := c.resolve(ctx, r, n == retries)
		if err == nil || !etcdkv.Stale(err) {
			return s, r, err
		}
		if n == retries { // it is not being replaced, it is gone
			return s, r, fmt.Errorf("%w: head: %w", etcdkv.ErrCorrupt, err)
		}
	}
}

func (c *cluster) noCluster() error { return fmt.Errorf("%w: %q", membership.ErrNoCluster, c.name) }

// resolve makes a state of the records and what they refer to. A declared state
// that cannot be used is noted in the state; a meta or head that cannot be used
// is an error. final says that what is missing is gone, not being replaced.
func (c *cluster) resolve(ctx context.Context, r etcdkv.Reading, final bool) (membership.State, error) {
	if r.First(0).ModRevision == 0 {
		return membership.State{}, c.noCluster()
	}
	meta, err := etcdkv.DecodeMeta(r.First(0).Value)
	if err != nil {
		return membership.State{}, fmt.Errorf("%s: %w", c.keys.Meta(), err)
	}
	s := membership.State{ID: meta.ID, Epoch: meta.Epoch, History: meta.History}
	if s.Standing, err = standing(meta); err != nil {
		return membership.State{}, fmt.Errorf("%s: %w", c.keys.Meta(), err)
	}
	if r.First(2).ModRevision > 0 {
		head, err := etcdkv.DecodeHead(r.First(2).Value)
		if err != nil {
			return membership.State{}, fmt.Errorf("%s: %w", c.keys.Head(), err)
		}
		if s.Head, err = c.resolveHead(ctx, meta, head); err != nil {
			return membership.State{}, err
		}
		s.Applied = head.Generation
	}
	s.Overlay = c.overlay(r.First(3))
	s.Generation = s.Applied // unless the record says more
	err = c.resolveDeclared(ctx, r.First(1), &s)
	if errors.Is(err, etcdkv.ErrCorrupt) || final && etcdkv.Stale(err) {
		s.Declared, s.Invalid, err = topology.Declared{Cluster: c.name}, fmt.Errorf("%s: %w", c.keys.Declared(), err), nil
	}
	return s, err
}

// overlay returns what the leader says; garbage says nothing.
func (c *cluster) overlay(item etcdkv.Item) *membership.Overlay {
	if item.ModRevision == 0 {
		return nil
	}
	o, err := etcdkv.DecodeOverlay(item.Value)
	if err != nil {
		c.s.log.Warn("health is left out", "cluster", c.name, "key", item.Key, "error", err)
		return nil
	}
	return &membership.Overlay{Bad: o.Bad}
}

// resolveHead returns what head points at, whole and verified.
func (c *cluster) resolveHead(ctx context.Context, meta etcdkv.Meta, head etcdkv.Head) (*topology.Topology, error) {
	c.mu.Lock()
	held := c.head
	c.mu.Unlock()
	if held == nil || held.Digest() != head.Digest {
		t, err := c.s.kv.FetchTopology(ctx, c.keys, head.Digest, head.Objects, held)
		if err != nil {
			return nil, err
		}
		held = t
	}
	if err := c.belongs(held, meta, head.Version, head.History); err != nil {
		return nil, err
	}
	c.remember(held)
	return held, nil
}

// belongs refuses a topology that is whole but not the one that a record means.
func (c *cluster) belongs(t *topology.Topology, meta etcdkv.Meta, v topology.Version, h topology.History) error {
	ref := t.Ref()
	if t.Cluster() != c.name || ref.ClusterID != meta.ID || ref.Version != v || ref.History != h || v.Epoch > meta.Epoch {
		return fmt.Errorf("%w: record of version %s, history %s, in cluster %q (%s, epoch %d) points at version %s, history %s, of cluster %q (%s)",
			etcdkv.ErrCorrupt, v, h, c.name, meta.ID, meta.Epoch, ref.Version, ref.History, t.Cluster(), ref.ClusterID)
	}
	return nil
}

func (c *cluster) remember(t *topology.Topology) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head = t
}

func (c *cluster) resolveDeclared(ctx context.Context, item etcdkv.Item, s *membership.State) error {
	if item.ModRevision == 0 {
		return fmt.Errorf("%w: the key is gone", etcdkv.ErrCorrupt)
	}
	record, err := etcdkv.DecodeDeclared(item.Value)
	if err != nil {
		return err
	}
	s.Generation = max(s.Applied, record.Generation)
	if len(record.Notes) > 0 {
		if err := json.Unmarshal(record.Notes, &s.Edits); err != nil {
			s.Edits = nil // for people; nothing depends on them
		}
	}
	s.Declared, err = c.fetchDeclared(ctx, s.ID, record.Digest)
	return err
}

func (c *cluster) fetchDeclared(ctx context.Context, id topology.ClusterID, digest topology.Digest) (topology.Declared, error) {
	c.mu.Lock()
	held, known := c.declared, c.digest == digest
	c.mu.Unlock()
	if known {
		return held, nil
	}
	data, err := c.s.kv.Fetch(ctx, c.keys, digest)
	if err != nil {
		return topology.Declared{}, err
	}
	d, err := etcdkv.DecodeDeclaredContent(id, data[0])
	if err != nil {
		return topology.Declared{}, err
	}
	if d.Cluster != c.name {
		return topology.Declared{}, fmt.Errorf("%w: declared state of cluster %q", etcdkv.ErrCorrupt, d.Cluster)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declared, c.digest = d, digest
	return d, nil
}

// mark is what Watch compares to call once for each change.
type mark struct {
	id                  topology.ClusterID
	head                topology.Ref
	generation, applied uint64
	invalid             bool
	standing            string
}

// Watch calls fn with the state now and after every change; see
// membership.Store.
func (c *cluster) Watch(ctx context.Context, fn func(membership.State) error) error {
	if c.err != nil {
		return translate("watch", c.noCluster())
	}
	var last mark
	var overlay *membership.Overlay
	ranges := append(c.shown(), etcdkv.Range{Key: c.keys.Evidences(), Prefix: true})
	err := c.s.kv.Follow(ctx, ranges, c.s.tell("watch", c.name), func(r etcdkv.Reading) error {
		c.hear(ctx, r.Items[4])
		s, err := c.resolve(ctx, r, false)
		if etcdkv.Stale(err) { // a newer reading is due; take it at once
			s, _, err = c.load(ctx)
		}
		switch {
		case errors.Is(err, membership.ErrNoCluster) || ctx.Err() != nil:
			return translate("watch", err)
		case err != nil:
			c.s.log.Error("state cannot be used, keeping the last", "cluster", c.name, "error", err)
			return nil
		}
		now := mark{s.ID, s.Position().Head, s.Generation, s.Applied, s.Invalid != nil, fmt.Sprint(s.Epoch, s.Shown, s.Frozen, s.BumpedAt)}
		if now == last && s.Overlay.Equal(overlay) {
			return nil
		}
		last, overlay = now, s.Overlay
		return fn(s)
	})
	return err
}
