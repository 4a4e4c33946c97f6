package groupcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/groupcache"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	shardgroupcache "github.com/shardd/shardd/sdk/groupcache"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// pickers are the peers of each group; groupcache's registry is the process's.
var pickers sync.Map

func TestMain(m *testing.M) {
	groupcache.RegisterPerGroupPeerPicker(func(name string) groupcache.PeerPicker {
		p, _ := pickers.Load(name)
		return p.(groupcache.PeerPicker)
	})
	goleak.VerifyTestMain(m)
}

// node is one peer: a real HTTP server and a group that counts its loads. In this one
// process each node's group has a name of its own.
type node struct {
	id     string
	group  *groupcache.Group
	server *httptest.Server
	loads  atomic.Int64
	peers  atomic.Pointer[shardgroupcache.Peers]
}

func start(t *testing.T, ids ...string) ([]*node, *shardtest.Plane) {
	t.Helper()
	var all []*node
	var list []topology.Node
	for _, id := range ids {
		n := &node{id: id}
		n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p := n.peers.Load(); p != nil { // else the first ones warm up already
				p.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(n.server.Close)
		all = append(all, n)
		list = append(list, topology.Node{ID: id, Addr: n.server.Listener.Addr().String(), Weight: 1})
	}
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots}, Nodes: list})
	for _, n := range all {
		n.follow(t, plane.Client())
	}
	return all, plane
}

func (n *node) follow(t *testing.T, client *sdk.Client) {
	name := t.Name() + "-" + n.server.Listener.Addr().String() // groups are never unregistered, and tests may run twice
	p := shardgroupcache.New(client, shardgroupcache.Config{Self: n.id, Timeout: 5 * time.Second,
		Group: func(asked string) *groupcache.Group {
			if !strings.HasPrefix(asked, t.Name()) {
				return nil
			}
			return n.group
		}})
	t.Cleanup(p.Close)
	n.peers.Store(p)
	pickers.Store(name, p)
	n.group = groupcache.NewGroup(name, 1<<20, groupcache.GetterFunc(func(_ context.Context, key string, dest groupcache.Sink) error {
		if key == "bad" {
			return errors.New("cannot be loaded")
		}
		n.loads.Add(1)
		return dest.SetString(n.id + " loaded " + key)
	}))
}

func (n *node) get(t *testing.T, key string) string {
	t.Helper()
	var v string
	if err := n.group.Get(t.Context(), key, groupcache.StringSink(&v)); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestOwnersLoad: every key is loaded once, by its owner, whoever asks.
func TestOwnersLoad(t *testing.T) {
	all, plane := start(t, "a", "b", "c")
	for i := range 40 {
		key := fmt.Sprint("key /%?", i)
		for _, n := range all {
			if got, want := n.get(t, key), plane.Owner(key)+" loaded "+key; got != want {
				t.Errorf("%s asked by %s: %q, want %q", key, n.id, got, want)
			}
		}
	}
	sum := int64(0)
	for _, n := range all {
		sum += n.loads.Load()
	}
	if sum != 40 {
		t.Errorf("%d loads for 40 keys", sum)
	}
	var v string
	if err := all[0].group.Get(t.Context(), "bad", groupcache.StringSink(&v)); err == nil {
		t.Error("an error of the loader was lost")
	}
}

// TestDisagree: peers whose topologies differ load for themselves, and do not wait for
// each other.
func TestDisagree(t *testing.T) {
	all, plane := start(t, "a", "b")
	plane.Assign("k", "b")
	began := time.Now()
	// A peer that is behind asks a.
	resp, err := http.Get(all[0].server.URL + "/_groupcache/" + t.Name() + "-x/k")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("status %d", resp.StatusCode)
	}
	all[1].server.Close() // the owner is away: the key is loaded where it is asked for
	if got := all[0].get(t, "k"); got != "a loaded k" || time.Since(began) > 4*time.Second {
		t.Errorf("%q after %v", got, time.Since(began))
	}
	for path, want := range map[string]int{"/_groupcache/": 400, "/_groupcache/other/k": 404, "/elsewhere": 400} {
		resp, err := http.Get(all[0].server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
