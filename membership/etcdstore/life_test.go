package etcdstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/membership/storetest"
	"github.com/shardd/shardd/topology"
)

func open(t *testing.T, endpoint string, o etcdstore.Options) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.New(dial(t, endpoint), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func one(cluster string) topology.Declared {
	return topology.Declared{Cluster: cluster, Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: []topology.Node{{ID: "a", Weight: 1}}}
}

// TestLeaderDies: a leader whose process is gone without a word is replaced
// when its lease ends, and what it still sends is refused.
func TestLeaderDies(t *testing.T) {
	t.Parallel()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint(), "http://"))
	a, b := open(t, proxy.Addr, etcdstore.Options{TTL: time.Second}), open(t, server.Endpoint(), etcdstore.Options{TTL: time.Second, Poll: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := a.Create(ctx, one("c"), "", ""); err != nil {
		t.Fatal(err)
	}
	first, err := a.Campaign(ctx, "c", "a")
	if err != nil {
		t.Fatal(err)
	}
	state, err := a.Open("c").Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	late := storetest.Next(t, state)
	proxy.Cut(true)
	second, err := b.Campaign(ctx, "c", "b")
	if err != nil {
		t.Fatal(err)
	}
	<-first.Done() // it notices by itself, though it reaches nobody
	proxy.Cut(false)
	if err := a.Open("c").Publish(ctx, first, late); !errors.Is(err, membership.ErrNotLeader) {
		t.Errorf("the dead leader publishes: %v", err)
	}
	if err := b.Open("c").Publish(ctx, second, late); err != nil {
		t.Errorf("its successor: %v", err)
	}
	_ = first.Resign(ctx)
	if err := second.Resign(ctx); err != nil {
		t.Error(err)
	}
}

// TestRestart: etcd is killed and comes back; watches, controllers
// and edits go on.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	s := open(t, server.Endpoint, etcdstore.Options{TTL: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	if _, err := s.Create(ctx, one("c"), "", ""); err != nil {
		t.Fatal(err)
	}
	controller, err := membership.NewController(membership.ControllerConfig{Store: s.Open("c"), Elector: s, Cluster: "c", ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- controller.Run(running) }()
	applied := make(chan uint64, 1000)
	go func() {
		ended <- s.Open("c").Watch(running, func(s membership.State) error { applied <- s.Applied; return nil })
	}()
	for want := range uint64(3) {
		if want > 0 {
			server.Stop(t)
			if _, err := s.Open("c").Load(shortly(t, ctx)); !errors.Is(err, membership.ErrUnreachable) {
				t.Errorf("Load while etcd is away: %v", err)
			}
			server.Run(t)
			if _, err := s.Open("c").Declare(ctx, membership.SetWeight("a", uint32(want)+1)); err != nil {
				t.Fatal(err)
			}
		}
		for got := range applied {
			if got == want+1 {
				break
			}
		}
	}
	stop()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func shortly(t *testing.T, ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// TestUnreachable: start-up without etcd ends with an error that names the
// endpoint.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	addr := etcdtest.FreeAddr(t)
	s := open(t, addr, etcdstore.Options{CallTimeout: 300 * time.Millisecond})
	_, err := s.List(t.Context())
	if !errors.Is(err, membership.ErrUnreachable) || !strings.Contains(err.Error(), addr) {
		t.Errorf("List: %v", err)
	}
	if _, err := etcdstore.New(nil, etcdstore.Options{Prefix: "x"}); !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("a bad prefix: %v", err)
	}
}
