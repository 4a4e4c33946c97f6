package etcdsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// ErrNoVersion is reported when the head key is not there. That may be a cluster
// without a version yet, a wrong name or prefix, or a wiped store; it is never an empty cluster.
var ErrNoVersion = errors.New("no version of this cluster in etcd; is the name right, and has one been published?")

// tries bounds how often one change is read anew, because it was replaced while
// it was read. After that the next event or poll comes to it.
const tries = 5

// watch is one call of Watch.
type watch struct {
	s       *Source
	kv      *etcdkv.Client
	fn      func(*topology.Topology) error
	have    topology.Ref       // what the caller holds
	held    *topology.Topology // the same, for its tables; nil = only the ref is known
	refused topology.Digest    // what fn refused last: it is not offered again
	sound   bool               // the head as it was read last is what the caller holds
	presented
}

func (w *watch) report(ctx context.Context, err error) {
	w.s.c.Logger.Debug("problem", "have", w.have, "error", err)
	sdk.Report(ctx, fmt.Errorf("etcdsource: cluster %s: %w", w.s.c.Cluster, err))
}

// reading handles the head as it was read. It never ends the watch: what cannot
// be used is reported, and the caller keeps what it has.
func (w *watch) reading(ctx context.Context, item etcdkv.Item) error {
	w.sound = false
	for range tries {
		err := w.head(ctx, item)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !etcdkv.Stale(err) && !errors.Is(err, etcdkv.ErrUnreachable) {
			w.report(ctx, err)
			return nil
		}
		r, err := w.kv.Get(ctx, etcdkv.Range{Key: w.s.keys.Head()})
		if err != nil {
			w.report(ctx, err)
			continue
		}
		item = r.First(0)
	}
	w.report(ctx, fmt.Errorf("%w: the head was replaced or damaged while it was read", etcdkv.ErrMissing))
	return nil
}

func (w *watch) head(ctx context.Context, item etcdkv.Item) error {
	if item.ModRevision == 0 {
		return ErrNoVersion
	}
	head, err := etcdkv.DecodeHead(item.Value)
	switch {
	case err != nil:
		return err
	case head.Digest == w.refused:
		return nil
	case head.Digest == w.have.Digest && head.Version == w.have.Version:
		_ = w.fn(nil) // confirmed to be the newest; nothing to refuse
		w.sound = true
		return nil
	}
	if head, err = w.prove(ctx, head); err != nil {
		w.present(ctx, head, err)
		return err
	}
	t, err := w.kv.FetchTopology(ctx, w.s.keys, head.Digest, head.Objects, w.held)
	if err != nil {
		return err
	}
	if t.Cluster() != w.s.c.Cluster || t.Version() != head.Version || t.Ref().History != head.History {
		return fmt.Errorf("%w: head %s points at version %s of cluster %q", etcdkv.ErrCorrupt, head.Version, t.Version(), t.Cluster())
	}
	w.deliver(t)
	return nil
}

// health tells the client what the leader says of the nodes' health. A key that
// is not there, or garbage, says nothing: what was said last stands for a while.
// Nor does one beside a head that the client does not take.
func (w *watch) health(ctx context.Context, item etcdkv.Item) {
	if item.ModRevision == 0 || !w.sound || ctx.Err() != nil {
		return
	}
	o, err := etcdkv.DecodeOverlay(item.Value)
	if err != nil {
		w.report(ctx, err)
		return
	}
	sdk.ReportHealth(ctx, o.Bad)
}

func (w *watch) deliver(t *topology.Topology) {
	if err := w.fn(t); err != nil {
		w.refused = t.Digest()
		w.s.c.Logger.Warn("topology was refused", "version", t.Version(), "have", w.have, "error", err)
		return
	}
	w.have, w.held, w.refused, w.sound = t.Ref(), t, topology.Digest{}, true
}

// prove presents what the caller holds to the chain, and returns the head that
// the proof is for. A caller that holds nothing, a higher epoch and another
// cluster need no proof: the last is for the client to refuse, by name.
func (w *watch) prove(ctx context.Context, head etcdkv.Head) (etcdkv.Head, error) {
	if w.have.IsZero() || head.Version.Epoch > w.have.Version.Epoch {
		return head, nil
	}
	r, err := w.kv.Get(ctx, etcdkv.Range{Key: w.s.keys.Meta()}, etcdkv.Range{Key: w.s.keys.Head()}, etcdkv.Range{Key: w.s.keys.Chain(w.have.Version)})
	if err != nil {
		return head, err
	}
	if head, err = etcdkv.DecodeHead(r.First(1).Value); err != nil {
		return head, err
	}
	meta, err := etcdkv.DecodeMeta(r.First(0).Value)
	if err != nil {
		return head, err
	}
	h := w.have
	switch {
	case meta.ID != h.ClusterID || head.Version.Epoch > h.Version.Epoch || head.Precedes(h, r.First(2).Value):
		return head, nil
	case head.Version.Compare(h.Version) < 0:
		return head, fmt.Errorf("%w: the store's head is %s, version %s is held: the store went back, and its epoch has to be raised", sdk.ErrOlder, head.Version, h.Version)
	case head.History != h.History:
		return head, fmt.Errorf("%w: epoch %d has history %s in the store, %s is held", sdk.ErrForked, h.Version.Epoch, head.History, h.History)
	}
	return head, fmt.Errorf("%w: the chain of the store's head %s does not have digest %s at version %s: it forked, or reaches no further back", sdk.ErrForked, head.Version, h.Digest, h.Version)
}
