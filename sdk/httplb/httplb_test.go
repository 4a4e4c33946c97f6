package httplb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/converge"
	"github.com/shardd/shardd/sdk/httplb"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is a real server that counts.
type backend struct {
	*httptest.Server
	id      string
	served  atomic.Int64
	conns   atomic.Int64 // open
	peak    atomic.Int64 // of them
	opened  atomic.Int64 // ever
	handler http.Handler // nil = answer with the id
	load    *loadreport.Server
}

func newBackend(t *testing.T, id string, handler http.Handler) *backend {
	t.Helper()
	b := &backend{id: id, handler: handler, load: loadreport.New(loadreport.Config{})}
	mux := http.NewServeMux()
	mux.Handle("/", b.load.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.served.Add(1)
		if b.handler != nil {
			b.handler.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", b.id, r.Host, r.URL.Path, body)
	})))
	mux.Handle("/loadz", b.load.ProbeHandler())
	b.Server = httptest.NewUnstartedServer(mux)
	b.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			b.peak.Store(max(b.peak.Load(), b.conns.Add(1))) // one goroutine accepts
			b.opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			b.conns.Add(-1)
		}
	}
	b.Start()
	t.Cleanup(b.Close)
	return b
}

func (b *backend) node() topology.Node {
	return topology.Node{ID: b.id, Addr: b.Listener.Addr().String(), Weight: 1}
}

func backends(t *testing.T, n int) []*backend {
	t.Helper()
	var all []*backend
	for i := range n {
		all = append(all, newBackend(t, fmt.Sprintf("b%d", i), nil))
	}
	return all
}

func plane(t *testing.T, all []*backend) *shardtest.Plane {
	t.Helper()
	var nodes []topology.Node
	for _, b := range all {
		nodes = append(nodes, b.node())
	}
	return shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: nodes})
}

func transport(t *testing.T, c *sdk.Client, cfg httplb.Config) *http.Client {
	t.Helper()
	tr := httplb.New(c, cfg)
	t.Cleanup(tr.Close)
	return &http.Client{Transport: tr}
}

func post(t *testing.T, c *http.Client, key, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://svc.internal/p", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Key", key)
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if req.URL.Host != "svc.internal" || len(req.Header) != 1 {
		t.Errorf("the request was changed: %v", req)
	}
	return string(b), err
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

// TestKeys: each request goes to its key's owner, with its host, path and body, and
// nothing is in flight in the end.
func TestKeys(t *testing.T) {
	all := backends(t, 3)
	p := plane(t, all)
	c := p.Client()
	h := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key")})
	for i := range 60 {
		key := fmt.Sprint("user:", i)
		got, err := post(t, h, key, "hello")
		if want := p.Owner(key) + " svc.internal /p hello"; err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", key, got, err, want)
		}
	}
	for _, n := range c.LoadStats().Nodes {
		if n.InFlight != 0 || n.Acquired == 0 {
			t.Errorf("%+v", n)
		}
	}
}

// TestPools: warm-up, cap, and connections of a node that left.
func TestPools(t *testing.T) {
	all := backends(t, 3)
	p := plane(t, all[:2])
	c := p.Client()
	h := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key"), WarmPath: "/loadz", WarmUp: 4, MaxConns: 4})
	p.Add(all[2].node())
	until(t, "warm-up", func() bool { return all[2].conns.Load() >= 1 })
	var users sync.WaitGroup
	for g := range 12 {
		users.Go(func() {
			for i := range 30 {
				if _, err := post(t, h, fmt.Sprint(g, "-", i), "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	for _, b := range all {
		if n := b.peak.Load(); n > 4 || b.served.Load() == 0 {
			t.Errorf("%s: %d connections, %d requests", b.id, n, b.served.Load())
		}
	}
	p.Remove("b2")
	until(t, "closing", func() bool { return all[2].conns.Load() == 0 })
}

// TestRequestsAndAge: a connection serves as many requests as it may, with bodies or
// without, and none when it is too old.
func TestRequestsAndAge(t *testing.T) {
	f := func(cfg httplb.Config, requests int, want int64) {
		t.Helper()
		all := backends(t, 1)
		cfg.Key = httplb.KeyHeader("X-Key")
		h := transport(t, plane(t, all).Client(), cfg)
		for range requests {
			if _, err := post(t, h, "k", strings.Repeat("x", 10_000)); err != nil {
				t.Fatal(err)
			}
		}
		if n := all[0].opened.Load(); n != want {
			t.Errorf("%d connections, want %d", n, want)
		}
	}
	f(httplb.Config{MaxRequests: 5}, 30, 6)
	f(httplb.Config{MaxAge: time.Nanosecond}, 7, 7)
	f(httplb.Config{}, 30, 1)
}

// TestTries: a node that cannot be connected to is passed over if that is wanted, and
// only then; nothing is sent twice.
func TestTries(t *testing.T) {
	all := backends(t, 3)
	p := plane(t, all)
	all[0].Close()
	c := p.Client()
	one := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key")})
	more := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key"), Tries: 2})
	failed := 0
	for i := range 60 {
		key := fmt.Sprint("k", i)
		mine := p.Owner(key) == "b0"
		if _, err := post(t, one, key, "x"); (err != nil) != mine {
			t.Errorf("%s of %s: %v", key, p.Owner(key), err)
		} else if mine {
			failed++
		}
		got, err := post(t, more, key, "body")
		order, _ := c.RouteN(nil, key, 2)
		want := order[0].ID()
		if mine {
			want = order[1].ID()
		}
		if err != nil || !strings.HasPrefix(got, want+" ") || !strings.HasSuffix(got, "body") {
			t.Errorf("%s: %q, %v, want %s", key, got, err, want)
		}
	}
	if failed == 0 || all[1].served.Load()+all[2].served.Load() != int64(120-failed) {
		t.Errorf("%d failed, %d and %d served", failed, all[1].served.Load(), all[2].served.Load())
	}
}

// TestTickets: what is in flight is let go of however an answer ends.
func TestTickets(t *testing.T) {
	b := newBackend(t, "b0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", 1<<20))
		if r.Header.Get("X-Key") == "hang" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	c := plane(t, []*backend{b}).Client()
	h := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key"), Cost: func(*http.Request) int64 { return 7 }})
	inFlight := func() int64 { return c.LoadStats().Nodes[0].InFlight }
	get := func(ctx context.Context, key string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://svc/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Key", key)
		resp, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := get(t.Context(), "k")
	if inFlight() != 7 {
		t.Errorf("%d in flight before the body is read", inFlight())
	}
	resp.Body.Close()
	resp.Body.Close()
	if inFlight() != 0 {
		t.Errorf("%d in flight after it is closed", inFlight())
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp = get(ctx, "hang")
	cancel()
	if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	resp.Body.Close()
	if inFlight() != 0 {
		t.Errorf("%d in flight after it was cancelled", inFlight())
	}
}

// TestConverge: a request that went by an old version is answered with the newer one,
// and the client is right at once.
func TestConverge(t *testing.T) {
	var past atomic.Pointer[converge.Past]
	all := backends(t, 2)
	for _, b := range all {
		b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ref, err := converge.Parse(r.Header.Get(converge.Header))
			if err != nil {
				t.Error(err)
			}
			if answer, newer := past.Load().Answer(ref); newer {
				w.Header().Set("Content-Type", converge.ContentType)
				w.WriteHeader(http.StatusMisdirectedRequest)
				_, _ = w.Write(answer)
				return
			}
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, b.id, " ", string(body))
		})
	}
	p := plane(t, all)
	past.Store(converge.Remember(p.Client()))
	defer past.Load().Close()
	slow := &held{Plane: p}
	src := converge.New(slow)
	c, err := sdk.New(src)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := transport(t, c, httplb.Config{Key: httplb.KeyHeader("X-Key"), Converge: src})
	slow.held.Store(true) // its source brings nothing any more
	p.Publish(func(d *topology.Declared) { d.Nodes[0].Weight = 9 })
	p.Publish(func(d *topology.Declared) { d.Nodes[0].Weight = 2 })
	got, err := post(t, h, "k", "body")
	if want := p.Owner("k") + " body"; err != nil || got != want || c.Topology().Ref() != p.Topology().Ref() {
		t.Errorf("%q, %v, on %v", got, err, c.Topology().Version())
	}
	if n := all[0].served.Load() + all[1].served.Load(); n != 2 {
		t.Errorf("%d requests for one", n)
	}
	slow.held.Store(false)
	p.SetAddr("b1", all[1].node().Addr+"0") // the source goes on from there
	until(t, "the source", func() bool { return c.Topology().Ref() == p.Topology().Ref() })
}

// held is a source that can hold its topologies back, to itself.
type held struct {
	*shardtest.Plane
	held atomic.Bool
}

func (h *held) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	return h.Plane.Watch(ctx, have, func(t *topology.Topology) error {
		if h.held.Load() {
			return errors.New("held")
		}
		return fn(t)
	})
}

// TestReverseProxy: ReverseProxy with the transport is a sharding proxy.
func TestReverseProxy(t *testing.T) {
	all := backends(t, 3)
	p := plane(t, all)
	tr := httplb.New(p.Client(), httplb.Config{Key: httplb.KeyPath(), Scheme: "http"})
	defer tr.Close()
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
	}})
	defer proxy.Close()
	for i := range 30 {
		path := fmt.Sprint("/user/", i)
		resp, err := http.Get(proxy.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.HasPrefix(string(b), p.Owner(path)+" ") {
			t.Errorf("%s: %s, %v", path, b, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestErrors: what the SDK cannot answer.
func TestErrors(t *testing.T) {
	p := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}})
	h := transport(t, p.Client(), httplb.Config{Key: httplb.KeyHeader("X-Key")})
	if _, err := post(t, h, "k", "x"); !errors.Is(err, sdk.ErrNoNodes) {
		t.Error(err)
	}
	p.Add(topology.Node{ID: "a", Weight: 1})
	if _, err := post(t, h, "k", "x"); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Error(err)
	}
	if _, err := post(t, h, "", "x"); !errors.Is(err, sdk.ErrUnavailable) {
		t.Error(err)
	}
}
