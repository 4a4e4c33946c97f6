package grpclb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
)

// retryReplace is the pause before a connection is tried to be replaced again.
const retryReplace = 10 * time.Second

// connection is one connection of a node. What it carries is counted by pickers;
// everything else is guarded by nodeBalancer.mu.
type connection struct {
	flight atomic.Int64 // calls under way
	served atomic.Int64 // calls given to it since it was connected
	limit  atomic.Int64 // of served; 0 = none

	b    *nodeBalancer
	node *node
	sc   balancer.SubConn
	wire wire

	state     connectivity.State // as pickers see it
	err       error              // why it is in TransientFailure
	old, next *connection        // which it is to replace; which is to replace it
	gone      bool               // shut down; calls under way go on
	age, warm *time.Timer        // when to replace it; when it counts as down
	grace     *time.Timer        // when it is cut
	endOOB    func()             // of the out-of-band stream
}

// wire is the connection of the system.
type wire struct {
	mu   sync.Mutex
	conn net.Conn
	cut  bool
}

type wireKey struct{}

// dial opens a connection and notes which it is: gRPC hands a dialer the attributes
// of the address (credentials.ClientHandshakeInfo).
func (lb *LB) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := lb.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if w, ok := credentials.ClientHandshakeInfoFromContext(ctx).Attributes.Value(wireKey{}).(*wire); ok && !w.set(c) {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (w *wire) set(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = c
	return !w.cut
}

// close ends what goes on.
func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = true; w.conn != nil {
		_ = w.conn.Close()
	}
}

// connect begins a connection to n, nil if gRPC is closing. The lock is held.
func (b *nodeBalancer) connect(n *node) *connection {
	c := &connection{b: b, node: n, state: connectivity.Connecting}
	addr := resolver.Address{Addr: n.addr.Addr, ServerName: n.addr.ServerName, Attributes: attributes.New(wireKey{}, &c.wire)}
	sc, err := b.cc.NewSubConn([]resolver.Address{addr}, balancer.NewSubConnOptions{ //nolint:staticcheck // SA1019: deprecated for several addresses; this is one
		StateListener: func(s balancer.SubConnState) { b.changed(c, s) }})
	if err != nil {
		return nil
	}
	c.sc = sc
	c.await()
	sc.Connect()
	return c
}

// await lets calls wait for the connection for a while.
func (c *connection) await() {
	d := c.b.lb.cfg.WarmTimeout
	stop(c.warm)
	c.warm = time.AfterFunc(d, func() {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		if c.gone || c.b.closed || c.state != connectivity.Connecting {
			return
		}
		c.state, c.err = connectivity.TransientFailure, fmt.Errorf("not connected after %v", d)
		c.b.publish()
	})
}

// opened begins to count a connection that has just been made.
func (c *connection) opened() {
	cfg := &c.b.lb.cfg
	stop(c.warm)
	c.served.Store(0)
	if n := cfg.MaxRequests; n > 0 {
		c.limit.Store(int64(n - rand.N(n/10+1)))
	}
	if d := cfg.MaxAge; d > 0 {
		c.replaceAfter(d - rand.N(d/10+1))
	}
	if c.endOOB != nil {
		c.endOOB()
		c.endOOB = nil
	}
	if cfg.Feed != nil && cfg.OutOfBand > 0 && c.node.conns[0] == c {
		_, c.endOOB = c.sc.GetOrBuildProducer(&reports{c.b.lb, c.node.id})
	}
}

// begin counts a call, and lets the connection be replaced when it has had as many as
// it may.
func (c *connection) begin() {
	c.flight.Add(1)
	if c.served.Add(1) == c.limit.Load() {
		go c.replace() // picks do not wait for locks
	}
}

func (c *connection) replaceAfter(d time.Duration) {
	stop(c.age)
	c.age = time.AfterFunc(d, c.replace)
}

// replace begins the connection that is to take this one's place, as soon as there is
// room for one more.
func (c *connection) replace() {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.gone || b.closed || c.next != nil || c.old != nil {
		return
	}
	if c.node.open() >= b.lb.cfg.MaxConns {
		c.replaceAfter(retryReplace)
		return
	}
	if c.next = b.connect(c.node); c.next != nil {
		c.next.old = c
	}
}

// replaced puts the new connection in the place of the old, which finishes what it
// carries.
func (c *connection) replaced() {
	old := c.old
	c.old, old.next = nil, nil
	for i := range c.node.conns {
		if c.node.conns[i] == old {
			c.node.conns[i] = c
		}
	}
	c.node.ending = append(c.node.ending, old)
	old.shut()
}

// failed gives up a replacement that cannot be made: what is there stays.
func (c *connection) failed() {
	old := c.old
	old.next, c.old = nil, nil
	c.shut()
	old.replaceAfter(retryReplace)
}

// shut gives the connection no more calls; gRPC closes it after the last.
func (c *connection) shut() {
	c.gone = true
	stop(c.age)
	stop(c.warm)
	c.sc.Shutdown()
	c.endOOB = nil // ended by Shutdown
	if c.next != nil {
		c.next.shut()
	}
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
