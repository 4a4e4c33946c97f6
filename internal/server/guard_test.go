package server_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/topology"
)

// TestSec03 is the part of the field case that the API decides: loopback only,
// and no page of another site.
func TestSec03(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		s, err := server.New(server.Config{Directory: memstore.New(), Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--insecure") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Directory: memstore.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), ln); err == nil || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("a listener on all addresses: %v", err)
	}

	r, _ := withStore(t)
	refused := func(headers ...string) {
		t.Helper()
		resp, body := r.call("GET", "/v1/clusters", "", headers...)
		if resp.status != http.StatusForbidden || errorOf(t, body).Code != api.CodeForbidden {
			t.Errorf("%v: %d %s", headers, resp.status, body)
		}
	}
	refused("Host", "evil.example")
	refused("Host", "evil.example:7420")
	refused("Host", "localhost.evil.example")
	refused("Host", "192.0.2.1:7420")
	refused("Origin", "http://evil.example")
	refused("Origin", "null")
	refused("Origin", "http://127.0.0.1:1") // another port is another origin
	refused("Sec-Fetch-Site", "cross-site")
	accepted := func(headers ...string) {
		t.Helper()
		if resp, body := r.call("GET", "/healthz", "", headers...); resp.status != http.StatusOK {
			t.Errorf("%v: %d %s", headers, resp.status, body)
		}
	}
	accepted("Host", "localhost:7420")
	accepted("Host", "LOCALHOST")
	accepted("Host", "127.0.0.1")
	accepted("Host", "[::1]:7420")
	accepted("Origin", "http://"+r.addr, "Sec-Fetch-Site", "same-origin")
	accepted("Sec-Fetch-Site", "none")

	// What a form of another page can send without asking first.
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		resp, body := r.call("POST", "/v1/clusters/cache/nodes/a/add", "{}", "Content-Type", kind)
		if resp.status != http.StatusUnsupportedMediaType {
			t.Errorf("content type %q: %d %s", kind, resp.status, body)
		}
	}
	for name, want := range map[string]string{"Access-Control-Allow-Origin": "", "X-Content-Type-Options": "nosniff"} {
		resp, _ := r.call("GET", "/healthz", "")
		if got := resp.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestInsecure(t *testing.T) {
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprint("127.0.0.1:", ln.Addr().(*net.TCPAddr).Port)
	r := runOn(t, server.Config{Directory: memstore.New(), AllowInsecure: true, AllowedHosts: []string{"Shardd.example."}}, ln)
	r.addr = addr
	host, _ := os.Hostname()
	for name, want := range map[string]int{"192.0.2.1:7420": 200, "shardd.example": 200, host: 200, "evil.example": 403} {
		if resp, body := r.call("GET", "/healthz", "", "Host", name); resp.status != want {
			t.Errorf("host %s: %d %s", name, resp.status, body)
		}
	}
}

func TestPage(t *testing.T) {
	r, _ := withStore(t)
	resp, body := r.call("GET", "/", "")
	if resp.status != http.StatusOK || !strings.Contains(body, "<title>shardd</title>") || !strings.Contains(resp.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d %v", resp.status, resp.header)
	}
}

func TestHealth(t *testing.T) {
	store := newFakeStore()
	store.show(newLine(t).next(3))
	r := run(t, server.Config{Directory: store})
	if _, err := r.first(1, topology.Ref{}); err != nil {
		t.Fatal(err)
	}
	f := func(path string, want int) {
		t.Helper()
		if resp, body := r.call("GET", path, ""); resp.status != want {
			t.Errorf("%s: %d %s", path, resp.status, body)
		}
	}
	f("/healthz", 200)
	f("/readyz", 200)
	store.fail(fmt.Errorf("etcd: %w", membership.ErrUnreachable))
	time.Sleep(1100 * time.Millisecond) // the probe's answer is shared for a second
	f("/healthz", 200)
	f("/readyz", 503)
	// Reads that promise the newest state, and edits, say that they cannot.
	for _, path := range []string{"topology", "spec", "topology?version=1.1"} {
		resp, body := r.call("GET", "/v1/clusters/cache/"+path, "")
		if e := errorOf(t, body); resp.status != 503 || e.Code != api.CodeStore || e.Hint == "" || resp.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, resp.status, body)
		}
	}
	resp, body := r.call("POST", "/v1/clusters/cache/nodes/x/add", "{}", "Content-Type", jsonBody)
	if resp.status != 503 || errorOf(t, body).Code != api.CodeStore {
		t.Errorf("edit: %d %s", resp.status, body)
	}
	// The others go on from memory.
	f("/v1/clusters", 200)
	f("/v1/clusters/cache/route?key=k", 200)
}

func TestMetrics(t *testing.T) {
	r, _ := withStore(t)
	r.put(declared(3))
	r.call("GET", "/v1/clusters/nope/topology", "")
	for prefix, want := range map[string]string{
		`shardd_cluster_nodes{cluster="cache"} `:                                  "3",
		`shardd_cluster_seq{cluster="cache"} `:                                    "1",
		`shardd_cluster_leading{cluster="cache"} `:                                "1",
		`shardd_edits_total{result="ok",verb="spec"} `:                            "1",
		`shardd_http_requests_total{method="GET",route="topology",status="404"} `: "1",
		`shardd_http_requests_total{method="PUT",route="spec",status="200"} `:     "1",
		`shardd_watches `:                                    "0",
		`shardd_edit_publish_seconds_count `:                 "1",
		`shardd_cluster_unpublished_edits{cluster="cache"} `: "0",
	} {
		if got := r.metric(prefix); got != want || want == "" {
			t.Errorf("%s: %q, want %q", prefix, got, want)
		}
	}
	for _, prefix := range []string{"go_goroutines ", "process_open_fds "} {
		if r.metric(prefix) == "" {
			t.Errorf("no %s", prefix)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := server.New(server.Config{}); err == nil {
		t.Error("no directory")
	}
	reg := prometheus.NewRegistry()
	if _, err := server.New(server.Config{Directory: memstore.New(), Registry: reg}); err != nil {
		t.Error(err)
	}
	if _, err := server.New(server.Config{Directory: memstore.New(), Registry: reg}); err == nil {
		t.Error("one registry for two servers")
	}
	s, err := server.New(server.Config{Directory: memstore.New(), Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Run(ctx); err == nil {
		t.Error("a server served twice")
	}
}
