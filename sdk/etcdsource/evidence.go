package etcdsource

import (
	"context"
	"errors"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// presented is what was said last, so that it is said once.
type presented struct {
	held topology.Ref
	head topology.Digest
}

// present tells the servers that the store does not continue what the caller holds:
// it writes that under the cluster, where a shardd looks at it, stops publication if
// it is so, and shows it to the operator (readyz, shardd_store_went_back). Whoever
// may not write there says so in its log, once.
func (w *watch) present(ctx context.Context, head etcdkv.Head, reason error) {
	now := presented{w.have, head.Digest}
	if now == w.presented || !errors.Is(reason, sdk.ErrOlder) && !errors.Is(reason, sdk.ErrForked) {
		return
	}
	value, err := etcdkv.EncodeRecord(etcdkv.Evidence{Ref: w.have, By: w.s.c.Name})
	if err != nil {
		return // a ref and a text can always be encoded
	}
	key := w.s.keys.Evidence(w.have.Digest)
	_, err = w.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{{Key: key}}, Puts: []etcdkv.Put{{Key: key, Value: value}}})
	switch {
	case err == nil || errors.Is(err, etcdkv.ErrConflict): // another client said it
		w.s.c.Logger.Error("the store does not continue what is held, and the servers are told", "have", w.have, "head", head.Version, "error", reason)
	case errors.Is(err, etcdkv.ErrRefused):
		w.s.c.Logger.Error("the store does not continue what is held, and the servers cannot be told: tell their operator", "have", w.have, "head", head.Version, "error", errors.Join(reason, err))
	default:
		return // the next reading tries again
	}
	w.presented = now
}
