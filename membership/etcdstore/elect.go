package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
)

// errFree ends the wait for the election key.
var errFree = errors.New("free")

// Campaign blocks until this process leads the cluster or ctx ends. The election
// key is one key under a lease: whoever makes it leads, and every
// publication compares its CreateRevision. Waiting is Get-then-Watch with a poll
// behind it, as for everything else, so a silent stream does not block it.
func (s *Store) Campaign(ctx context.Context, cluster, id string) (membership.Leadership, error) {
	keys, err := etcdkv.NewKeys(s.prefix, cluster)
	if err != nil {
		return nil, fmt.Errorf("etcdstore: campaign: %w: %w", membership.ErrNoCluster, err)
	}
	for {
		if err := s.waitFree(ctx, cluster, keys); err != nil {
			return nil, translate("campaign", err)
		}
		l, err := s.seize(ctx, keys, id)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, etcdkv.ErrConflict) {
			return nil, translate("campaign", err)
		}
	}
}

func (s *Store) waitFree(ctx context.Context, cluster string, keys etcdkv.Keys) error {
	err := s.kv.Follow(ctx, []etcdkv.Range{{Key: keys.Leader()}}, s.tell("campaign", cluster), func(r etcdkv.Reading) error {
		if r.First(0).ModRevision == 0 {
			return errFree
		}
		s.revokeLeft(ctx)
		return nil
	})
	if errors.Is(err, errFree) {
		return nil
	}
	return err
}

// seize makes the election key under a fresh lease, if it is still free.
func (s *Store) seize(ctx context.Context, keys etcdkv.Keys, id string) (*leadership, error) {
	lease, seconds, err := s.kv.Grant(ctx, etcdkv.LeaseWithin(s.ttl))
	if err != nil {
		return nil, err
	}
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ctx is the campaign's
	l := &leadership{s: s, lease: lease, cancel: cancel, done: make(chan struct{}), key: keys.Leader()}
	go l.keep(alive, time.Duration(seconds)*time.Second)
	value, err := etcdkv.EncodeRecord(map[string]string{"id": id, "edit": nonce()})
	if err == nil {
		l.revision, err = s.kv.Commit(ctx, etcdkv.Txn{If: []etcdkv.Compare{{Key: l.key}}, Puts: []etcdkv.Put{{Key: l.key, Value: value, Lease: lease}}, Confirm: l.key})
	}
	if err != nil {
		_ = l.release(ctx) // the lease ends by itself otherwise
		return nil, err
	}
	return l, nil
}

// leadership is a held election key.
type leadership struct {
	s        *Store
	lease    clientv3.LeaseID
	cancel   context.CancelFunc
	done     chan struct{} // closed when the lease is kept no longer
	key      string
	revision int64
}

// Done is closed when the lease is lost or given up.
func (l *leadership) Done() <-chan struct{} { return l.done }

// keep renews the lease until it is lost or ctx ends.
func (l *leadership) keep(ctx context.Context, ttl time.Duration) {
	defer close(l.done)
	if err := l.s.kv.Renew(ctx, l.lease, ttl); ctx.Err() == nil {
		l.s.log.Debug("leadership lost", "key", l.key, "error", err)
	}
}

func (l *leadership) ended() bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

func (l *leadership) compare() etcdkv.Compare {
	return etcdkv.Compare{Key: l.key, Revision: l.revision, Created: true}
}

// Resign ends the lease, and with it the key, at once.
func (l *leadership) Resign(ctx context.Context) error {
	if err := l.release(ctx); err != nil {
		return translate("resign", err)
	}
	return nil
}

// release stops keeping the lease alive and revokes it. If that fails, the next
// campaign does it, or it ends by itself.
func (l *leadership) release(ctx context.Context) error {
	l.cancel()
	<-l.done
	err := l.s.kv.Revoke(ctx, l.lease)
	if err != nil {
		l.s.leftLock.Lock()
		defer l.s.leftLock.Unlock()
		l.s.left = append(l.s.left, l.lease)
	}
	return err
}

// revokeLeft revokes the leases that could not be revoked while etcd was away.
// etcd gives every lease its whole time again when it has elected a leader, and
// the election key would stand in the way of its own holder for so long.
func (s *Store) revokeLeft(ctx context.Context) {
	s.leftLock.Lock()
	left := s.left
	s.left = nil
	s.leftLock.Unlock()
	for i, lease := range left {
		if err := s.kv.Revoke(ctx, lease); err != nil {
			s.log.Debug("a lease from before is not revoked yet", "error", err)
			s.leftLock.Lock()
			s.left = append(s.left, left[i:]...)
			s.leftLock.Unlock()
			return
		}
	}
}
