package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

var errEnough = errors.New("enough")

// first returns the first messages of a watch, or the error it ends with.
func (r *running) first(n int, after topology.Ref) ([]api.Message, error) {
	var got []api.Message
	err := r.api.Watch(r.t.Context(), "cache", after, 0, func(m api.Message) error {
		got = append(got, m)
		if len(got) == n {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return got, err
}

// TestProof: a watch begins with what may follow what the client holds, and
// with an error that says why where nothing may.
func TestProof(t *testing.T) {
	l := newLine(t)
	v1 := l.next(1)
	fork := l.copy()
	v2, v3 := l.next(2), l.next(3)
	fork2, fork4 := fork.next(5), func() *topology.Topology { fork.next(6); return fork.next(7) }()
	l.newEpoch()
	v21 := l.next(4)
	other := newLine(t).next(3)
	store := newFakeStore()
	store.show(v3, v2, v1)
	r := run(t, server.Config{Directory: store, Heartbeat: time.Hour}) // the first message comes at once all the same

	f := func(name string, held topology.Ref, want any) {
		t.Helper()
		got, err := r.first(1, held)
		switch want := want.(type) {
		case error:
			var e *api.Error
			if !errors.Is(err, want) || !errors.As(err, &e) || e.Status != http.StatusConflict || e.Hint == "" {
				t.Errorf("%s: %v, %v; want %v", name, got, err, want)
			}
		case api.MessageType:
			if err != nil || got[0].Type != want {
				t.Errorf("%s: %v, %v; want %v", name, got, err, want)
				return
			}
			if topo, err := got[0].Decode(); want == api.MessageFull && (err != nil || topo.Digest() != got[0].Digest) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	f("nothing held", topology.Ref{}, api.MessageFull)
	f("the newest held", v3.Ref(), api.MessageHeartbeat)
	f("an ancestor held", v1.Ref(), api.MessageFull)
	f("a fork held", fork2.Ref(), api.ErrForked)
	f("a later version of a fork held", fork4.Ref(), api.ErrOlder)
	f("another cluster's version held", other.Ref(), api.ErrCluster)
	f("a later epoch held", v21.Ref(), api.ErrOlder)
	store.show(v21)
	f("an earlier epoch held", v3.Ref(), api.MessageFull)
	f("a fork of an earlier epoch held", fork2.Ref(), api.MessageFull)

	_, err := r.first(1, other.Ref())
	if !strings.Contains(err.Error(), other.ClusterID().String()) || !strings.Contains(err.Error(), l.id.String()) {
		t.Errorf("%v does not name both clusters", err)
	}
}

// TestProofAsksOnce: a fleet that comes back with the same version costs the
// store one question, and none while it does not answer.
func TestProofAsksOnce(t *testing.T) {
	l := newLine(t)
	v1, v2, v3 := l.next(1), l.next(2), l.next(3)
	store := newFakeStore()
	store.show(v3, v2, v1)
	r := run(t, server.Config{Directory: store})
	for range 5 {
		if _, err := r.first(1, v1.Ref()); err != nil {
			t.Fatal(err)
		}
	}
	store.fail(fmt.Errorf("etcd: %w", membership.ErrUnreachable))
	for _, held := range []topology.Ref{{}, v1.Ref(), v3.Ref()} {
		if _, err := r.first(1, held); err != nil {
			t.Errorf("%s, store away: %v", held, err)
		}
	}
	if store.asked != 1 {
		t.Errorf("the store was asked %d times", store.asked)
	}
	if _, err := r.first(1, v2.Ref()); !errors.Is(err, membership.ErrUnreachable) {
		t.Errorf("unproved, store away: %v", err)
	}
}

// TestClientAhead: a client that comes from a server that is ahead waits a
// moment for this one.
func TestClientAhead(t *testing.T) {
	l := newLine(t)
	v1 := l.next(1)
	v2 := l.next(2)
	store := newFakeStore()
	store.show(v1)
	r := run(t, server.Config{Directory: store})
	if _, err := r.first(1, topology.Ref{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(100 * time.Millisecond)
		store.show(v2, v1)
	}()
	got, err := r.first(1, v2.Ref())
	if err != nil || got[0].Type != api.MessageHeartbeat || got[0].Digest != v2.Digest() {
		t.Fatalf("%v, %v", got, err)
	}
}

// TestStoreGoesBack: what does not continue the line that was served ends the
// watches, fails readiness and is shown; clients keep what they have and refuse
// the rest.
func TestStoreGoesBack(t *testing.T) {
	l := newLine(t)
	v1 := l.next(1)
	fork := l.copy()
	v2 := l.next(2)
	for name, tc := range map[string]struct {
		now  *topology.Topology
		code api.Code
		want error
		word bool // the cluster before was deleted by word
	}{
		"restored from a backup": {v1, api.CodeOlder, sdk.ErrOlder, false},
		"a copy that went on":    {func() *topology.Topology { fork.next(3); return fork.next(4) }(), api.CodeForked, sdk.ErrForked, false},
		"another store":          {newLine(t).next(5), api.CodeCluster, sdk.ErrCluster, false},
		"deleted and made anew":  {newLine(t).next(5), api.CodeCluster, sdk.ErrCluster, true},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore()
			store.show(v1)
			r := run(t, server.Config{Directory: store})
			c := follow(t, nil, r.addr)
			reaches(t, c, v1.Version())
			store.show(v2, v1)
			reaches(t, c, v2.Version())
			ended := make(chan error, 1)
			go func() {
				_, err := r.first(1000, v2.Ref())
				ended <- err
			}()
			for r.metric("shardd_watches ") != "2" {
				time.Sleep(5 * time.Millisecond)
			}
			if tc.word {
				store.deleted = []topology.ClusterID{topology.NewClusterID(), v1.ClusterID()}
			}
			store.show(tc.now)
			var e *api.Error
			if err := <-ended; !errors.As(err, &e) || e.Code != tc.code {
				t.Fatalf("the watch ended with %v", err)
			}
			resp, body := r.call("GET", "/readyz", "")
			ready := tc.code // of another store nobody can say that it went back
			if ready != api.CodeCluster {
				ready = api.CodeWentBack
			}
			if tc.word && resp.status != 200 || !tc.word && (resp.status < 400 || errorOf(t, body).Code != ready) {
				t.Errorf("ready: %d %s", resp.status, body)
			}
			if got := r.metric(`shardd_cluster_broken_lines{cluster="cache"} `); got != "1" {
				t.Errorf("broken lines: %q", got)
			}
			deadline := time.Now().Add(10 * time.Second)
			for !errors.Is(c.State().Problem, tc.want) && time.Now().Before(deadline) {
				time.Sleep(5 * time.Millisecond)
			}
			if !errors.Is(c.State().Problem, tc.want) || c.Topology().Ref() != v2.Ref() {
				t.Errorf("client: %+v", c.State())
			}
		})
	}
}

// metric returns the value of the line that begins so.
func (r *running) metric(prefix string) string {
	r.t.Helper()
	_, body := r.call("GET", "/metrics", "")
	for l := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// settles fails the test if the metric does not come to be want within 10 s.
func (r *running) settles(prefix, want string) {
	r.t.Helper()
	got := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got = r.metric(prefix); got == want {
			return
		}
	}
	r.t.Errorf("%sis %s; want %s", prefix, got, want)
}

// TestManyWatches: every one of many clients gets to the last version; one that
// takes nothing holds up nobody.
func TestManyWatches(t *testing.T) {
	const watches, versions = 100, 20
	r, _ := withStore(t)
	r.put(declared(1))
	stuck, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	fmt.Fprintf(stuck, "GET /v1/clusters/cache/watch HTTP/1.1\r\nHost: localhost\r\n\r\n") // and never reads
	var wg sync.WaitGroup
	last := topology.Version{Epoch: 1, Seq: versions}
	for range watches {
		wg.Go(func() {
			var seen topology.Version
			err := r.api.Watch(t.Context(), "cache", topology.Ref{}, 30*time.Second, func(m api.Message) error {
				if m.Type != api.MessageFull {
					return nil
				}
				if m.Version.Compare(seen) <= 0 {
					t.Errorf("version %s after %s", m.Version, seen)
				}
				if seen = m.Version; seen == last {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) {
				t.Error(err)
			}
		})
	}
	for i := 1; i < versions; i++ {
		r.node(fmt.Sprint("more-", i), api.VerbAdd, api.NodeEdit{})
	}
	wg.Wait()
}

// TestJoinTogether: nodes that join at the same moment, without If-Match, all
// get in (member-06).
func TestJoinTogether(t *testing.T) {
	const joining = 20
	r, _ := withStore(t)
	r.put(declared(1))
	var wg sync.WaitGroup
	for i := range joining {
		wg.Go(func() { r.node(fmt.Sprint("join-", i), api.VerbAdd, api.NodeEdit{}) })
	}
	wg.Wait()
	topo, _, err := r.api.Topology(t.Context(), "cache")
	if err != nil || topo.Len() != joining+1 {
		t.Fatalf("%d nodes, %v", topo.Len(), err)
	}
}

// TestShutdown: a server that stops says so to its watches, which go elsewhere.
func TestShutdown(t *testing.T) {
	store := memstore.New()
	a := run(t, server.Config{Directory: store, Elector: store, ID: "a"})
	b := run(t, server.Config{Directory: store, Elector: store, ID: "b"})
	res := a.put(declared(2))
	c := follow(t, nil, a.addr, b.addr)
	reaches(t, c, res.Version)
	ended := make(chan error, 1)
	started := make(chan struct{}, 100)
	go func() {
		ended <- a.api.Watch(context.Background(), "cache", topology.Ref{}, 0, func(api.Message) error { started <- struct{}{}; return nil })
	}()
	<-started
	start := time.Now()
	a.stop()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("stopping took %v with an open watch", took)
	}
	var e *api.Error
	if err := <-ended; !errors.As(err, &e) || e.Code != api.CodeStopping {
		t.Fatalf("the watch ended with %v", err)
	}
	next := b.node("late", api.VerbAdd, api.NodeEdit{})
	reaches(t, c, next.Version)
}

func TestMaxWatches(t *testing.T) {
	store := memstore.New()
	r := run(t, server.Config{Directory: store, Elector: store, MaxWatches: 1})
	r.put(declared(1))
	err := r.api.Watch(t.Context(), "cache", topology.Ref{}, 0, func(api.Message) error {
		resp, body := r.call("GET", "/v1/clusters/cache/watch", "")
		if resp.status != http.StatusServiceUnavailable || resp.header.Get("Retry-After") != "1" {
			t.Errorf("%d %s", resp.status, body)
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
}

// TestWatchBeforeFirstVersion: a cluster that is declared and not published yet
// can be watched.
func TestWatchBeforeFirstVersion(t *testing.T) {
	store := memstore.New()
	r := run(t, server.Config{Directory: store}) // publishes nothing
	res, err := r.api.PutSpec(t.Context(), declared(1), api.EditOptions{Wait: -1})
	if err != nil || res.Published || len(res.Warnings) != 1 || res.Warnings[0].Code != "not_published" {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, _, err := r.api.Topology(t.Context(), "cache"); !errors.Is(err, membership.ErrNoVersion) {
		t.Fatal(err)
	}
	d, tag, err := r.api.Declared(t.Context(), "cache")
	if err != nil || d.Generation != 1 || tag.Generation != 1 || len(d.Nodes) != 1 {
		t.Fatalf("%+v, %v, %v", d, tag, err)
	}
	got, err := r.first(1, topology.Ref{})
	if err != nil || got[0].Type != api.MessageHeartbeat || !got[0].Version.IsZero() {
		t.Fatalf("%v, %v", got, err)
	}
	c := follow(t, nil, r.addr)
	run(t, server.Config{Directory: store, Elector: store}) // a leader
	reaches(t, c, topology.Version{Epoch: 1, Seq: 1})
	clusters, err := r.api.Clusters(t.Context())
	want := api.Clusters{Clusters: []api.ClusterEntry{{Name: "cache", ClusterID: res.ClusterID, Version: topology.Version{Epoch: 1, Seq: 1}, Nodes: 1}}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, clusters); diff != "" {
		t.Fatal(diff)
	}
}

// TestSec04: two clusters of one name, each with its servers; a client of the
// one is never led to the other, whatever its seeds say, and a cluster that is
// wiped and built anew is another one.
func TestSec04(t *testing.T) {
	ours, theirs := memstore.New(), memstore.New()
	shardd1 := run(t, server.Config{Directory: ours, Elector: ours})
	shardd3 := run(t, server.Config{Directory: theirs, Elector: theirs})
	a, b := shardd1.put(declared(3)), shardd3.put(declared(5))

	c := follow(t, []sdk.Option{sdk.WithClusterID(a.ClusterID)}, shardd3.addr, shardd1.addr)
	reaches(t, c, a.Version)
	seen := follow(t, nil, shardd1.addr, shardd3.addr, shardd3.addr, shardd3.addr)
	if err := seen.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen.Topology().ClusterID() == b.ClusterID { // chance began with the other seed, and it was pinned
		seen = c
	}
	// The machine of shardd1 is taken over by the other cluster.
	addr := shardd1.addr
	shardd1.stop()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("the port was taken by somebody else: %v", err)
	}
	runOn(t, server.Config{Directory: theirs, Elector: theirs}, ln)
	shardd3.node("more", api.VerbAdd, api.NodeEdit{})
	for _, client := range []*sdk.Client{c, seen} {
		deadline := time.Now().Add(20 * time.Second)
		for !errors.Is(client.State().Problem, sdk.ErrCluster) && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		problem := fmt.Sprint(client.State().Problem)
		if !strings.Contains(problem, a.ClusterID.String()) || !strings.Contains(problem, b.ClusterID.String()) {
			t.Errorf("problem: %s", problem)
		}
		if r, err := client.Route("k"); err != nil || r.Topology().ClusterID() != a.ClusterID {
			t.Errorf("routes by %v, %v", r.Topology(), err)
		}
	}
}
