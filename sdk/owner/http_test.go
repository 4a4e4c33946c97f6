package owner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/httplb"
	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/sdk/owner/memlease"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// TestGuardOverHTTP: sharded servers over real HTTP: a client whose source is silent
// converges by one answer, and requests only ever reach the owner.
func TestGuardOverHTTP(t *testing.T) {
	store := memlease.New()
	var nodes []topology.Node
	handlers := map[string]*http.Handler{}
	for _, id := range []string{"a", "b"} {
		var h http.Handler
		handlers[id] = &h
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
		defer srv.Close()
		nodes = append(nodes, topology.Node{ID: id, Addr: srv.Listener.Addr().String(), Weight: 1})
	}
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots}, Nodes: nodes})
	plane.Assign("/k", "a")
	served := make(chan string, 100)
	owners := map[string]*owner.Owner{}
	for _, n := range nodes {
		client := plane.Client()
		o, err := owner.New(client, store, owner.Config{ID: n.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		owners[n.ID] = o
		past := converge.Remember(client)
		defer past.Close()
		g := &owner.Guard{Owner: o, Past: past, Wait: 5 * time.Second}
		*handlers[n.ID] = g.Middleware(func(r *http.Request) string { return r.URL.Path }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, ok := owner.ClaimFrom(r.Context())
			if !ok || c.Fence == 0 {
				t.Error("no claim")
			}
			served <- n.ID
			fmt.Fprint(w, n.ID)
		}))
	}
	src := converge.New(&firstOnly{Plane: plane})
	client, err := sdk.New(src)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr := httplb.New(client, httplb.Config{Key: httplb.KeyPath(), Converge: src})
	defer tr.Close()
	web := http.Client{Transport: tr}
	get := func(want string) {
		t.Helper()
		resp, err := web.Get("http://svc/k")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || string(b) != want {
			t.Fatalf("%d %s, %v", resp.StatusCode, b, err)
		}
	}
	get("a")
	plane.Assign("/k", "b") // the client's source says nothing of it
	for _, err := owners["a"].Owns("/k"); err == nil; _, err = owners["a"].Owns("/k") {
		time.Sleep(time.Millisecond) // a goes over in a moment of its own
	}
	get("b")
	if client.Topology().Ref() != plane.Topology().Ref() {
		t.Errorf("the client is on %v", client.Topology().Version())
	}
	plain, err := http.Get("http://" + nodes[0].Addr + "/k") // without a word about its version
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("status %d", plain.StatusCode)
	}
	if len(served) != 2 {
		t.Errorf("served %d times", len(served))
	}
	http.DefaultClient.CloseIdleConnections()
}

// firstOnly is a source that brings one topology and then says nothing.
type firstOnly struct{ *shardtest.Plane }

func (f *firstOnly) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	if err := fn(f.Topology()); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestGuardWaits: a node that is behind its client waits for its version, and says so
// if that does not come.
func TestGuardWaits(t *testing.T) {
	plane, store := shardtest.New(t, "a", "b"), memlease.New()
	plane.Assign("k", "a")
	o := start(t, plane, store, owner.Config{ID: "b"})
	g := &owner.Guard{Owner: o, Wait: 50 * time.Millisecond}
	for _, err := o.Owns("k"); !errors.Is(err, owner.ErrNotOwner); _, err = o.Owns("k") {
		time.Sleep(time.Millisecond)
	}
	release := plane.Hold()
	next := plane.Assign("k", "b")
	if v := g.Judge(t.Context(), "k", converge.Present(next)); !v.Retry || !errors.Is(v.Err, owner.ErrNotOwner) {
		t.Errorf("%+v", v)
	}
	g.Wait = 10 * time.Second
	time.AfterFunc(20*time.Millisecond, release)
	if v := g.Judge(t.Context(), "k", converge.Present(next)); v.Err != nil {
		t.Errorf("%+v", v)
	}
	if v := g.Judge(t.Context(), "k", "nonsense"); v.Err != nil {
		t.Errorf("%+v", v)
	}
}
