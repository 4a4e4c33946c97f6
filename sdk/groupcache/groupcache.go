// Package groupcache is a peer picker of golang/groupcache: which peer loads and keeps a
// key is answered by the topology.
//
//	peers := shardgroupcache.New(client, shardgroupcache.Config{Self: "cache-a"})
//	groupcache.RegisterPeerPicker(func() groupcache.PeerPicker { return peers }) // instead of NewHTTPPool
//	http.Handle("/_groupcache/", peers)
//
// # Law
//
// A key is loaded by the node that sdk.Client.Route names. A peer answers only for keys
// that it owns itself by its own topology, and otherwise says so (421), upon which
// groupcache loads the key where it was asked for: peers whose topologies differ for a
// moment do not wait for each other in a circle, as peers with different lists do
// (golang/groupcache's load holds one flight a key). A peer that does not answer holds
// a load up for Config.Timeout at most.
//
// # Cost
//
// One lookup a key that is not in the local cache. Connections are kept for each node:
// opened before they are needed, replaced when they are old, and closed when the node
// has left and its last request ended. The wire form is that of groupcache's HTTPPool.
//
// # What it does not do
//
// It removes nothing: values of groupcache never change, so what a node that left and
// came back still has is right. HTTPPool's own ring is not used.
package groupcache

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang/groupcache"
	pb "github.com/golang/groupcache/groupcachepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/httpconn"
	"github.com/shardd/shardd/sdk/internal/pools"
	"github.com/shardd/shardd/topology"
)

// Config configures Peers.
type Config struct {
	// Self is this node's id; required, or every key is somebody else's.
	Self string
	// BasePath is where peers answer; "" means "/_groupcache/", as HTTPPool's.
	BasePath string
	// Scheme is "http" or "https"; "" means "http".
	Scheme string
	// Transport is what each node's transport is cloned from; nil means
	// http.DefaultTransport.
	Transport *http.Transport
	// MaxConns is the most connections to one node; 0 means 64. A request that finds
	// all of them busy waits, for Timeout at most.
	MaxConns int
	// MaxAge is the age from which on a connection takes no further request, up to
	// a tenth earlier by chance so that not all end at once; 0 means 30 min, below 0
	// never.
	MaxAge time.Duration
	// MaxRequests is how many requests a connection serves; 0 means no limit.
	MaxRequests int
	// WarmUp is how many connections to a node are opened before its first request,
	// as soon as it is published; 0 means 1, below 0 none.
	WarmUp int
	// Grace is how long requests to a node that left may go on; then their
	// connections are closed. 0 means 30 s.
	Grace time.Duration
	// Timeout bounds a request to a peer; 0 means 10 s.
	Timeout time.Duration
	// Group returns the group that a peer asks for; nil means groupcache.GetGroup.
	Group func(name string) *groupcache.Group
}

// Peers is a groupcache.PeerPicker, and the http.Handler that peers ask. Make it with
// New, end it with Close. Safe for concurrent use.
type Peers struct {
	sdk    *sdk.Client
	cfg    Config
	pools  *pools.Pools[*peer]
	closed atomic.Bool
}

// peer is one node's pool.
type peer struct {
	addr string
	self bool
	rt   *httpconn.Transport
}

var (
	_ groupcache.PeerPicker = (*Peers)(nil)
	_ http.Handler          = (*Peers)(nil)
)

// errStatus is an answer that is no value.
var errStatus = errors.New("groupcache: peer answered")

// maxValue bounds what is read from a peer.
const maxValue = 1 << 30

// New returns the peers that client follows.
func New(client *sdk.Client, cfg Config) *Peers {
	cfg.BasePath = cmp.Or(cfg.BasePath, "/_groupcache/")
	cfg.Scheme = cmp.Or(cfg.Scheme, "http")
	cfg.WarmUp = cmp.Or(cfg.WarmUp, 1)
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	if cfg.Group == nil {
		cfg.Group = groupcache.GetGroup
	}
	p := &Peers{sdk: client, cfg: cfg}
	kept := pools.Config[*peer]{Open: p.open, Close: p.shut, Grace: cfg.Grace}
	if cfg.WarmUp > 0 {
		kept.Warm = p.warm
	}
	p.pools = pools.New(client, kept)
	return p
}

// Close closes the connections to all peers, those in use after their request, and
// leaves the sdk.Client open.
func (p *Peers) Close() {
	p.closed.Store(true)
	p.pools.Close()
}

func (p *Peers) open(n topology.Node) (*peer, error) {
	limits := httpconn.Config{MaxConns: p.cfg.MaxConns, MaxAge: p.cfg.MaxAge, MaxRequests: p.cfg.MaxRequests}
	return &peer{addr: n.Addr, self: n.ID == p.cfg.Self, rt: httpconn.New(p.cfg.Transport, limits)}, nil
}

// shut closes the pool of a node that left: nobody uses it any more, or its grace is
// over.
func (p *Peers) shut(to *peer) {
	if p.closed.Load() {
		to.rt.CloseIdle()
		return
	}
	to.rt.Cut()
}

// warm opens connections at the same time, so that they are different ones, by a HEAD
// of the base path. What a peer answers to that does not matter.
func (p *Peers) warm(ctx context.Context, to *peer) error {
	if to.self || to.addr == "" {
		return nil
	}
	var all sync.WaitGroup
	for range p.cfg.WarmUp {
		all.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodHead, p.cfg.Scheme+"://"+to.addr+p.cfg.BasePath, nil)
			if err != nil {
				return
			}
			if resp, err := to.rt.RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// PickPeer returns the peer that owns the key, or false if this node does, or nobody is
// known: then it is loaded here.
func (p *Peers) PickPeer(key string) (groupcache.ProtoGetter, bool) {
	r, err := p.sdk.Route(key)
	if err != nil || r.ID() == p.cfg.Self || r.Addr() == "" {
		return nil, false
	}
	return &getter{p, r}, true
}

// getter asks one peer.
type getter struct {
	p *Peers
	r sdk.Route
}

// Get is groupcache.ProtoGetter.Get. An error lets groupcache load the key here.
func (g *getter) Get(ctx context.Context, in *pb.GetRequest, out *pb.GetResponse) error {
	lease, err := g.p.pools.Use(g.r)
	if err != nil {
		return err
	}
	defer lease.Done()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, g.p.cfg.Timeout)
	defer cancel()
	where := g.p.cfg.Scheme + "://" + g.r.Addr() + g.p.cfg.BasePath + url.PathEscape(in.GetGroup()) + "/" + url.PathEscape(in.GetKey())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return err
	}
	resp, err := lease.Value().rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(resp.Body, maxValue)); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: node %s: %s", errStatus, g.r.ID(), resp.Status)
	}
	return proto.Unmarshal(b.Bytes(), protoadapt.MessageV2Of(out))
}

// ServeHTTP answers peers: 421 for keys that are not this node's, 204 where a peer only
// warms up a connection.
func (p *Peers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead && r.URL.Path == p.cfg.BasePath {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	name, key, ok := p.parse(r)
	if !ok {
		http.Error(w, "want "+p.cfg.BasePath+"<group>/<key>", http.StatusBadRequest)
		return
	}
	group := p.cfg.Group(name)
	if group == nil {
		http.Error(w, "no such group: "+name, http.StatusNotFound)
		return
	}
	if route, err := p.sdk.Route(key); err == nil && route.ID() != p.cfg.Self {
		http.Error(w, "the key belongs to "+route.ID(), http.StatusMisdirectedRequest)
		return
	}
	group.Stats.ServerRequests.Add(1)
	var value []byte
	if err := group.Get(r.Context(), key, groupcache.AllocatingByteSliceSink(&value)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := proto.Marshal(protoadapt.MessageV2Of(&pb.GetResponse{Value: value}))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body) // a peer that is gone needs it no more
}

func (p *Peers) parse(r *http.Request) (group, key string, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), p.cfg.BasePath)
	if !ok {
		return "", "", false
	}
	g, k, ok := strings.Cut(rest, "/")
	group, err1 := url.PathUnescape(g)
	key, err2 := url.PathUnescape(k)
	return group, key, ok && err1 == nil && err2 == nil
}
