package redis

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// limitRequests has o's connections replaced after so many requests.
//
// go-redis has no such limit, but before it hands out a connection that was idle it looks
// whether the server has closed it, by syscall.Conn, and on an error closes it and takes
// another or a new one. A connection that has served enough answers that look with an
// error: so it ends between two requests, where nothing can be lost.
func limitRequests(o *redis.Options, requests int) {
	if o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
		return // which looks at connections in use in the same way
	}
	o.DialTimeout = cmp.Or(o.DialTimeout, 5*time.Second) // go-redis' own default
	dial := o.Dialer
	if dial == nil {
		own := *o
		dial = redis.NewDialer(&own)
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &limited{Conn: nc, most: int64(requests)}
		c.answered.Store(true)
		return c, nil
	}
}

// limited is a connection that serves so many requests. A request is what is written
// between two answers.
type limited struct {
	net.Conn
	most     int64
	requests atomic.Int64
	answered atomic.Bool // something was read since the last write
}

var errSpent = errors.New("redis: the connection has served enough requests")

func (c *limited) Write(b []byte) (int, error) {
	if c.answered.Swap(false) {
		c.requests.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *limited) Read(b []byte) (int, error) {
	c.answered.Store(true)
	return c.Conn.Read(b)
}

// SyscallConn is what go-redis asks for before it uses an idle connection again.
func (c *limited) SyscallConn() (syscall.RawConn, error) {
	if c.requests.Load() >= c.most {
		return nil, errSpent
	}
	if inner, ok := c.Conn.(syscall.Conn); ok {
		return inner.SyscallConn()
	}
	return opaque{}, nil
}

// opaque stands for a connection that cannot be looked at, such as TLS, which go-redis
// takes for alive.
type opaque struct{}

func (opaque) Control(func(uintptr)) error    { return nil }
func (opaque) Read(func(uintptr) bool) error  { return nil }
func (opaque) Write(func(uintptr) bool) error { return nil }
