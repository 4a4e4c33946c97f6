// Package etcdlease keeps the leases of package owner in etcd: one key for each node,
// <prefix>/<cluster>/owner/<node>, under a lease of its own. Law and errors are those of
// owner.Leases; readings are linearizable, and revisions are etcd's.
//
// Cost: for each version one write and one or more readings of all the cluster's nodes;
// one renewal a quarter of the lease's time.
package etcdlease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/topology"
)

// Store keeps the leases of one cluster. Make one with New. Safe for concurrent use.
type Store struct {
	client *clientv3.Client
	prefix string
}

var _ owner.Leases = (*Store)(nil)

// New returns the leases of cluster, under prefix ("" = "/shardd") where clusters lie.
// The caller closes client after the owners. The error says what is wrong with a name.
func New(client *clientv3.Client, prefix, cluster string) (*Store, error) {
	if client == nil {
		return nil, errors.New("etcdlease: no etcd client")
	}
	k, err := etcdkv.NewKeys(prefix, cluster)
	if err != nil {
		return nil, fmt.Errorf("etcdlease: %w", err)
	}
	return &Store{client: client, prefix: strings.TrimSuffix(k.All(), "/") + "/owner/"}, nil
}

// record is a key's value.
type record struct {
	Cluster topology.ClusterID `json:"cluster"`
	History topology.History   `json:"history"`
	Version topology.Version   `json:"version"`
	Digest  topology.Digest    `json:"digest"`
}

type lease struct {
	s       *Store
	key     string
	id      clientv3.LeaseID
	created int64 // revision at which the key was made: it is this lease's as long as it has it
	written int64 // revision of its last write, as far as that is known
}

// Take is owner.Leases.Take. etcd counts a lease in whole seconds, rounded up.
func (s *Store) Take(ctx context.Context, id string, ttl time.Duration) (owner.Lease, error) {
	if err := topology.ValidateNodeID(id); err != nil {
		return nil, fmt.Errorf("etcdlease: %w", err)
	}
	granted, err := s.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, fmt.Errorf("etcdlease: take %q: %w", id, err)
	}
	l := &lease{s: s, key: s.prefix + id, id: granted.ID}
	put := clientv3.OpPut(l.key, "{}", clientv3.WithLease(l.id))
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(l.key), "=", 0)).Then(put).Commit()
	if err == nil && resp.Succeeded {
		l.created, l.written = resp.Header.Revision, resp.Header.Revision
		return l, nil
	}
	l.revoke(ctx)
	if err != nil {
		return nil, fmt.Errorf("etcdlease: take %q: %w", id, err)
	}
	return nil, fmt.Errorf("etcdlease: %w: %q", owner.ErrTaken, id)
}

// revoke ends the lease in bounded time, though ctx may have ended.
func (l *lease) revoke(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = l.s.client.Revoke(ctx, l.id) // it ends by itself otherwise
}

func (l *lease) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(l.key), "=", l.created)
}

// Settle is owner.Lease.Settle. A write that was given up may be made later, by a server
// that was stopped; it must not undo what was written after it, so each one is made on top
// of the last that is known.
func (l *lease) Settle(ctx context.Context, ref topology.Ref) error {
	b, err := json.Marshal(record{ref.ClusterID, ref.History, ref.Version, ref.Digest})
	if err != nil {
		return fmt.Errorf("etcdlease: settle: %w", err)
	}
	put := clientv3.OpPut(l.key, string(b), clientv3.WithLease(l.id))
	for {
		onTop := clientv3.Compare(clientv3.ModRevision(l.key), "=", l.written)
		resp, err := l.s.client.Txn(ctx).If(l.mine(), onTop).Then(put).Else(clientv3.OpGet(l.key)).Commit()
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return owner.ErrLost
		case err != nil:
			return fmt.Errorf("etcdlease: settle: %w", err)
		case resp.Succeeded:
			l.written = resp.Header.Revision
			return nil
		}
		kvs := resp.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 0 || kvs[0].CreateRevision != l.created {
			return owner.ErrLost
		}
		l.written = kvs[0].ModRevision // one that was given up has been made
		if string(kvs[0].Value) == string(b) {
			return nil
		}
	}
}

// Records is owner.Lease.Records. A key that cannot be read is that of a node that may
// serve anything.
func (l *lease) Records(ctx context.Context) ([]owner.Record, uint64, error) {
	resp, err := l.s.client.Txn(ctx).If(l.mine()).Then(clientv3.OpGet(l.s.prefix, clientv3.WithPrefix())).Commit()
	if err != nil {
		return nil, 0, fmt.Errorf("etcdlease: records: %w", err)
	}
	if !resp.Succeeded {
		return nil, 0, owner.ErrLost
	}
	var all []owner.Record
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		r := owner.Record{ID: strings.TrimPrefix(string(kv.Key), l.s.prefix)}
		if string(kv.Value) != "{}" {
			var v record
			if err := json.Unmarshal(kv.Value, &v); err != nil {
				return nil, 0, fmt.Errorf("etcdlease: key %s: %w", kv.Key, err)
			}
			r.Settled = topology.Ref{ClusterID: v.Cluster, History: v.History, Version: v.Version, Digest: v.Digest}
		}
		all = append(all, r)
	}
	return all, uint64(resp.Header.Revision), nil
}

// Renew is owner.Lease.Renew.
func (l *lease) Renew(ctx context.Context) error {
	_, err := l.s.client.KeepAliveOnce(ctx, l.id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return owner.ErrLost
	}
	if err != nil {
		return fmt.Errorf("etcdlease: renew: %w", err)
	}
	return nil
}

// End is owner.Lease.End.
func (l *lease) End(ctx context.Context) error {
	if _, err := l.s.client.Revoke(ctx, l.id); err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return owner.ErrLost
		}
		return fmt.Errorf("etcdlease: end: %w", err)
	}
	return nil
}
