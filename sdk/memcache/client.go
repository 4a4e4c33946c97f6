package memcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/pools"
	"github.com/shardd/shardd/topology"
)

// Config configures a Client. The zero value takes the defaults.
type Config struct {
	// Timeout bounds a read or write of a socket, opening a connection, and the
	// wait for a free one; 0 means memcache.DefaultTimeout, 500 ms.
	Timeout time.Duration
	// MaxConns is the most connections to one node; 0 means 64. A request that
	// finds all of them busy waits for Timeout and then fails with ErrBusy.
	MaxConns int
	// WarmUp is how many connections to a node are opened and answered before its
	// first request; 0 means 1, below 0 none. A first request waits for them for
	// Timeout at most.
	WarmUp int
	// MaxAge is the age from which on a connection is replaced before its next
	// request, so that load moves behind a balancer or a new address takes
	// effect; 0 means 30 min, below 0 never.
	MaxAge time.Duration
	// MaxIdle is the time without a request from which on it is replaced before
	// the next: below what servers and firewalls close it at; 0 means 5 min, below
	// 0 never.
	MaxIdle time.Duration
	// MaxRequests is how many requests a connection serves; 0 means no limit. A
	// GetMulti is one request for each node.
	MaxRequests int
	// Grace is how long requests to a node that left may go on; 0 means 30 s.
	Grace time.Duration
	// ReadThrough asks the key's other owner after a miss, while its owner changes in
	// steps (sdk.Route.Other); what is written or deleted is deleted there first.
	// Every client of the cluster has to do so. A value is not copied over.
	ReadThrough bool
	// Fence stores with each value since when its node had served the key
	// (sdk.Route.FirstSince), and takes what is older for a miss: a node that left
	// and came back, or was published as down, cannot serve what it missed. Every client
	// of the cluster has to do so: values have some bytes before them, and those without
	// are misses. Prepend, Increment and Decrement are refused with ErrFenced. While a
	// node is gone round for its health alone, which no version tells, its keys are
	// misses, and what writes or deletes them fails with ErrDetour.
	Fence bool
	// Dial opens connections; nil means net.Dialer. For TLS.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, memcache.DefaultTimeout)
	c.MaxConns = cmp.Or(max(0, c.MaxConns), 64)
	c.WarmUp = min(cmp.Or(c.WarmUp, 1), c.MaxConns)
	c.MaxAge = cmp.Or(c.MaxAge, 30*time.Minute)
	c.MaxIdle = cmp.Or(c.MaxIdle, 5*time.Minute)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

// ErrBusy says that all connections to the node are in use, and none
// became free in time.
// Shed the request, or raise Config.MaxConns.
var ErrBusy = errors.New("memcache: all connections to the node are busy")

// Client has the methods of memcache.Client, and keeps a pool for each node. Make
// one with New, end it with Close. Safe for concurrent use.
type Client struct {
	sdk     *sdk.Client
	cfg     Config
	pools   *pools.Pools[*node]
	renewed atomic.Uint64
}

// node is the pool of one node.
type node struct {
	mc    *memcache.Client
	free  chan struct{} // one place for each connection that may be in use
	dial  func(ctx context.Context, network, to string) (net.Conn, error)
	spare chan net.Conn // warmed up, not used yet
	addr  address
}

// close closes all connections that are not in use.
func (n *node) close() {
	_ = n.mc.Close()
	for {
		select {
		case nc := <-n.spare:
			_ = nc.Close()
		default:
			return
		}
	}
}

// New returns a client for the nodes that c follows. It waits for nothing, save that
// with Fence it makes the index of the version held (sdk.Client.PrepareOwnedSince); it
// opens connections in the background, to be ready for the first requests.
func New(c *sdk.Client, cfg Config) *Client {
	m := &Client{sdk: c, cfg: cfg.withDefaults()}
	if m.cfg.Fence {
		c.PrepareOwnedSince()
	}
	p := pools.Config[*node]{Open: m.open, Close: (*node).close, WarmTimeout: m.cfg.Timeout, Grace: m.cfg.Grace}
	if m.cfg.WarmUp > 0 {
		p.Warm = m.warm
	}
	m.pools = pools.New(c, p)
	return m
}

// Close closes all connections that are not in use; the others end with their
// requests. It leaves the sdk.Client open.
func (c *Client) Close() error {
	c.pools.Close()
	return nil
}

// Stats are a client's counters.
type Stats struct {
	Renewed uint64 // connections replaced because of age, idleness or requests
}

// Stats returns the counters.
func (c *Client) Stats() Stats { return Stats{Renewed: c.renewed.Load()} }

func (c *Client) open(n topology.Node) (*node, error) {
	if n.Addr == "" {
		return nil, fmt.Errorf("memcache: node %q has no address; publish one, such as 10.0.0.1:11211", n.ID)
	}
	addr := address(n.Addr)
	mc := memcache.NewFromSelector(single{addr})
	mc.Timeout, mc.MaxIdleConns = c.cfg.Timeout, c.cfg.MaxConns
	p := &node{mc: mc, addr: addr, free: make(chan struct{}, c.cfg.MaxConns), spare: make(chan net.Conn, max(0, c.cfg.WarmUp))}
	p.dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		nc, err := c.cfg.Dial(ctx, network, to)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		return &conn{Conn: nc, again: func() (net.Conn, error) { return c.dial(network, to) }, limits: &c.cfg, opened: now, used: now, renewed: &c.renewed}, nil
	}
	mc.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		select {
		case nc := <-p.spare:
			return nc, nil
		default:
			return p.dial(ctx, network, to)
		}
	}
	return p, nil
}

func (c *Client) dial(network, to string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer cancel()
	return c.cfg.Dial(ctx, network, to)
}

// single is the selector of one node's pool.
type single struct{ addr address }

func (s single) PickServer(string) (net.Addr, error) { return s.addr, nil }
func (s single) Each(fn func(net.Addr) error) error  { return fn(s.addr) }

// warm opens connections and waits for their first answers.
func (c *Client) warm(ctx context.Context, n *node) error {
	var all sync.WaitGroup
	errs := make([]error, c.cfg.WarmUp)
	for i := range errs {
		all.Go(func() { errs[i] = n.warmOne(ctx, n.addr) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// warmOne opens one connection, asks for the server's version, and puts it by.
func (n *node) warmOne(ctx context.Context, addr address) error {
	nc, err := n.dial(ctx, addr.Network(), addr.String())
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		err = nc.SetDeadline(end)
	}
	var answer [256]byte
	if err == nil {
		_, err = nc.Write([]byte("version\r\n"))
	}
	for got := 0; err == nil && (got == 0 || answer[got-1] != '\n') && got < len(answer); {
		var k int
		k, err = nc.Read(answer[got:])
		got += k
	}
	if err == nil {
		select {
		case n.spare <- nc:
			return nil
		default: // cannot be: there is room for as many as are warmed up
		}
	}
	_ = nc.Close()
	return err
}

// use calls fn when one of the node's connections may be used.
func (n *node) use(ctx context.Context, fn func() error) error {
	select {
	case n.free <- struct{}{}:
	case <-ctx.Done():
		return ErrBusy
	}
	defer func() { <-n.free }()
	return fn()
}

// useIn is use within the time-out, whose timer it starts only if it has to wait.
func (n *node) useIn(timeout time.Duration, fn func() error) error {
	select {
	case n.free <- struct{}{}:
		defer func() { <-n.free }()
		return fn()
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return n.use(ctx, fn)
}

// on calls fn with the pool of the node that the route leads to.
func (c *Client) on(r sdk.Route, fn func(*memcache.Client) error) error {
	l, err := c.pools.Use(r)
	if err != nil {
		return err
	}
	defer l.Done()
	n := l.Value()
	return n.useIn(c.cfg.Timeout, func() error { return fn(n.mc) })
}
