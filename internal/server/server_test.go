package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a server on a loopback port, with a client.
type running struct {
	t     testing.TB
	addr  string
	api   *api.Client
	log   *bytes.Buffer
	plain *http.Client
	stop  func()
}

// run starts a server. Its log is printed if the test fails.
func run(t testing.TB, cfg server.Config) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return runOn(t, cfg, ln)
}

func runOn(t testing.TB, cfg server.Config, ln net.Listener) *running {
	t.Helper()
	log := &bytes.Buffer{}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: "shardd", Output: log, Level: hclog.Debug})
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	// The machine that runs the tests may be busy with others: patience.
	c, err := api.NewClient(api.ClientConfig{Servers: []string{ln.Addr().String()}, By: "tester", Timeout: 30 * time.Second, Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, addr: ln.Addr().String(), api: c, log: log, plain: &http.Client{Transport: &http.Transport{}}}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		c.Close()
		r.plain.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("log of the server:\n%s", log)
		}
	})
	return r
}

// withStore starts a server that publishes from a store in memory.
func withStore(t testing.TB) (*running, *memstore.Store) {
	t.Helper()
	store := memstore.New()
	return run(t, server.Config{Directory: store, Elector: store}), store
}

func declared(nodes int) topology.Declared {
	d := topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring}}
	for i := range nodes {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("node-%03d", i), Addr: fmt.Sprintf("10.0.0.%d:11211", i), Weight: 1})
	}
	return d
}

func (r *running) put(d topology.Declared) api.EditResult {
	r.t.Helper()
	res, err := r.api.PutSpec(r.t.Context(), d, api.EditOptions{Why: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	if !res.Published {
		r.t.Fatalf("not published: %+v", res)
	}
	return res
}

func (r *running) node(id string, verb api.Verb, e api.NodeEdit) api.EditResult {
	r.t.Helper()
	res, err := r.api.EditNode(r.t.Context(), "cache", id, verb, e, api.EditOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// plain is an answer without its body.
type plain struct {
	status int
	header http.Header
}

// call makes a plain request.
func (r *running) call(method, path, body string, headers ...string) (plain, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.plain.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return plain{resp.StatusCode, resp.Header}, string(b)
}

func errorOf(t testing.TB, body string) api.Error {
	t.Helper()
	var b api.ErrorBody
	if err := json.Unmarshal([]byte(body), &b); err != nil || b.Error == nil {
		t.Fatalf("no error envelope: %q", body)
	}
	return *b.Error
}

// follow returns a client that follows the servers.
func follow(t testing.TB, opts []sdk.Option, servers ...string) *sdk.Client {
	t.Helper()
	src, err := httpsource.New("cache", servers)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sdk.New(src, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// reaches waits until the client holds version v.
func reaches(t testing.TB, c *sdk.Client, v topology.Version) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := make(chan struct{})
	stop := c.OnChange(func(ch sdk.Change) {
		if ch.To.Version() == v {
			close(got)
		}
	})
	defer stop()
	select {
	case <-got:
	case <-ctx.Done():
		t.Fatalf("version %s does not come: %+v", v, c.State())
	}
}

// TestWholeWay: declare, publish, follow, edit, remove, over real HTTP, by all
// algorithms.
func TestWholeWay(t *testing.T) {
	for _, algorithm := range topology.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			r, store := withStore(t)
			d := declared(3)
			d.Spec = topology.Spec{Algorithm: algorithm}
			res := r.put(d)
			if !res.Created || res.Version != (topology.Version{Epoch: 1, Seq: 1}) || !res.From.IsZero() || res.Movement == nil || res.Movement.Ratio != 0 {
				t.Fatalf("%+v", res)
			}
			c := follow(t, nil, r.addr)
			reaches(t, c, res.Version)

			add := r.node("node-003", api.VerbAdd, api.NodeEdit{Addr: "10.0.0.3:11211"})
			if add.From != res.Version || add.Version.Seq != 2 || add.Movement == nil || add.Movement.Ratio < 0.1 || add.Movement.Ratio > 0.5 {
				t.Fatalf("%+v", add)
			}
			reaches(t, c, add.Version)

			st, err := store.Open("cache").Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !c.Topology().Equal(st.Head) {
				t.Fatalf("client has %v, the store %v", c.Topology().Ref(), st.Head.Ref())
			}
			route, err := c.Route("user:1")
			if err != nil {
				t.Fatal(err)
			}
			answer, err := r.api.Route(t.Context(), "cache", []byte("user:1"), 0)
			if err != nil || answer.Nodes[0] != route.Node() || answer.Key != "user:1" || answer.Hash != fmt.Sprintf("%016x", route.Hash()) {
				t.Fatalf("%+v, %v; the client says %s", answer, err, route.ID())
			}
			weight := uint32(2)
			r.node("node-000", api.VerbWeight, api.NodeEdit{Weight: &weight})
			last := r.node("node-001", api.VerbRemove, api.NodeEdit{})
			reaches(t, c, last.Version)
			if c.Topology().Index("node-001") >= 0 || c.Topology().Node(0).Weight != 2 {
				t.Fatalf("%v", c.Topology().Nodes())
			}
			topo, tag, err := r.api.Topology(t.Context(), "cache")
			if err != nil || !topo.Equal(c.Topology()) || !topo.Complete() || tag != last.ETag() {
				t.Fatalf("%v %v %v", topo.Ref(), tag, err)
			}
			h, err := r.api.History(t.Context(), "cache", 0)
			if err != nil || len(h.Versions) != 4 || h.Versions[0].Digest != topo.Digest() || h.Versions[2].Ratio != add.Movement.Ratio || h.Versions[3].Cause.By != "tester" {
				t.Fatalf("%+v, %v", h, err)
			}
			m, err := r.api.Movement(t.Context(), "cache", add.Version)
			if err != nil || m.Ratio != add.Movement.Ratio || m.From != add.From || len(m.Nodes) != 4 {
				t.Fatalf("%+v, %v", m, err)
			}
		})
	}
}

var _ membership.Directory = (*memstore.Store)(nil)
