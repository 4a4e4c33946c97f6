// Package httpconn is an http.Transport to one node whose connections have limits:
// how many there are, how old they get and how many requests they serve. It can also
// close those that are in use.
//
// Law: a connection serves no request after the one with which it reached a limit; no
// request fails for that, since the limit is said to the server in the request itself
// (Connection: close). There are never more connections than MaxConns. The age at which
// a connection ends is drawn up to a tenth below MaxAge, so that connections that were
// made together do not end together.
//
// Cost: over http.Transport, a trace a request and a lock at the ends of a connection.
package httpconn

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Config holds the limits.
type Config struct {
	// MaxConns is the most connections; 0 means 64.
	MaxConns int
	// MaxAge is the age from which on a connection takes no further request, up to a
	// tenth earlier; 0 means 30 min, below 0 never.
	MaxAge time.Duration
	// MaxRequests is how many requests a connection serves; 0 means no limit.
	MaxRequests int
}

// WithDefaults returns the limits with their defaults.
func (c Config) WithDefaults() Config {
	c.MaxConns = cmp.Or(max(0, c.MaxConns), 64)
	c.MaxAge = cmp.Or(c.MaxAge, 30*time.Minute)
	c.MaxRequests = max(0, c.MaxRequests)
	return c
}

// Transport is a node's transport. Make one with New. Safe for concurrent use.
type Transport struct {
	rt  *http.Transport
	cfg Config

	mu   sync.Mutex
	open map[*conn]struct{}
	cut  bool
}

// DialError says that no connection could be opened, so that nothing was sent.
type DialError struct{ Err error }

// Error is that of dialling.
func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap returns the error of dialling.
func (e *DialError) Unwrap() error { return e.Err }

// New returns a transport with the settings of base, whose limits of connections are
// replaced; nil means http.DefaultTransport.
func New(base *http.Transport, cfg Config) *Transport {
	if base == nil {
		base, _ = http.DefaultTransport.(*http.Transport)
	}
	if base == nil { // the program replaced it by something else
		base = &http.Transport{}
	}
	t := &Transport{rt: base.Clone(), cfg: cfg.WithDefaults(), open: make(map[*conn]struct{})}
	rt := t.rt
	rt.MaxConnsPerHost, rt.MaxIdleConnsPerHost, rt.MaxIdleConns = t.cfg.MaxConns, t.cfg.MaxConns, 0
	if age := t.cfg.MaxAge; age > 0 && (rt.IdleConnTimeout == 0 || rt.IdleConnTimeout > age) {
		rt.IdleConnTimeout = age
	}
	dial := rt.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	rt.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil {
			c, err = t.track(c)
		}
		if err != nil {
			return nil, &DialError{err}
		}
		return c, nil
	}
	return t
}

// conn is a connection that knows how old it is and what it has served.
type conn struct {
	net.Conn
	of       *Transport
	until    time.Time // zero = for ever
	requests atomic.Int64
}

func (t *Transport) track(nc net.Conn) (net.Conn, error) {
	c := &conn{Conn: nc, of: t}
	if age := t.cfg.MaxAge; age > 0 {
		c.until = time.Now().Add(age - rand.N(age/10+1))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		_ = nc.Close()
		return nil, net.ErrClosed
	}
	t.open[c] = struct{}{}
	return c, nil
}

// Close is net.Conn.Close.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// last counts a request, and reports whether there may be no other after it.
func (c *conn) last() bool {
	n, cfg := c.requests.Add(1), &c.of.cfg
	return cfg.MaxRequests > 0 && n >= int64(cfg.MaxRequests) || !c.until.IsZero() && !time.Now().Before(c.until)
}

// RoundTrip is http.Transport.RoundTrip. It may add a header to req, so give it a
// request of your own. The error is or wraps a *DialError if nothing was sent.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.cfg.MaxAge <= 0 && t.cfg.MaxRequests <= 0 {
		return t.rt.RoundTrip(req)
	}
	// http.Transport says which connection it is before it writes the header.
	return t.rt.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		nc := info.Conn
		if inner, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
			nc = inner.NetConn()
		}
		if c, ok := nc.(*conn); ok && c.last() {
			req.Header.Set("Connection", "close")
		}
	}})))
}

// CloseIdle closes connections that are not in use, and those in use after their
// request.
func (t *Transport) CloseIdle() { t.rt.CloseIdleConnections() }

// Cut closes all connections, also those in use, and lets none be opened.
func (t *Transport) Cut() {
	t.rt.CloseIdleConnections()
	t.mu.Lock()
	t.cut = true
	var all []*conn
	for c := range t.open {
		all = append(all, c)
	}
	t.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}
