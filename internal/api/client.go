package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/membership"
)

// DefaultTimeout is how long one server has to answer.
const DefaultTimeout = 5 * time.Second

// ClientConfig configures a Client. The zero value asks the server at
// DefaultAddr.
type ClientConfig struct {
	// Servers are base URLs such as "http://10.0.0.5:7420"; "http://" may be
	// missing. They are tried in order, beginning with the one that answered
	// last. nil = DefaultAddr.
	Servers []string
	// Timeout is how long one server has to answer; 0 = DefaultTimeout. An
	// edit that waits for its version gets the wait on top.
	Timeout time.Duration
	// Transport carries the requests; nil = a transport of the client's own,
	// which Close empties.
	Transport http.RoundTripper
	// By says who edits, for the cause of versions; "" = not said.
	By string
	// Logger; nil = none.
	Logger hclog.Logger
}

// Client speaks to one of several shardd servers. All methods are safe for
// concurrent use. Every error is an *Error, wraps membership.ErrUnreachable, or
// is ctx.Err().
type Client struct {
	servers []*url.URL
	http    *http.Client
	timeout time.Duration
	by      string
	logger  hclog.Logger
	last    atomic.Int64 // index of the server that answered last
	known   atomic.Bool  // it is known to answer
}

// NewClient returns a client. It does no I/O. The error names a server that is
// no URL.
func NewClient(cfg ClientConfig) (*Client, error) {
	c := &Client{timeout: cfg.Timeout, by: cfg.By, logger: cfg.Logger,
		http: &http.Client{Transport: cfg.Transport, CheckRedirect: noRedirect}}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if c.logger == nil {
		c.logger = hclog.NewNullLogger()
	}
	if cfg.Transport == nil {
		c.http.Transport = NewTransport()
	}
	if len(cfg.Servers) == 0 {
		cfg.Servers = []string{DefaultAddr}
	}
	for _, s := range cfg.Servers {
		u, err := ParseServer(s)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, u)
	}
	return c, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// NewTransport returns a transport that gives up connecting after 2 s and keeps
// up to 16 idle connections a server.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 10 * time.Second}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 5 * time.Second}
}

// ParseServer reads a server's base URL; "http://" may be missing.
func ParseServer(s string) (*url.URL, error) {
	full := s
	if !strings.Contains(s, "://") {
		full = "http://" + s
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("api: server %q: want HOST:PORT or http://HOST:PORT or https://HOST:PORT", s)
	}
	u.Path = ""
	return u, nil
}

// Close closes idle connections. Requests in flight go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call, whichever server takes it.
type request struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   string
	wait   time.Duration // that the server may take on top of the timeout
	stream bool          // the answer has no end; the timeout is for its head
}

// answer is what a server said; body is still to be read and closed.
type answer struct {
	*http.Response
	cancel context.CancelFunc
}

func (a *answer) close() {
	_, _ = io.CopyN(io.Discard, a.Body, 64<<10) // so that the connection can be used again
	a.Body.Close()
	a.cancel()
}

// do asks one server after another. A read goes on to the next server after any
// failure to answer, and asks it besides when there is no answer for a moment; an
// edit goes on only if the connection was refused, because otherwise it may have
// been carried out. So that it does not meet a server that hangs, a server that
// answers is looked for before the first one.
func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	if len(c.servers) > 1 && !r.stream {
		if r.repeatable() {
			return c.race(ctx, r)
		}
		if !c.known.Load() {
			if a, err := c.race(ctx, request{method: http.MethodGet, path: "/healthz"}); err == nil {
				a.close()
			}
		}
	}
	var failed []error
	first := int(c.last.Load())
	for i := range c.servers {
		n := (first + i) % len(c.servers)
		a, err := c.ask(ctx, c.servers[n], r)
		if err == nil {
			c.answered(n)
			return a, nil
		}
		c.known.Store(false)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, err)
		if !errors.Is(err, membership.ErrUnreachable) || !r.repeatable() && !notSent(err) {
			break
		}
		c.logger.Debug("server does not answer", "server", c.servers[n].Host, "error", err)
	}
	return nil, joined(failed)
}

func (r request) repeatable() bool { return r.method == http.MethodGet }

func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// joined returns the error of the last server, with those before it.
func joined(failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// unreachable is a server that did not answer.
type unreachable struct {
	server string
	err    error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("api: no answer from %s: %v; is shardd running there?", e.server, e.err)
}

func (e *unreachable) Unwrap() error { return e.err }

// Is makes it membership.ErrUnreachable.
func (e *unreachable) Is(target error) bool { return target == membership.ErrUnreachable }

func (c *Client) ask(ctx context.Context, server *url.URL, r request) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := c.timeout + r.wait
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("nothing for %s: %w", limit, context.DeadlineExceeded)) })
	a := &answer{cancel: func() { timer.Stop(); cancel(nil) }}
	resp, err := c.send(ctx, server, r)
	if err == nil && r.stream && !timer.Stop() {
		resp.Body.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		a.cancel()
		return nil, &unreachable{server.Host, err}
	}
	a.Response = resp
	if resp.StatusCode >= 300 {
		defer a.close()
		return nil, readError(resp)
	}
	return a, nil
}

func (c *Client) send(ctx context.Context, server *url.URL, r request) (*http.Response, error) {
	target := server.String() + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	resp, err := c.http.Do(req)
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL, which may be long
	}
	return resp, err
}
