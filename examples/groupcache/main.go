// Command groupcache runs four nodes of a golang/groupcache that find each other by the
// topology: three at first, so that each key is loaded once in the whole fleet whoever is
// asked for it; then the fourth joins, and what it has to load is what the published
// movement says.
//
// The nodes are servers of one process here. In yours each is a process of its own, with
// one client and one shardgroupcache.Peers.
//
//	go run ./examples/groupcache
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang/groupcache"

	"github.com/shardd/shardd/examples/internal/devserver"
	"github.com/shardd/shardd/sdk"
	shardgroupcache "github.com/shardd/shardd/sdk/groupcache"
	"github.com/shardd/shardd/sdk/httpsource"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, 3000); err != nil {
		fmt.Fprintln(os.Stderr, "groupcache:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, keys int) error {
	url, stop, err := devserver.Start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	plane := devserver.Plane{URL: url, Cluster: "cache"}
	var all []*node
	var declared []devserver.Node
	defer func() {
		for _, n := range all {
			n.stop()
		}
	}()
	for i := range 4 {
		n, err := start(fmt.Sprintf("cache-%d", i+1), url)
		if err != nil {
			return err
		}
		all = append(all, n)
		declared = append(declared, devserver.Node{ID: n.id, Addr: n.addr})
	}
	answer, err := plane.Declare(ctx, declared[:3])
	if err != nil {
		return err
	}
	if err := follow(ctx, all, answer.Version); err != nil {
		return err
	}
	for _, n := range all[:3] { // everybody is asked for everything
		if err := n.getAll(ctx, keys); err != nil {
			return err
		}
	}
	for _, n := range all[:3] {
		fmt.Fprintf(out, "%s loaded %d keys\n", n.id, n.loads.Load())
	}
	fmt.Fprintf(out, "%d keys asked for at three nodes: %d loads\n", keys, loads(all))

	before := loads(all)
	if answer, err = plane.AddNode(ctx, declared[3]); err != nil {
		return err
	}
	if err := follow(ctx, all, answer.Version); err != nil {
		return err
	}
	if err := all[3].getAll(ctx, keys); err != nil {
		return err
	}
	fmt.Fprintf(out, "cache-4 joined: %.1f %% of the keys were loaded anew, %.1f %% was published\n",
		100*float64(loads(all)-before)/float64(keys), 100*answer.Movement.Ratio)
	return nil
}

// node is one server.
type node struct {
	id, addr string
	client   *sdk.Client
	peers    *shardgroupcache.Peers
	group    *groupcache.Group
	loads    atomic.Int64
	server   *http.Server
	ended    chan struct{}
}

// groupcache keeps one registry of groups and pickers a process. With one node in it that
// would be
//
//	groupcache.RegisterPeerPicker(func() groupcache.PeerPicker { return peers })
var (
	register sync.Once
	pickers  sync.Map // by group
)

func start(id, url string) (*node, error) {
	register.Do(func() {
		groupcache.RegisterPerGroupPeerPicker(func(group string) groupcache.PeerPicker {
			p, _ := pickers.Load(group)
			picker, _ := p.(groupcache.PeerPicker)
			return picker
		})
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &node{id: id, addr: ln.Addr().String(), ended: make(chan struct{})}
	source, err := httpsource.New("cache", []string{url})
	if err == nil {
		n.client, err = sdk.New(source)
	}
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	name := "users@" + n.addr // several nodes in one process: a name each
	n.peers = shardgroupcache.New(n.client, shardgroupcache.Config{Self: id, WarmUp: 2, MaxConns: 8,
		Group: func(string) *groupcache.Group { return n.group }}) // was: groupcache.NewHTTPPool(...)
	pickers.Store(name, n.peers)
	n.group = groupcache.NewGroup(name, 8<<20, groupcache.GetterFunc(func(_ context.Context, key string, dest groupcache.Sink) error {
		n.loads.Add(1)
		return dest.SetString("value of " + key)
	}))
	mux := http.NewServeMux()
	mux.Handle("/_groupcache/", n.peers)
	n.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(n.ended)
		_ = n.server.Serve(ln) // ends with Close
	}()
	return n, nil
}

func (n *node) stop() {
	n.peers.Close()
	n.client.Close()
	_ = n.server.Close()
	<-n.ended
}

func (n *node) getAll(ctx context.Context, keys int) error {
	for i := range keys {
		key, value := fmt.Sprintf("user:%d", i), ""
		if err := n.group.Get(ctx, key, groupcache.StringSink(&value)); err != nil {
			return err
		}
		if value != "value of "+key {
			return fmt.Errorf("%s has %q", key, value)
		}
	}
	return nil
}

func loads(all []*node) (sum int64) {
	for _, n := range all {
		sum += n.loads.Load()
	}
	return sum
}

// follow waits until all nodes go by the version.
func follow(ctx context.Context, all []*node, version string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, n := range all {
		arrived := make(chan struct{})
		end := n.client.OnChange(func(c sdk.Change) {
			if c.To.Version().String() == version {
				close(arrived)
			}
		})
		select {
		case <-arrived:
			end()
		case <-ctx.Done():
			end()
			return fmt.Errorf("%s does not follow to version %s: %w", n.id, version, ctx.Err())
		}
	}
	return nil
}
