package etcdsource_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/etcdkv"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/membership/storetest"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/etcdsource"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an etcd with one cluster "c" of five nodes.
type world struct {
	t      testing.TB
	client *clientv3.Client
	store  membership.ClusterStore
	l      membership.Leadership
	keys   etcdkv.Keys
}

func start(t testing.TB) *embedetcd.Server {
	t.Helper()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

func newWorld(t testing.TB, client *clientv3.Client) *world {
	t.Helper()
	dir, err := etcdstore.New(client, etcdstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Maglev, TableSize: 251}}
	for i := range 5 {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprint("n", i), Weight: 1})
	}
	if _, err := dir.Create(t.Context(), d, "test", ""); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: client, store: dir.Open("c")}
	if w.l, err = dir.Campaign(t.Context(), "c", "test"); err != nil {
		t.Fatal(err)
	}
	if w.keys, err = etcdkv.NewKeys("", "c"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) publish() *topology.Topology {
	w.t.Helper()
	s, err := w.store.Load(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	p := storetest.Next(w.t, s)
	if err := w.store.Publish(w.t.Context(), w.l, p); err != nil {
		w.t.Fatal(err)
	}
	return p.Next
}

func (w *world) declare(e membership.Edit) {
	w.t.Helper()
	if _, err := w.store.Declare(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
}

// weight publishes one more version.
func (w *world) weight(n uint32) *topology.Topology {
	w.t.Helper()
	w.declare(membership.SetWeight("n0", n))
	return w.publish()
}

func (w *world) put(key, value string) {
	w.t.Helper()
	if _, err := w.client.Put(w.t.Context(), key, value); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(key string) string {
	w.t.Helper()
	r, err := w.client.Get(w.t.Context(), key)
	if err != nil || len(r.Kvs) != 1 {
		w.t.Fatalf("%s: %v", key, err)
	}
	return string(r.Kvs[0].Value)
}

// follower is a running Watch.
type follower struct {
	t      testing.TB
	got    chan *topology.Topology // nil = confirmed
	cancel context.CancelFunc
	done   chan error
	mu     sync.Mutex
	errs   []error
}

func follow(t testing.TB, c etcdsource.Config, have topology.Ref, fn func(*topology.Topology) error) *follower {
	t.Helper()
	c.Cluster = "c"
	if c.Poll == 0 {
		c.Poll = 50 * time.Millisecond
	}
	source, err := etcdsource.New(c)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{t: t, got: make(chan *topology.Topology, 1000), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(sdk.WithReport(t.Context(), func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errs = append(f.errs, err)
	}))
	f.cancel = cancel
	go func() {
		f.done <- source.Watch(ctx, have, func(t *topology.Topology) error {
			if fn != nil && t != nil {
				if err := fn(t); err != nil {
					return err
				}
			}
			f.got <- t
			return nil
		})
	}()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *follower) stop() {
	f.cancel()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		f.t.Errorf("Watch returned %v", err)
	}
	f.done <- context.Canceled // for the clean-up
}

// next returns the next topology that is delivered.
func (f *follower) next() *topology.Topology {
	f.t.Helper()
	timeout := time.NewTimer(15 * time.Second)
	defer timeout.Stop()
	for {
		select {
		case t := <-f.got:
			if t != nil {
				return t
			}
		case <-timeout.C:
			f.t.Fatalf("nothing delivered; problems: %v", f.problems())
		}
	}
}

func (f *follower) want(want *topology.Topology) {
	f.t.Helper()
	if got := f.next(); !got.Equal(want) || !got.Complete() {
		f.t.Fatalf("got %s, want %s", got.Ref(), want.Ref())
	}
}

// confirmed waits for a confirmation and fails if a topology comes before it.
func (f *follower) confirmed() {
	f.t.Helper()
	for range 2 { // the first may have been on its way already
		if t := <-f.got; t != nil {
			f.t.Fatalf("got %s, want a confirmation", t.Ref())
		}
	}
}

func (f *follower) problems() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error(nil), f.errs...)
}

// problem waits until one is reported that is target and says text.
func (f *follower) problem(target error, text string) {
	f.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for time.Now().Before(deadline) {
		for _, err := range f.problems() {
			if (target == nil || errors.Is(err, target)) && strings.Contains(err.Error(), text) {
				return
			}
		}
		time.Sleep(2 * time.Millisecond) // a real etcd: no bubble of time
	}
	f.t.Fatalf("no problem %v with %q among %v", target, text, f.problems())
}

// forget drops the problems reported so far.
func (f *follower) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = nil
}

// silent fails if anything is delivered while the problems go on.
func (f *follower) silent() {
	f.t.Helper()
	select {
	case t := <-f.got:
		if t != nil {
			f.t.Fatalf("delivered %s", t.Ref())
		}
		f.t.Fatal("confirmed what is not confirmed")
	default:
	}
}
