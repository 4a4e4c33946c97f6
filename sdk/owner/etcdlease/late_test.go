package etcdlease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// lateKV holds transactions back while it is told to: their callers are told that time
// is over, and they are made when release is called.
type lateKV struct {
	clientv3.KV
	holding bool
	held    []func() error
}

func (k *lateKV) Txn(ctx context.Context) clientv3.Txn {
	if k.holding {
		ctx = context.Background()
	}
	return &lateTxn{k, k.KV.Txn(ctx)}
}

func (k *lateKV) release() (err error) {
	for _, make := range k.held {
		err = errors.Join(err, make())
	}
	k.held = nil
	return err
}

type lateTxn struct {
	kv *lateKV
	clientv3.Txn
}

func (t *lateTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *lateTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *lateTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *lateTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.kv.holding {
		return t.Txn.Commit()
	}
	t.kv.held = append(t.kv.held, func() error { _, err := t.Txn.Commit(); return err })
	return nil, context.DeadlineExceeded
}

// TestLateSettle: a write that was given up, and that a server makes when others have
// been made since, does not bring the record back: a node that waits for this one would
// take what it serves by now.
func TestLateSettle(t *testing.T) {
	client := start(t)
	kv := &lateKV{KV: client.KV}
	client.KV = kv
	s := store(t, client)
	plane := shardtest.New(t, "a", "b")
	first, second := plane.Topology().Ref(), plane.Assign("k", "a").Ref()
	l, err := s.Take(t.Context(), "a", 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	kv.holding = true
	if err := l.Settle(t.Context(), first); err == nil {
		t.Fatal("a write that is held back was made")
	}
	kv.holding = false
	settle := func(ref topology.Ref) {
		t.Helper()
		if err := l.Settle(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	settle(first)
	settle(second)
	if err := kv.release(); err != nil {
		t.Fatal(err)
	}
	if all, _, err := l.Records(t.Context()); err != nil || len(all) != 1 || all[0] != (owner.Record{ID: "a", Settled: second}) {
		t.Errorf("%+v, %v", all, err)
	}
	// Made late and before the next: that goes on top of it.
	kv.holding = true
	_ = l.Settle(t.Context(), first)
	_ = l.Settle(t.Context(), second)
	kv.holding = false
	if err := kv.release(); err != nil {
		t.Fatal(err)
	}
	settle(second)
	settle(first)
	if all, _, err := l.Records(t.Context()); err != nil || len(all) != 1 || all[0].Settled != first {
		t.Errorf("%+v, %v", all, err)
	}
}
