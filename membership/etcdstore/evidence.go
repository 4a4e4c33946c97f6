package etcdstore

import (
	"context"
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
)

// evidenceAtOnce bounds how many versions that clients present are looked at for one
// reading; the others wait for the next.
const evidenceAtOnce = 8

// hear looks at what clients that read etcd themselves present, as if they had shown
// it to a server, and removes it. Their word is not trusted: it stops publication and
// raises no epoch.
func (c *cluster) hear(ctx context.Context, items []etcdkv.Item) {
	for _, item := range items[:min(len(items), evidenceAtOnce)] {
		e, err := etcdkv.DecodeEvidence(item.Value)
		if err == nil {
			by := "a client that reads etcd itself"
			if utf8.ValidString(e.By) && e.By != "" && len(e.By) <= membership.MaxNoteLen/2 && !hasControl(e.By) {
				by = "client " + e.By + ", which reads etcd itself,"
			}
			var evidence bool
			evidence, err = c.Show(ctx, membership.Shown{Ref: e.Ref, By: by})
			if evidence {
				c.s.log.Error("the store went back: a client that reads it itself holds a version that its head neither is nor descends from", "cluster", c.name, "version", e.Ref, "by", e.By)
			}
		}
		if errors.Is(err, membership.ErrUnreachable) || errors.Is(err, membership.ErrConflict) {
			return // the next reading comes to it
		}
		if err != nil {
			c.s.log.Warn("what a client presents is left out", "cluster", c.name, "key", item.Key, "error", err)
		}
		_, err = c.s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{item.As(item.Key)}, Deletes: []etcdkv.Range{{Key: item.Key}}})
		if err != nil && !errors.Is(err, etcdkv.ErrConflict) { // another server removed it
			c.s.log.Debug("what a client presented is not removed yet", "cluster", c.name, "key", item.Key, "error", err)
		}
	}
}

func hasControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}
