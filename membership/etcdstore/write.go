package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

const (
	// collectEvery is how many publications lie between collections: one
	// costs a reading of some 200 small records and a list of keys.
	collectEvery = 8
	// declareTries bounds a batch of edits that other processes keep coming
	// between. Of n processes one wins each round, so it lets more than a
	// hundred of them through.
	declareTries = 200
)

// jitter waits a moment by chance, so that editors do not meet again.
func jitter(ctx context.Context, n int) bool {
	t := time.NewTimer(rand.N(time.Millisecond << min(n, 5)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Publish writes p under the leadership, or nothing; see membership.Store.
func (c *cluster) Publish(ctx context.Context, l membership.Leadership, p membership.Publication) error {
	if c.err != nil {
		return translate("publish", c.noCluster())
	}
	if err := c.publish(ctx, l, p); err != nil {
		var compare *etcdkv.CompareError
		if errors.As(err, &compare) && compare.Key == c.keys.Leader() {
			return fmt.Errorf("etcdstore: publish: %w: %w", membership.ErrNotLeader, err)
		}
		return translate("publish", err)
	}
	if p.Next != nil {
		c.remember(p.Next)
		c.collect(ctx, l)
	}
	return nil
}

func (c *cluster) publish(ctx context.Context, l membership.Leadership, p membership.Publication) error {
	lead, ok := l.(*leadership)
	if !ok || lead.key != c.keys.Leader() || lead.ended() {
		return membership.ErrNotLeader
	}
	r, err := c.s.kv.Get(ctx, c.records()...)
	if err != nil {
		return err
	}
	head, err := c.check(r, p)
	if err != nil {
		return err
	}
	fence := append(c.fence(r, 2), lead.compare())
	if p.Next == nil {
		head.Generation = p.Generation
		return c.commitHead(ctx, etcdkv.Txn{If: fence}, head)
	}
	return c.publishNext(ctx, fence, head, p, etcdkv.Txn{})
}

// check decodes the records and refuses a publication that does not continue
// what they say. It returns the head before.
func (c *cluster) check(r etcdkv.Reading, p membership.Publication) (head etcdkv.Head, err error) {
	_, head, position, err := c.position(r)
	if err != nil {
		return head, err
	}
	return head, position.Check(p)
}

// position decodes the records.
func (c *cluster) position(r etcdkv.Reading) (meta etcdkv.Meta, head etcdkv.Head, position membership.Position, err error) {
	if meta, err = c.meta(r); err != nil {
		return meta, head, position, err
	}
	position = membership.Position{ID: meta.ID, Epoch: meta.Epoch, History: meta.History}
	if position.Standing, err = standing(meta); err != nil {
		return meta, head, position, err
	}
	if r.First(2).ModRevision > 0 {
		if head, err = etcdkv.DecodeHead(r.First(2).Value); err != nil {
			return meta, head, position, err
		}
		position.Head = topology.Ref{ClusterID: meta.ID, History: head.History, Version: head.Version, Digest: head.Digest}
		position.Applied = head.Generation
	}
	position.Generation = position.Applied
	if declared, err := etcdkv.DecodeDeclared(r.First(1).Value); err == nil {
		position.Generation = max(position.Applied, declared.Generation)
	}
	return meta, head, position, nil
}

// publishNext writes contents, record, link and head of the next version: the
// contents first if they are large, the rest in one transaction, along with what
// more writes.
func (c *cluster) publishNext(ctx context.Context, fence []etcdkv.Compare, before etcdkv.Head, p membership.Publication, more etcdkv.Txn) error {
	t := p.Next
	report, err := json.Marshal(p.Movement)
	if err != nil {
		return fmt.Errorf("movement report: %w", err)
	}
	movement := etcdkv.NewContent(report)
	contents := []etcdkv.Content{{Digest: t.Digest(), Data: t.Encode()}, movement}
	var objects []topology.Digest
	for _, o := range t.Objects() {
		contents = append(contents, etcdkv.Content{Digest: o.Digest(), Data: o.Encode()})
		objects = append(objects, o.Digest())
	}
	parts, err := c.s.kv.Prepare(ctx, c.keys, contents, fence)
	if err != nil {
		return err
	}
	history := t.Ref().History
	record, err := etcdkv.EncodeRecord(etcdkv.VersionRecord{Version: t.Version(), History: history, Digest: t.Digest(), Objects: objects,
		Movement: movement.Digest, Nodes: t.Len(), Moved: before.Mapping != t.Mapping(), Ratio: p.Movement.Ratio, Cause: t.Cause()})
	if err != nil {
		return err
	}
	txn := etcdkv.Txn{If: append(fence, parts.If...), Deletes: more.Deletes, Puts: append(append(parts.Puts, more.Puts...),
		etcdkv.Put{Key: c.keys.Version(t.Version()), Value: record},
		etcdkv.Put{Key: c.keys.Chain(t.Version()), Value: etcdkv.Link{History: history, Digest: t.Digest()}.Encode()})}
	if v := t.Version(); v.Seq > membership.KeptDigests {
		v.Seq -= membership.KeptDigests
		txn.Deletes = append(txn.Deletes, etcdkv.Range{Key: c.keys.Chain(v)})
	}
	return c.commitHead(ctx, txn, etcdkv.Head{Version: t.Version(), History: history, Digest: t.Digest(), Mapping: t.Mapping(), Objects: objects, Generation: p.Generation})
}

func (c *cluster) commitHead(ctx context.Context, txn etcdkv.Txn, head etcdkv.Head) error {
	head.Edit = nonce()
	value, err := etcdkv.EncodeRecord(head)
	if err != nil {
		return err
	}
	txn.Puts = append(txn.Puts, etcdkv.Put{Key: c.keys.Head(), Value: value})
	txn.Confirm = c.keys.Head()
	_, err = c.s.kv.Commit(ctx, txn)
	return err
}

// collect removes what is no longer kept, now and then. It may fail or be
// interrupted: the next one goes on.
func (c *cluster) collect(ctx context.Context, l membership.Leadership) {
	c.mu.Lock()
	due := c.published%collectEvery == 0
	c.published++
	c.mu.Unlock()
	if !due {
		return
	}
	lead, _ := l.(*leadership)
	done, err := c.s.kv.Collect(ctx, c.keys, membership.KeptVersions, slices.Clip([]etcdkv.Compare{lead.compare()}))
	if err != nil {
		c.s.log.Debug("collection ended early", "cluster", c.name, "error", err)
	} else if done != (etcdkv.Collected{}) {
		c.s.log.Debug("collected", "cluster", c.name, "versions", done.Versions, "objects", done.Objects)
	}
}
