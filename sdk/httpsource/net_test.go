package httpsource_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// network is a network in memory, so that tests with synctest run servers and
// clients in virtual time: a goroutine that waits on a real socket would keep
// the clock from advancing.
type network struct {
	mu    sync.Mutex
	hosts map[string]*listener
	conns map[string][]*conn
}

func newNetwork() *network {
	return &network{hosts: make(map[string]*listener), conns: make(map[string][]*conn)}
}

// transport returns one that dials in this network.
func (n *network) transport(t *testing.T) *http.Transport {
	tr := &http.Transport{DialContext: n.dial}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.hosts[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: errors.New("connection refused")}
	}
	here, there := net.Pipe()
	server := &conn{Conn: there, thaw: make(chan struct{})}
	select {
	case l.accept <- server:
		n.mu.Lock()
		n.conns[addr] = append(n.conns[addr], server)
		n.mu.Unlock()
		return here, nil
	case <-l.closed:
		here.Close()
		there.Close()
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen opens addr; down closes it together with its connections.
func (n *network) listen(addr string) *listener {
	l := &listener{net: n, addr: addr, accept: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = l
	return l
}

// serve runs a handler at addr until the test ends or down.
func (n *network) serve(t *testing.T, addr string, h http.Handler) {
	srv := &http.Server{Handler: h}
	l := n.listen(addr)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
}

// down makes addr refuse connections and breaks those that it has.
func (n *network) down(addr string) {
	n.mu.Lock()
	l, conns := n.hosts[addr], n.conns[addr]
	delete(n.hosts, addr)
	delete(n.conns, addr)
	n.mu.Unlock()
	if l != nil {
		l.Close()
	}
	for _, c := range conns {
		c.Close()
	}
}

// freeze makes the connections that addr has silent: nothing arrives any more,
// and nothing says so.
func (n *network) freeze(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns[addr] {
		c.freeze()
	}
}

type listener struct {
	net    *network
	addr   string
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return address(l.addr) }

type address string

func (a address) Network() string { return "mem" }
func (a address) String() string  { return string(a) }

// conn is the server's end of a connection.
type conn struct {
	net.Conn
	mu     sync.Mutex
	frozen bool
	once   sync.Once
	thaw   chan struct{} // closed with the connection
}

func (c *conn) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	frozen := c.frozen
	c.mu.Unlock()
	if frozen {
		<-c.thaw
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *conn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(t) }

func (c *conn) Close() error {
	c.once.Do(func() { close(c.thaw) })
	return c.Conn.Close()
}
