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
// One lookup a key that is not in the local cache. Connections are kept for each node,
// and closed when it has left. The wire form is that of groupcache's HTTPPool.
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
	"time"

	"github.com/golang/groupcache"
	pb "github.com/golang/groupcache/groupcachepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/shardd/shardd/sdk"
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
	// MaxConns is the most connections to one node; 0 means 64.
	MaxConns int
	// Timeout bounds a request to a peer; 0 means 10 s.
	Timeout time.Duration
	// Group returns the group that a peer asks for; nil means groupcache.GetGroup.
	Group func(name string) *groupcache.Group
}

// Peers is a groupcache.PeerPicker, and the http.Handler that peers ask. Make it with
// New, end it with Close. Safe for concurrent use.
type Peers struct {
	sdk   *sdk.Client
	cfg   Config
	pools *pools.Pools[*http.Transport]
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
	cfg.MaxConns = cmp.Or(max(0, cfg.MaxConns), 64)
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	if cfg.Group == nil {
		cfg.Group = groupcache.GetGroup
	}
	p := &Peers{sdk: client, cfg: cfg}
	p.pools = pools.New(client, pools.Config[*http.Transport]{Open: p.open, Close: (*http.Transport).CloseIdleConnections})
	return p
}

// Close closes the connections to all peers, and leaves the sdk.Client open.
func (p *Peers) Close() { p.pools.Close() }

func (p *Peers) open(topology.Node) (*http.Transport, error) {
	from := p.cfg.Transport
	if from == nil {
		from, _ = http.DefaultTransport.(*http.Transport)
	}
	if from == nil { // the program replaced it by something else
		from = &http.Transport{}
	}
	t := from.Clone()
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost, t.MaxIdleConns = p.cfg.MaxConns, p.cfg.MaxConns, 0
	return t, nil
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
	resp, err := lease.Value().RoundTrip(req)
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

// ServeHTTP answers peers: 421 for keys that are not this node's.
func (p *Peers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
