package etcdstore_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func (r *raw) writeLive(t *testing.T, cluster, node string, v []byte) {
	r.write(t, r.keys(t, cluster).Live(node), v)
}

// endLease revokes the lease that a node's record is under.
func (r *raw) endLease(t *testing.T, cluster, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	resp, err := r.c.Get(ctx, r.keys(t, cluster).Live(node))
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("node %s is not registered: %v", node, err)
	}
	if _, err := r.c.Revoke(ctx, clientv3.LeaseID(resp.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
}
