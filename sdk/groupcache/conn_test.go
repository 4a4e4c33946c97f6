package groupcache_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/groupcache"
	pb "github.com/golang/groupcache/groupcachepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	shardgroupcache "github.com/shardd/shardd/sdk/groupcache"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// remote is a peer that counts connections, and answers every key with its own name.
type remote struct {
	*httptest.Server
	id           string
	open, opened atomic.Int64
	peak         atomic.Int64
	heads, gets  atomic.Int64
	block        chan struct{} // nil = answer at once
}

func newRemote(t *testing.T, id string, block chan struct{}) *remote {
	t.Helper()
	r := &remote{id: id, block: block}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodHead {
			r.heads.Add(1)
			return
		}
		r.gets.Add(1)
		if r.block != nil {
			select {
			case <-r.block:
			case <-req.Context().Done():
			}
		}
		body, err := proto.Marshal(protoadapt.MessageV2Of(&pb.GetResponse{Value: []byte(id)}))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	r.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			r.opened.Add(1)
			r.peak.Store(max(r.peak.Load(), r.open.Add(1))) // one goroutine accepts
		case http.StateClosed, http.StateHijacked:
			r.open.Add(-1)
		}
	}
	r.Start()
	t.Cleanup(r.Close)
	return r
}

func (r *remote) node() topology.Node {
	return topology.Node{ID: r.id, Addr: r.Listener.Addr().String(), Weight: 1}
}

// follow returns the peers that are told of these nodes, seen from node "self".
func follow(t *testing.T, cfg shardgroupcache.Config, all ...*remote) (*shardgroupcache.Peers, *shardtest.Plane) {
	t.Helper()
	var nodes []topology.Node
	for _, r := range all {
		nodes = append(nodes, r.node())
	}
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots}, Nodes: nodes})
	cfg.Self = "self"
	p := shardgroupcache.New(plane.Client(), cfg)
	t.Cleanup(p.Close)
	return p, plane
}

func ask(t *testing.T, p *shardgroupcache.Peers, key string) (string, error) {
	t.Helper()
	peer, ok := p.PickPeer(key)
	if !ok {
		t.Fatalf("%s: no peer", key)
	}
	out, group := new(pb.GetResponse), "g"
	err := peer.Get(t.Context(), &pb.GetRequest{Group: &group, Key: &key}, out)
	return string(out.Value), err
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(8 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 8 s", what)
		}
	}
}

// TestWarmUp: connections are open before the first request, as many as are wanted; to
// this node itself there are none.
func TestWarmUp(t *testing.T) {
	f := func(cfg shardgroupcache.Config, want int64) {
		t.Helper()
		a, self := newRemote(t, "a", nil), newRemote(t, "self", nil)
		p, plane := follow(t, cfg, a, self)
		plane.Assign("k", "a")
		until(t, "warm-up", func() bool { return a.heads.Load() >= want })
		if got, err := ask(t, p, "k"); err != nil || got != "a" {
			t.Fatal(got, err)
		}
		if h, o := a.heads.Load(), a.opened.Load(); h != want || o > max(1, want) || o < 1 {
			t.Errorf("%+v: %d warm-ups, %d connections, want %d", cfg, h, o, want)
		}
		if n := self.opened.Load(); n != 0 {
			t.Errorf("%d connections to itself", n)
		}
	}
	f(shardgroupcache.Config{}, 1)
	f(shardgroupcache.Config{WarmUp: 4}, 4)
	f(shardgroupcache.Config{WarmUp: -1}, 0)
}

// TestWarmUpAnswer: a peer of this package knows what a HEAD of its path is for.
func TestWarmUpAnswer(t *testing.T) {
	plane := shardtest.New(t, "a")
	p := shardgroupcache.New(plane.Client(), shardgroupcache.Config{Self: "a", Group: func(string) *groupcache.Group { return nil }})
	defer p.Close()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/_groupcache/", nil))
	if w.Code != http.StatusNoContent {
		t.Error(w.Code)
	}
}

// TestLimits: connections are replaced after as many requests, or so much time, as they
// may have, and there are not more than there may be.
func TestLimits(t *testing.T) {
	f := func(cfg shardgroupcache.Config, requests int, want int64) {
		t.Helper()
		a := newRemote(t, "a", nil)
		cfg.WarmUp = -1
		p, _ := follow(t, cfg, a)
		for i := range requests {
			if got, err := ask(t, p, fmt.Sprint(i)); err != nil || got != "a" {
				t.Fatal(got, err)
			}
		}
		if n := a.opened.Load(); n != want {
			t.Errorf("%+v: %d connections for %d requests, want %d", cfg, n, requests, want)
		}
	}
	f(shardgroupcache.Config{MaxRequests: 5}, 30, 6)
	f(shardgroupcache.Config{MaxAge: time.Nanosecond}, 7, 7)
	f(shardgroupcache.Config{}, 30, 1)

	block := make(chan struct{})
	a := newRemote(t, "a", block)
	p, _ := follow(t, shardgroupcache.Config{MaxConns: 3}, a)
	var users sync.WaitGroup
	for i := range 12 {
		users.Go(func() {
			if _, err := ask(t, p, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "all connections busy", func() bool { return a.gets.Load() == 3 })
	close(block)
	users.Wait()
	if n := a.peak.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// TestLeft: connections to a peer that left are closed: idle ones at once, one with a
// request after it, or when the grace is over.
func TestLeft(t *testing.T) {
	idle := newRemote(t, "idle", nil)
	stays := newRemote(t, "stays", nil)
	_, plane := follow(t, shardgroupcache.Config{WarmUp: 3}, idle, stays)
	until(t, "warm-up", func() bool { return idle.heads.Load() == 3 && stays.heads.Load() == 3 })
	plane.Remove("idle")
	until(t, "closing", func() bool { return idle.open.Load() == 0 })
	if stays.open.Load() == 0 {
		t.Error("those of the other node were closed")
	}

	busy := func(grace time.Duration, during func(r *remote, block chan struct{}), fails bool) {
		t.Helper()
		block := make(chan struct{})
		r := newRemote(t, "r", block)
		p, plane := follow(t, shardgroupcache.Config{Grace: grace}, r, newRemote(t, "other", nil))
		plane.Assign("k", "r")
		ended := make(chan error, 1)
		go func() { _, err := ask(t, p, "k"); ended <- err }()
		until(t, "a request", func() bool { return r.gets.Load() == 1 })
		plane.Remove("r")
		during(r, block)
		select {
		case err := <-ended:
			if (err != nil) != fails {
				t.Errorf("grace %v: %v", grace, err)
			}
		case <-time.After(5 * time.Second): // half of its timeout
			t.Fatalf("grace %v: the request goes on", grace)
		}
		until(t, "closing", func() bool { return r.open.Load() == 0 })
	}
	busy(time.Minute, func(r *remote, block chan struct{}) {
		if r.open.Load() == 0 {
			t.Error("cut at once")
		}
		close(block)
	}, false)
	busy(20*time.Millisecond, func(*remote, chan struct{}) {}, true)
}

// TestClosed: Close lets a request end, and leaves no connection.
func TestClosed(t *testing.T) {
	block := make(chan struct{})
	r := newRemote(t, "r", block)
	p, _ := follow(t, shardgroupcache.Config{}, r)
	ended := make(chan error, 1)
	go func() { _, err := ask(t, p, "k"); ended <- err }()
	until(t, "a request", func() bool { return r.gets.Load() == 1 })
	p.Close()
	close(block)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	until(t, "closing", func() bool { return r.open.Load() == 0 })
	if _, err := ask(t, p, "k"); err == nil {
		t.Error("a request after Close")
	}
}
