package httplb

import (
	"cmp"
	"net/http"
	"time"

	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/internal/httpconn"
	"github.com/shardd/shardd/sdk/loadfeed"
)

// Config configures a Transport. The zero value takes the defaults.
type Config struct {
	// Key returns the key of a request, "" if it has none and any node will do. nil
	// means no request has one; see KeyHeader and KeyPath.
	Key func(*http.Request) string
	// Cost returns what the request adds to a node's load, at least 1; nil means 1.
	Cost func(*http.Request) int64
	// Transport is what each node's transport is cloned from; nil means
	// http.DefaultTransport. Its limits of idle connections are replaced.
	Transport *http.Transport
	// Scheme is "http" or "https" towards the nodes; "" keeps that of the request.
	Scheme string
	// MaxConns is the most connections to one node; 0 means 64. A request that finds
	// all of them busy waits until its context ends.
	MaxConns int
	// MaxAge is the age from which on a connection takes no further request, up to
	// a tenth earlier by chance so that not all end at once; 0 means 30 min, below 0
	// never.
	MaxAge time.Duration
	// MaxRequests is how many requests a connection serves; 0 means no limit.
	MaxRequests int
	// WarmPath is asked for by GET on WarmUp connections to a node before its first
	// request, such as "/loadz"; "" means no warm-up.
	WarmPath string
	// WarmUp is how many connections are warmed up; 0 means 1.
	WarmUp int
	// Tries is how many nodes a request may be offered to while no connection can be
	// opened: in the key's order, or by the policy. 0 means 1: no other. A second
	// node does not own the key; the request is in its load.
	Tries int
	// Grace is how long requests to a node that left may go on; then their
	// connections are closed. 0 means 30 s.
	Grace time.Duration
	// Feed is given the reports of answers (package loadreport), and asked which
	// nodes to probe; nil means that reports go to bounded load alone.
	Feed *loadfeed.Feed
	// ProbePath is asked for by GET to probe a node, where Feed's policy wants
	// probes; "" means "/loadz".
	ProbePath string
	// ProbeTimeout bounds a probe; 0 means 1 s.
	ProbeTimeout time.Duration
	// Converge says in each request by which version it was routed, and takes the
	// newer one from a server that answers that it is stale; the request is then
	// routed anew, once. nil means not.
	Converge *converge.Source
}

func (c Config) withDefaults() Config {
	if c.Key == nil {
		c.Key = func(*http.Request) string { return "" }
	}
	if c.Cost == nil {
		c.Cost = func(*http.Request) int64 { return 1 }
	}
	limits := c.limits().WithDefaults()
	c.MaxConns, c.MaxAge, c.MaxRequests = limits.MaxConns, limits.MaxAge, limits.MaxRequests
	c.WarmUp = min(max(1, c.WarmUp), c.MaxConns)
	c.Tries = max(1, c.Tries)
	c.ProbePath = cmp.Or(c.ProbePath, "/loadz")
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, time.Second)
	return c
}

func (c Config) limits() httpconn.Config {
	return httpconn.Config{MaxConns: c.MaxConns, MaxAge: c.MaxAge, MaxRequests: c.MaxRequests}
}

// KeyHeader takes the key from a header.
func KeyHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// KeyPath takes the path of the URL as the key.
func KeyPath() func(*http.Request) string { return func(r *http.Request) string { return r.URL.Path } }
