//go:build linux

package faults

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/sdk/etcdsource"
	"github.com/shardd/shardd/topology"
)

// storm is how long TestWatch01 compacts: 30 s as the case has it where services
// are required (CI), a few seconds elsewhere.
func storm() time.Duration {
	if os.Getenv("SHARDD_REQUIRE_SERVICES") == "1" {
		return 30 * time.Second
	}
	return 4 * time.Second
}

// TestWatch01 is field case watch-01 with a real etcd: it is compacted at its
// newest revision every second under a hundred edits a second, while one of the
// clients is cut off again and again; a node is removed in a compacted interval.
// In the end every client holds what the store has, and has only gone forward.
func TestWatch01(t *testing.T) {
	t.Parallel()
	requireEtcd(t)
	server := etcdtest.Start(t)
	client, err := etcdstore.Dial(etcdstore.Config{Endpoints: []string{server.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	store, err := etcdstore.New(client, etcdstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := topology.Declared{Cluster: cluster, Spec: topology.Spec{Algorithm: topology.Slots}}
	for i := range 6 {
		d.Nodes = append(d.Nodes, topology.Node{ID: node(i), Weight: 100})
	}
	if _, err := store.Create(t.Context(), d, "", ""); err != nil {
		t.Fatal(err)
	}
	lead(t, store)
	e := &env{}
	proxy := etcdtest.NewProxy(t, strings.TrimPrefix(server.Endpoint, "http://"))
	for _, addr := range []string{server.Endpoint, proxy.Addr} {
		s, err := etcdsource.New(etcdsource.Config{Cluster: cluster, Endpoints: []string{addr}})
		e.clients = append(e.clients, e.follow(t, "client of "+addr, s, err))
	}
	cut := func(n int) { proxy.Cut(n%3 == 1) }
	edits := stormed(t, store, func(n int) {
		cut(n)
		got, err := client.Get(t.Context(), "x")
		if err == nil {
			_, err = client.Compact(t.Context(), got.Header.Revision)
		}
		if err != nil {
			t.Errorf("compact: %v", err)
		}
	})
	proxy.Cut(true)
	_, err = store.Open(cluster).Declare(t.Context(), membership.RemoveNode(node(5)))
	if err != nil {
		t.Fatal(err)
	}
	var head topology.Ref
	eventually(t, "the last edit is published", time.Minute, func() bool {
		s, err := store.Open(cluster).Load(t.Context())
		head = s.Position().Head
		return err == nil && s.Applied == s.Generation
	})
	if got, err := client.Get(t.Context(), "x"); err != nil {
		t.Fatal(err)
	} else if _, err = client.Compact(t.Context(), got.Header.Revision); err != nil {
		t.Fatal(err)
	}
	proxy.Cut(false)
	t0 := time.Now()
	for _, c := range e.clients {
		eventually(t, c.name+" holds "+head.String(), time.Minute, func() bool { return c.sdk.Topology().Ref() == head })
		if c.sdk.Topology().Index(node(5)) >= 0 {
			t.Errorf("%s still has the removed node", c.name)
		}
	}
	t.Logf("%d edits, head %s, caught up after %s", edits, head, time.Since(t0).Round(time.Millisecond))
	digests := map[topology.Ref]topology.Digest{}
	for _, c := range e.clients {
		c.check(t, digests)
	}
}

// lead runs a controller until the test ends.
func lead(t *testing.T, store *etcdstore.Store) {
	t.Helper()
	c, err := membership.NewController(membership.ControllerConfig{Store: store.Open(cluster), Elector: store, Cluster: cluster, ID: "leader"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// stormed edits a hundred times a second, and calls each every second, for the
// time of the storm. It returns the number of edits.
func stormed(t *testing.T, store *etcdstore.Store, each func(n int)) (edits int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), storm())
	defer cancel()
	var editing sync.WaitGroup
	var mu sync.Mutex
	for editor := range 5 {
		editing.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			c := store.Open(cluster)
			for n := uint32(0); ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if _, err := c.Declare(t.Context(), membership.SetWeight(node(editor), 100+n%50)); err != nil {
					t.Errorf("edit: %v", err)
					return
				}
				mu.Lock()
				edits++
				mu.Unlock()
			}
		})
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			each(n)
			continue
		case <-ctx.Done():
		}
		break
	}
	editing.Wait()
	return edits
}
