package etcdkv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/shardd/shardd/internal/etcdkv"
)

// halted is a lease client whose keep-alive has ended for good, as etcd's does
// after an error that it takes for final.
type halted struct{ clientv3.Lease }

func (halted) KeepAlive(context.Context, clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	return nil, clientv3.ErrKeepAliveHalted{}
}

// TestRenew: a lease lives on for longer than its time while it is renewed, and
// its loss ends the renewal, also where the client's own keep-alive has ended.
func TestRenew(t *testing.T) {
	server := start(t)
	whole := server.Client()
	broken := &clientv3.Client{KV: whole.KV, Watcher: whole.Watcher, Lease: halted{whole.Lease}}
	dialled, err := etcdkv.Dial(etcdkv.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	for name, client := range map[string]*clientv3.Client{"stream": whole, "calls": broken, "dialled": dialled} {
		t.Run(name, func(t *testing.T) {
			c := etcdkv.New(client, etcdkv.Options{})
			id, _, err := c.Grant(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			longer := time.NewTimer(2500 * time.Millisecond)
			defer longer.Stop()
			ended := make(chan error, 1)
			go func() { ended <- c.Renew(t.Context(), id, time.Second) }()
			select {
			case err := <-ended:
				t.Fatalf("Renew: %v", err)
			case <-longer.C:
			}
			if left, err := whole.TimeToLive(t.Context(), id); err != nil || left.TTL < 0 {
				t.Fatalf("the lease is gone although it is renewed: %+v %v", left, err)
			}
			if err := c.Revoke(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("after the loss: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.Renew(ctx, id, time.Second); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end of ctx: %v", err)
			}
		})
	}
}

// TestLeaseWithin: with etcd's lateness a lease ends within the time that was
// asked for, as far as whole seconds allow.
func TestLeaseWithin(t *testing.T) {
	f := func(ttl time.Duration, want int64) {
		t.Helper()
		got := etcdkv.LeaseWithin(ttl)
		if got != want {
			t.Errorf("LeaseWithin(%s) = %d, want %d", ttl, got, want)
		}
		if end := time.Duration(got)*time.Second + etcdkv.LeaseLateness; end > ttl && got > 1 {
			t.Errorf("a lease for %s ends after up to %s", ttl, end)
		}
	}
	f(0, 1)
	f(time.Second, 1)
	f(1500*time.Millisecond, 1)
	f(2*time.Second, 1)
	f(2499*time.Millisecond, 1)
	f(2500*time.Millisecond, 2)
	f(5*time.Second, 4)
	f(time.Minute, 59)
}
