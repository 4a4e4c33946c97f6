package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// standing reads the store's own part of meta. Garbage there is an error: it may
// be what forbids publication.
func standing(m etcdkv.Meta) (s membership.Standing, err error) {
	if len(m.Standing) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(m.Standing, &s); err != nil {
		return s, fmt.Errorf("%w: standing: %w", etcdkv.ErrCorrupt, err)
	}
	return s, nil
}

// metaPut returns the write of meta with s in it.
func (c *cluster) metaPut(m etcdkv.Meta, s membership.Standing) (etcdkv.Put, error) {
	own, err := json.Marshal(s)
	if err != nil {
		return etcdkv.Put{}, err
	}
	m.Standing, m.Edit = own, nonce()
	value, err := etcdkv.EncodeRecord(m)
	return etcdkv.Put{Key: c.keys.Meta(), Value: value}, err
}

// Show presents a version; see membership.Epochs.
func (c *cluster) Show(ctx context.Context, s membership.Shown) (evidence bool, err error) {
	err = c.again(ctx, "show", func() error {
		evidence, err = c.show(ctx, s)
		return err
	})
	return evidence && err == nil, err
}

// again runs one attempt after another while others come between.
func (c *cluster) again(ctx context.Context, op string, attempt func() error) error {
	if c.err != nil {
		return translate(op, c.noCluster())
	}
	for n := 0; ; n++ {
		err := attempt()
		if err == nil {
			return nil
		}
		if !errors.Is(err, etcdkv.ErrConflict) || n == declareTries || !jitter(ctx, n) {
			return translate(op, err)
		}
	}
}

func (c *cluster) show(ctx context.Context, s membership.Shown) (bool, error) {
	r, err := c.s.kv.Get(ctx, append(c.records(), etcdkv.Range{Key: c.keys.Chain(s.Ref.Version)})...)
	if err != nil {
		return false, err
	}
	meta, _, position, err := c.position(r)
	if err != nil {
		return false, err
	}
	link, err := etcdkv.DecodeLink(r.First(3).Value)
	inChain := err == nil && link.Digest == s.Ref.Digest && (s.Ref.History == 0 || s.Ref.History == link.History)
	if !position.WentBack(s.Ref, inChain) {
		return false, nil
	}
	stand := position.Standing
	changed, err := stand.Admit(position.Epoch, s)
	if err != nil || !changed {
		return err == nil, err
	}
	put, err := c.metaPut(meta, stand)
	if err != nil {
		return false, err
	}
	_, err = c.s.kv.Commit(ctx, etcdkv.Txn{If: c.fence(r, 2), Puts: []etcdkv.Put{put}, Confirm: put.Key})
	return err == nil, err
}

// Bump begins an epoch; see membership.Epochs.
func (c *cluster) Bump(ctx context.Context, l membership.Leadership, b membership.Bump) error {
	if c.err != nil {
		return translate("bump", c.noCluster())
	}
	if err := c.bump(ctx, l, b); err != nil {
		var compare *etcdkv.CompareError
		if errors.As(err, &compare) && compare.Key == c.keys.Leader() {
			return fmt.Errorf("etcdstore: bump: %w: %w", membership.ErrNotLeader, err)
		}
		return translate("bump", err)
	}
	if b.Next != nil {
		c.remember(b.Next)
	}
	return nil
}

func (c *cluster) bump(ctx context.Context, l membership.Leadership, b membership.Bump) error {
	r, err := c.s.kv.Get(ctx, c.records()...)
	if err != nil {
		return err
	}
	meta, head, position, err := c.position(r)
	if err != nil {
		return err
	}
	if err := position.CheckBump(b); err != nil {
		return err
	}
	fence := c.fence(r, 2)
	if l != nil {
		lead, ok := l.(*leadership)
		if !ok || lead.key != c.keys.Leader() || lead.ended() {
			return membership.ErrNotLeader
		}
		fence = append(fence, lead.compare())
	}
	stand := position.Standing
	stand.Shown, stand.BumpedAt = nil, b.At
	// Links of the epoch before prove nothing any more.
	more := etcdkv.Txn{Deletes: []etcdkv.Range{{Key: c.keys.Links(meta.Epoch), Prefix: true}}}
	meta.Epoch, meta.History = b.Epoch, b.History
	put, err := c.metaPut(meta, stand)
	if err != nil {
		return err
	}
	more.Puts = []etcdkv.Put{put}
	if b.Next == nil {
		more.If, more.Confirm = fence, put.Key
		_, err := c.s.kv.Commit(ctx, more)
		return err
	}
	// The head answers what it answered before: the contents are the same.
	return c.publishNext(ctx, fence, head, membership.Publication{Next: b.Next, Movement: b.Movement, Generation: head.Generation}, more)
}

// Freeze holds back publication or lets it go on; see membership.Epochs.
func (c *cluster) Freeze(ctx context.Context, f *membership.Freeze) (s membership.State, err error) {
	if err := f.Check(); err != nil {
		return s, translate("freeze", err)
	}
	err = c.again(ctx, "freeze", func() error {
		var r etcdkv.Reading
		if s, r, err = c.load(ctx); err != nil || (f == nil) == (s.Frozen == nil) {
			return err
		}
		meta, err := c.meta(r)
		if err != nil {
			return err
		}
		s.Frozen = f
		put, err := c.metaPut(meta, s.Standing)
		if err != nil {
			return err
		}
		_, err = c.s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{r.First(0).As(put.Key)}, Puts: []etcdkv.Put{put}, Confirm: put.Key})
		return err
	})
	return s, err
}

// Delete removes a cluster with everything that lies under it; see
// membership.Directory.
func (s *Store) Delete(ctx context.Context, name string, id topology.ClusterID) error {
	c, ok := s.Open(name).(*cluster)
	if !ok || c.err != nil {
		return fmt.Errorf("etcdstore: delete: %w: %q", membership.ErrNoCluster, name)
	}
	return c.again(ctx, "delete", func() error {
		r, err := c.get(ctx, etcdkv.Range{Key: c.keys.Deleted()})
		if err != nil {
			return err
		}
		meta, err := c.meta(r)
		if err != nil {
			return err
		}
		ids := append([]topology.ClusterID{id}, deletedIDs(r.First(1).Value)...)
		if meta.ID != id {
			return fmt.Errorf("%w: cluster %q has id %s, not %s", membership.ErrConflict, name, meta.ID, id)
		}
		_, err = s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{r.First(0).As(c.keys.Meta())},
			Deletes: []etcdkv.Range{{Key: c.keys.All(), Prefix: true}, {Key: s.directory + name}},
			Puts:    []etcdkv.Put{{Key: c.keys.Deleted(), Value: []byte(fmt.Sprintln(ids[:min(len(ids), membership.KeptDeletions)]))}}})
		return err
	})
}

// Deleted returns the ids of deleted clusters of this name.
func (c *cluster) Deleted(ctx context.Context) ([]topology.ClusterID, error) {
	if c.err != nil {
		return nil, translate("deleted", c.noCluster())
	}
	r, err := c.s.kv.Get(ctx, etcdkv.Range{Key: c.keys.Deleted()})
	if err != nil {
		return nil, translate("deleted", err)
	}
	return deletedIDs(r.First(0).Value), nil
}

// deletedIDs reads what Delete writes; what is no id is left out.
func deletedIDs(b []byte) (ids []topology.ClusterID) {
	for _, text := range strings.FieldsFunc(string(b), func(r rune) bool { return strings.ContainsRune("[] \n", r) }) {
		if id, err := topology.ParseClusterID(text); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
