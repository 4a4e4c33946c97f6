package etcdlease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/sdk/owner/etcdlease"
	"github.com/shardd/shardd/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *clientv3.Client {
	t.Helper()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server.Client()
}

func store(t *testing.T, c *clientv3.Client) *etcdlease.Store {
	t.Helper()
	s, err := etcdlease.New(c, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLease goes through a lease's life on a real etcd.
func TestLease(t *testing.T) {
	client := start(t)
	s := store(t, client)
	ctx := t.Context()
	a, err := s.Take(ctx, "a", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(ctx, "a", 5*time.Second); !errors.Is(err, owner.ErrTaken) {
		t.Errorf("taken twice: %v", err)
	}
	b, err := s.Take(ctx, "b", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ref := shardtest.New(t, "a", "b").Topology().Ref()
	if err := b.Settle(ctx, ref); err != nil {
		t.Fatal(err)
	}
	all, first, err := a.Records(ctx)
	if err != nil || len(all) != 2 || !all[0].Settled.IsZero() || all[1] != (owner.Record{ID: "b", Settled: ref}) {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := errors.Join(a.Settle(ctx, ref), a.Renew(ctx), b.End(ctx)); err != nil {
		t.Fatal(err)
	}
	all, second, err := a.Records(ctx)
	if err != nil || len(all) != 1 || second <= first {
		t.Errorf("%+v at %d after %d, %v", all, second, first, err)
	}
	for what, err := range map[string]error{"settle": b.Settle(ctx, ref), "renew": b.Renew(ctx), "end": b.End(ctx)} {
		if !errors.Is(err, owner.ErrLost) {
			t.Errorf("%s after the end: %v", what, err)
		}
	}
	if _, _, err := b.Records(ctx); !errors.Is(err, owner.ErrLost) {
		t.Errorf("records after the end: %v", err)
	}
	// Another one has the id: the first lease is not his.
	if _, err := s.Take(ctx, "b", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := b.Settle(ctx, ref); !errors.Is(err, owner.ErrLost) {
		t.Errorf("settle on another's: %v", err)
	}
	if _, err := s.Take(ctx, "a/b", time.Second); err == nil {
		t.Error("a bad id was taken")
	}
	if _, err := etcdlease.New(client, "", "no/cluster"); err == nil {
		t.Error("a bad cluster was taken")
	}
}

// TestHandOver: keys change hands by etcd, quickly where both follow, and after the
// lease where one has died.
func TestHandOver(t *testing.T) {
	client := start(t)
	plane := shardtest.New(t, "a", "b")
	plane.Assign("k", "a")
	owners := map[string]*owner.Owner{}
	for _, id := range []string{"a", "b"} {
		o, err := owner.New(plane.Client(), store(t, client), owner.Config{ID: id, TTL: 2 * time.Second, Poll: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		owners[id] = o
	}
	last := uint64(0)
	at := func(id string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			c, err := owners[id].Owns("k")
			if err == nil {
				if c.Fence <= last {
					t.Errorf("fence %d after %d", c.Fence, last)
				}
				last = c.Fence
				return
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%s: %v", id, err)
			}
		}
	}
	at("a")
	for range 5 {
		plane.Assign("k", "b")
		at("b")
		plane.Assign("k", "a")
		at("a")
	}
	owners["a"].Close()
	plane.Assign("k", "b")
	at("b")
}

func Example() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	leases, err := etcdlease.New(client, "", "cache")
	fmt.Println(leases != nil, err) // for owner.New
	// Output: true <nil>
}
