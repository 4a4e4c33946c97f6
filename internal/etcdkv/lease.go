package etcdkv

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Grant makes a lease of ttl seconds. A try whose answer is lost leaves one
// behind, which ends by itself.
func (c *Client) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, error) {
	var id clientv3.LeaseID
	err := c.call(ctx, "grant a lease", func(ctx context.Context) error {
		resp, err := c.lease.Grant(ctx, ttl)
		if err == nil {
			id = resp.ID
		}
		return err
	})
	return id, err
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
