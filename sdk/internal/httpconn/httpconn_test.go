package httpconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk/internal/httpconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener without sockets, for bubbles.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
	dialed atomic.Int64
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		p.dialed.Add(1)
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// serve starts a server in the bubble; it answers at once, but for /slow, which takes
// an hour.
func serve(t *testing.T) *pipes {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
			}
		}
	})}
	go func() { _ = srv.Serve(p) }()
	t.Cleanup(func() { _ = srv.Close() })
	return p
}

func get(t *testing.T, tr *httpconn.Transport, path string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tr.RoundTrip(req)
}

func ok(t *testing.T, tr *httpconn.Transport) {
	t.Helper()
	resp, err := get(t, tr, "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestAge: a connection serves requests until nine tenths of its age, and none after it.
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t)
		tr := httpconn.New(&http.Transport{DialContext: p.dial}, httpconn.Config{MaxAge: 10 * time.Minute})
		defer tr.Cut()
		want := func(n int64) {
			t.Helper()
			ok(t, tr)
			synctest.Wait()
			if got := p.dialed.Load(); got != n {
				t.Errorf("%d connections, want %d", got, n)
			}
		}
		want(1)
		for range 8 { // it is never idle for long
			time.Sleep(time.Minute)
			want(1)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		want(1)
		time.Sleep(time.Minute + time.Nanosecond)
		want(1) // the last request, which says that it is
		want(2)
		time.Sleep(11 * time.Minute)
		want(3) // idle for too long
	})
}

// TestRequests: a connection serves as many as it may.
func TestRequests(t *testing.T) {
	f := func(cfg httpconn.Config, requests int, want int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p := serve(t)
			tr := httpconn.New(&http.Transport{DialContext: p.dial}, cfg)
			defer tr.Cut()
			for range requests {
				ok(t, tr)
				synctest.Wait()
			}
			if n := p.dialed.Load(); n != want {
				t.Errorf("%+v: %d connections for %d requests, want %d", cfg, n, requests, want)
			}
		})
	}
	f(httpconn.Config{MaxRequests: 5}, 30, 6)
	f(httpconn.Config{MaxRequests: 1, MaxAge: -1}, 7, 7)
	f(httpconn.Config{MaxAge: -1}, 30, 1)
}

// TestCut: what is under way is ended, and nothing new begins.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t)
		tr := httpconn.New(&http.Transport{DialContext: p.dial}, httpconn.Config{})
		resp, err := get(t, tr, "/slow")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		tr.CloseIdle()
		time.Sleep(time.Minute)
		tr.Cut()
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Error("the answer came to its end")
		}
		var de *httpconn.DialError
		if _, err := get(t, tr, "/"); !errors.As(err, &de) || !errors.Is(err, net.ErrClosed) { //nolint:bodyclose // there is none
			t.Errorf("after the cut: %v", err)
		}
	})
}

// TestTLS: a connection under TLS is known, too, and with HTTP/2
// the limit of requests holds as well.
func TestTLS(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var opened atomic.Int64
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if (r.ProtoMajor == 2) != h2 {
				t.Errorf("%s", r.Proto)
			}
		}))
		srv.EnableHTTP2 = h2
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		srv.StartTLS()
		base, _ := srv.Client().Transport.(*http.Transport)
		base = base.Clone()
		base.DialContext = nil // httptest's goes by the name example.com
		tr := httpconn.New(base, httpconn.Config{MaxRequests: 3})
		for range 9 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if n := opened.Load(); n != 3 {
			t.Errorf("HTTP/2 %v: %d connections for 9 requests, want 3", h2, n)
		}
		tr.Cut()
		srv.Close()
	}
}
