package memcache

import (
	"net"
	"sync/atomic"
	"time"
)

// conn is a connection that is replaced by a new one between two requests when it
// is too old or has served enough. gomemcache keeps it in its list of free ones
// and does not notice: its buffers are empty between two requests.
type conn struct {
	net.Conn
	again    func() (net.Conn, error)
	limits   *Config
	opened   time.Time
	used     time.Time // of the last request
	requests int
	reading  bool      // something was read since the last write
	deadline time.Time // as set last
	renewed  *atomic.Uint64
}

// Write begins a request if the one before was read.
func (c *conn) Write(b []byte) (int, error) {
	if c.reading || c.requests == 0 {
		if err := c.begin(time.Now()); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

func (c *conn) begin(now time.Time) error {
	if c.spent(now) {
		next, err := c.again()
		if err != nil {
			return err
		}
		_ = c.Close()
		c.Conn, c.opened, c.requests = next, now, 0
		c.renewed.Add(1)
		if err := next.SetDeadline(c.deadline); err != nil {
			return err
		}
	}
	c.reading = false
	c.requests++
	c.used = now
	return nil
}

func (c *conn) spent(now time.Time) bool {
	l := c.limits
	return l.MaxAge > 0 && now.Sub(c.opened) >= l.MaxAge ||
		l.MaxRequests > 0 && c.requests >= l.MaxRequests ||
		l.MaxIdle > 0 && c.requests > 0 && now.Sub(c.used) >= l.MaxIdle
}

func (c *conn) Read(b []byte) (int, error) {
	c.reading = true
	return c.Conn.Read(b)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetDeadline(t)
}
