package etcdkv_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/shardd/shardd/internal/etcdkv"
)

// TestLimits: 128 operations and 1.5 MiB pass; one more, or 1.6 MB, is refused
// by shardd, with size and limit, before anything is sent.
func TestLimits(t *testing.T) {
	server := start(t)
	c := etcdkv.New(server.Client(), etcdkv.Options{})
	puts := func(n, size int) etcdkv.Txn {
		var txn etcdkv.Txn
		for i := range n {
			txn.Puts = append(txn.Puts, etcdkv.Put{Key: fmt.Sprint("k", i), Value: make([]byte, size)})
		}
		return txn
	}
	for _, c2 := range []struct {
		n, size int
		says    string // "" = passes
	}{
		{128, 10, ""}, {129, 10, "129 operations in one transaction, over the limit of 128"},
		{1, 1_500_000, ""}, {1, 1_600_000, "over the limit of 1572864"}, {2, 786_000, ""}, {2, 800_000, "over the limit of 1572864"},
	} {
		rev, err := c.Commit(t.Context(), puts(c2.n, c2.size))
		switch {
		case c2.says == "" && (err != nil || rev == 0):
			t.Errorf("%d of %d bytes: %v", c2.n, c2.size, err)
		case c2.says != "" && (!errors.Is(err, etcdkv.ErrTooLarge) || !strings.Contains(err.Error(), c2.says)):
			t.Errorf("%d of %d bytes: %v", c2.n, c2.size, err)
		}
	}
	// What is just under our limit is under etcd's.
	size := etcdkv.MaxRequest - 60
	if _, err := c.Commit(t.Context(), puts(1, size)); err != nil {
		t.Errorf("%d bytes: %v", size, err)
	}
}

func TestCommitCompares(t *testing.T) {
	server := start(t)
	c := etcdkv.New(server.Client(), etcdkv.Options{})
	put := func(key string, rev int64) (int64, error) {
		return c.Commit(t.Context(), etcdkv.Txn{If: []etcdkv.Compare{{Key: key, Revision: rev}}, Puts: []etcdkv.Put{{Key: key, Value: []byte("v")}}})
	}
	first, err := put("k", 0)
	if err != nil {
		t.Fatal(err)
	}
	wantCompare := func(err error, key, says string) {
		t.Helper()
		var compare *etcdkv.CompareError
		if !errors.Is(err, etcdkv.ErrConflict) || !errors.As(err, &compare) || compare.Key != key || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want a conflict at %s that says %q", err, key, says)
		}
	}
	_, err = put("k", 0)
	wantCompare(err, "k", "is there already")
	_, err = put("gone", 17)
	wantCompare(err, "gone", "is gone")
	if _, err = put("k", first); err != nil {
		t.Fatal(err)
	}
	_, err = put("k", first)
	wantCompare(err, "k", "was written")
	_, err = c.Commit(t.Context(), etcdkv.Txn{If: []etcdkv.Compare{{Key: "other"}, {Key: "k", Revision: first, Created: true}}, Deletes: []etcdkv.Range{{Key: "k"}}})
	if err != nil {
		t.Errorf("the creation revision stays: %v", err)
	}
}

// lossy makes transactions and then loses the first answers.
type lossy struct {
	clientv3.KV
	lose atomic.Int32
}

func (l *lossy) Txn(ctx context.Context) clientv3.Txn { return &lossyTxn{l.KV.Txn(ctx), l} }

type lossyTxn struct {
	clientv3.Txn
	l *lossy
}

func (t *lossyTxn) If(c ...clientv3.Cmp) clientv3.Txn {
	return &lossyTxn{t.Txn.If(c...), t.l}
}
func (t *lossyTxn) Then(o ...clientv3.Op) clientv3.Txn {
	return &lossyTxn{t.Txn.Then(o...), t.l}
}
func (t *lossyTxn) Else(o ...clientv3.Op) clientv3.Txn {
	return &lossyTxn{t.Txn.Else(o...), t.l}
}

func (t *lossyTxn) Commit() (*clientv3.TxnResponse, error) {
	resp, err := t.Txn.Commit()
	if err == nil && t.l.lose.Add(-1) >= 0 {
		return nil, status.Error(codes.Unavailable, "the answer is lost")
	}
	return resp, err
}

// TestCommitLostAnswer: a transaction whose answer is lost is made once, and
// found to have been made.
func TestCommitLostAnswer(t *testing.T) {
	server := start(t)
	kv := &lossy{KV: server.Client().KV}
	c := etcdkv.NewWith(kv, nil, etcdkv.Options{})
	txn := func(value string, rev int64, confirm string) etcdkv.Txn {
		return etcdkv.Txn{If: []etcdkv.Compare{{Key: "fence"}, {Key: "k", Revision: rev}}, Puts: []etcdkv.Put{{Key: "k", Value: []byte(value)}}, Confirm: confirm}
	}
	kv.lose.Store(2)
	rev, err := c.Commit(t.Context(), txn("one", 0, "k"))
	if err != nil {
		t.Fatalf("a transaction that was made is reported as failed: %v", err)
	}
	r, err := c.Get(t.Context(), etcdkv.Range{Key: "k"})
	if err != nil || r.First(0).ModRevision != rev || r.First(0).CreateRevision != rev {
		t.Errorf("revision %d, the store has %+v: made more than once", rev, r.First(0))
	}
	kv.lose.Store(1)
	if _, err := c.Commit(t.Context(), txn("two", rev, "")); !errors.Is(err, etcdkv.ErrConflict) {
		t.Errorf("without Confirm the outcome is a conflict, got %v", err)
	}
	kv.lose.Store(0)
	if _, err := c.Commit(t.Context(), txn("three", rev, "k")); !errors.Is(err, etcdkv.ErrConflict) {
		t.Errorf("another's write is taken for our own: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	client, err := etcdkv.Dial(etcdkv.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := etcdkv.New(client, etcdkv.Options{CallTimeout: 300 * time.Millisecond})
	_, err = c.Get(t.Context(), etcdkv.Range{Key: "k"})
	if !errors.Is(err, etcdkv.ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Get: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = c.Get(ctx, etcdkv.Range{Key: "k"}); !errors.Is(err, etcdkv.ErrUnreachable) {
		t.Errorf("with a deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err = c.Get(ctx, etcdkv.Range{Key: "k"}); !errors.Is(err, context.Canceled) || errors.Is(err, etcdkv.ErrUnreachable) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := etcdkv.Dial(etcdkv.Config{}); err == nil {
		t.Error("no endpoints are accepted")
	}
}
