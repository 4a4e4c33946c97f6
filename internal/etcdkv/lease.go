package etcdkv

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// LeaseLateness is how late etcd notices that a lease has run out: it looks for
// such leases every 500 ms (its lessor's loop).
const LeaseLateness = 500 * time.Millisecond

// LeaseWithin returns the time in whole seconds of a lease that has ended, its
// lateness included, when nothing has renewed it for ttl; a second if ttl is
// shorter than that takes. etcd counts leases in seconds.
func LeaseWithin(ttl time.Duration) int64 {
	return max(1, int64((ttl-LeaseLateness)/time.Second))
}

// Grant makes a lease of ttl seconds, or of more: etcd's least is 1.5 election
// timeouts, rounded up; it returns what it was given. A try whose answer is lost
// leaves a lease behind, which ends by itself.
func (c *Client) Grant(ctx context.Context, ttl int64) (id clientv3.LeaseID, given int64, err error) {
	err = c.call(ctx, "grant a lease", func(ctx context.Context) error {
		resp, err := c.lease.Grant(ctx, ttl)
		if err == nil {
			id, given = resp.ID, resp.TTL
		}
		return err
	})
	return id, given, err
}

// Revoke ends a lease and deletes its keys. A lease that is gone is no error.
func (c *Client) Revoke(ctx context.Context, id clientv3.LeaseID) error {
	return c.call(ctx, "revoke a lease", func(ctx context.Context) error {
		_, err := c.lease.Revoke(ctx, id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	})
}
