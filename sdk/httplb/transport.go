package httplb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/internal/httpconn"
	"github.com/shardd/shardd/sdk/internal/pools"
	"github.com/shardd/shardd/topology"
)

// Transport is a http.RoundTripper over the nodes of a topology. Make one with New, end
// it with Close. Safe for concurrent use.
type Transport struct {
	sdk    *sdk.Client
	cfg    Config
	pools  *pools.Pools[*node]
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards closed and the start of probes
	closed bool
	work   sync.WaitGroup
}

// node is one node's pool.
type node struct {
	id, addr string
	rt       *httpconn.Transport
	probing  atomic.Bool // one probe at a time
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport over the nodes that client follows.
func New(client *sdk.Client, cfg Config) *Transport {
	t := &Transport{sdk: client, cfg: cfg.withDefaults()}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	p := pools.Config[*node]{Open: t.open, Close: t.shut, Grace: cfg.Grace}
	if cfg.WarmPath != "" {
		p.Warm = t.warm
	}
	t.pools = pools.New(client, p)
	return t
}

// Close closes connections that are not in use, and waits for probes to end. It
// leaves the sdk.Client open.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.work.Wait()
	t.pools.Close()
}

// shut closes the pool of a node that left: nobody uses it any more, or its grace is
// over. By Close, requests under way end first.
func (t *Transport) shut(n *node) {
	if t.ctx.Err() != nil {
		n.rt.CloseIdle()
		return
	}
	n.rt.Cut()
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t *Transport) CloseIdleConnections() {
	_ = t.pools.Nodes(func(_ topology.Node, n *node) error {
		n.rt.CloseIdle()
		return nil
	})
}

func (t *Transport) open(n topology.Node) (*node, error) {
	if n.Addr == "" {
		return nil, fmt.Errorf("httplb: node %q has no address; publish one, such as 10.0.0.1:8080", n.ID)
	}
	return &node{id: n.ID, addr: n.Addr, rt: httpconn.New(t.cfg.Transport, t.cfg.limits())}, nil
}

// RoundTrip sends the request. Errors: those of Acquire, and the node's transport's.
// The request is not changed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	key := t.cfg.Key(req)
	resp, by, err := t.attempts(req, key)
	if err == nil && t.cfg.Converge != nil && t.converged(req, by, resp) {
		resp, _, err = t.attempts(req, key)
	}
	if req.Body != nil && err != nil {
		_ = req.Body.Close() // a RoundTripper closes it in any case
	}
	return resp, err
}

// attempts offers the request to nodes until one can be connected to.
func (t *Transport) attempts(req *http.Request, key string) (*http.Response, sdk.Route, error) {
	var tried []string
	var before error
	for {
		resp, r, err := t.attempt(req, key, tried)
		var dialed *httpconn.DialError
		if err == nil || !errors.As(err, &dialed) || req.Context().Err() != nil {
			if errors.Is(err, sdk.ErrUnavailable) {
				err = errors.Join(err, before)
			}
			return resp, r, err
		}
		before = err
		if tried = append(tried, r.ID()); len(tried) >= t.cfg.Tries || !rewind(req) {
			return resp, r, err
		}
	}
}

// rewind makes the body readable from its beginning.
func rewind(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err == nil {
		req.Body = body
	}
	return err == nil
}

// target says where a request goes.
func (t *Transport) target(req *http.Request, key string, tried []string, ticket *sdk.Ticket) (r sdk.Route, err error) {
	cost := max(1, t.cfg.Cost(req))
	switch {
	case len(tried) > 0:
		*ticket, err = t.sdk.AcquireExcept(req.Context(), sdk.Call{Key: key, Any: key == "", Cost: cost}, tried)
	case key != "":
		*ticket, err = t.sdk.Acquire(req.Context(), key, cost)
	default:
		*ticket, err = t.sdk.AcquireAny(req.Context(), cost)
	}
	return ticket.Route(), err
}

// attempt sends the request to one node.
func (t *Transport) attempt(req *http.Request, key string, tried []string) (resp *http.Response, r sdk.Route, err error) {
	e := &exchange{t: t, req: req}
	if r, err = t.target(req, key, tried, &e.ticket); err != nil {
		return nil, r, err
	}
	if e.lease, err = t.pools.Use(r); err != nil {
		e.ticket.Done(sdk.Ignored)
		return nil, r, err
	}
	out := t.prepare(req, r, e.lease.Value())
	resp, err = e.lease.Value().rt.RoundTrip(out)
	if err != nil {
		e.end(outcome(req.Context(), err), loadreport.Report{}, false)
		return nil, r, fmt.Errorf("httplb: node %s: %w", r.ID(), err)
	}
	e.report, e.reported = loadreport.FromHeader(resp.Header)
	e.status = resp.StatusCode
	e.body = resp.Body
	resp.Body, resp.Request = wrap(e), req
	t.probes()
	return resp, r, nil
}

// prepare returns the request as it goes to the node.
func (t *Transport) prepare(req *http.Request, r sdk.Route, n *node) *http.Request {
	out := req.Clone(req.Context())
	if out.Host == "" {
		out.Host = req.URL.Host
	}
	out.URL.Host = n.addr
	if t.cfg.Scheme != "" {
		out.URL.Scheme = t.cfg.Scheme
	}
	if t.cfg.Converge != nil {
		out.Header.Set(converge.Header, converge.Present(r.Topology()))
	}
	return out
}

// converged takes the newer topology from the answer of a server that does not own
// the key, and reports whether the request can be sent again.
func (t *Transport) converged(req *http.Request, by sdk.Route, resp *http.Response) bool {
	if !t.cfg.Converge.TakeHTTP(by.Topology(), resp) || !rewind(req) {
		return false
	}
	_ = resp.Body.Close() // read by now
	return true
}

// outcome says what an error tells about the node.
func outcome(ctx context.Context, err error) sdk.Outcome {
	var ne net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return sdk.Ignored
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return sdk.Timeout
	}
	return sdk.Failure
}

// exchange is a request whose answer is not read yet.
type exchange struct {
	t        *Transport
	req      *http.Request
	ticket   sdk.Ticket
	lease    pools.Lease[*node]
	report   loadreport.Report
	reported bool
	status   int
	body     io.ReadCloser
	ended    atomic.Bool
}

// end lets go of what the request holds, once.
func (e *exchange) end(o sdk.Outcome, r loadreport.Report, reported bool) {
	if !e.ended.CompareAndSwap(false, true) {
		return
	}
	if e.t.cfg.Feed != nil {
		e.t.cfg.Feed.Done(&e.ticket, o, r, reported)
	} else {
		if reported && r.HasInFlight {
			e.ticket.Report(r.InFlight)
		}
		e.ticket.Done(o)
	}
	e.lease.Done()
}

// result says how the request ended, by its status.
func (e *exchange) result() sdk.Outcome {
	switch {
	case e.status == http.StatusTooManyRequests:
		return sdk.Overload
	case e.status >= http.StatusInternalServerError:
		return sdk.Failure
	}
	return sdk.Success
}

// wrap returns the body of an answer whose end ends the exchange. That of a protocol
// switch (101) can be written to.
func wrap(e *exchange) io.ReadCloser {
	b := &body{e}
	if rw, ok := e.body.(io.ReadWriteCloser); ok {
		return struct {
			*body
			io.Writer
		}{b, rw}
	}
	return b
}

type body struct{ e *exchange }

// Read ends the exchange at the end of the answer.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.e.body.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.e.end(b.e.result(), b.e.report, b.e.reported)
	default:
		b.e.end(outcome(b.e.req.Context(), err), b.e.report, b.e.reported)
	}
	return n, err
}

// Close ends the exchange.
func (b *body) Close() error {
	err := b.e.body.Close()
	b.e.end(b.e.result(), b.e.report, b.e.reported)
	return err
}

// probes starts the probes that the policy asks for now.
func (t *Transport) probes() {
	if t.cfg.Feed == nil {
		return
	}
	var room [8]string
	for _, id := range t.cfg.Feed.Probes(rand.Uint64(), room[:0]) {
		t.probe(id)
	}
}
