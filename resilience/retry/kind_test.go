package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTable has a row for each kind: plain, idempotent.
func TestTable(t *testing.T) {
	f := func(k Kind, plain, idempotent bool) {
		t.Helper()
		if k.Again(Plain) != plain || k.Again(Idempotent) != idempotent {
			t.Errorf("%v: %v, %v; want %v, %v", k, k.Again(Plain), k.Again(Idempotent), plain, idempotent)
		}
	}
	f(None, false, false)
	f(Unknown, false, false)
	f(Dial, true, true)
	f(Refused, true, true)
	f(Unavailable, true, true)
	f(Timeout, false, true)
	f(Broken, false, true)
	f(Overload, false, false)
	f(Canceled, false, false)
	f(Local, false, false)
	f(Kind(99), false, false)
}

// TestTableInTheDocs compares the page's table with the code, row by row.
func TestTableInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithms/resilience.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (yes|no) \\| (yes|no) \\|").FindAllStringSubmatch(string(page), -1)
	got := map[string]string{}
	for _, r := range rows {
		got[strings.ToLower(r[1])] = r[2] + " " + r[3]
	}
	want := map[string]string{}
	word := map[bool]string{true: "yes", false: "no"}
	for k := Unknown; k <= Local; k++ {
		want[k.String()] = word[k.Again(Plain)] + " " + word[k.Again(Idempotent)]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/algorithms/resilience.md (-code +page):\n%s", d)
	}
}

func TestKindOf(t *testing.T) {
	f := func(err error, want Kind) {
		t.Helper()
		if got := KindOf(err); got != want {
			t.Errorf("KindOf(%v) = %v; want %v", err, got, want)
		}
		if err == nil {
			return
		}
		if got := KindOf(fmt.Errorf("get %q: %w", "k", err)); got != want {
			t.Errorf("wrapped: KindOf(%v) = %v; want %v", err, got, want)
		}
	}
	f(nil, None)
	f(errors.New("no such table"), Unknown)
	f(&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, Dial)
	f(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, Dial)
	f(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, Timeout)
	f(&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Broken)
	f(&net.OpError{Op: "write", Err: syscall.EPIPE}, Broken)
	f(&net.DNSError{Name: "cache-a", IsNotFound: true}, Dial)
	f(syscall.ECONNREFUSED, Dial)
	f(context.DeadlineExceeded, Timeout)
	f(context.Canceled, Canceled)
	f(io.EOF, Broken)
	f(io.ErrUnexpectedEOF, Broken)
	f(net.ErrClosed, Broken)
	f(h2Error{StreamID: 3, Code: refusedStream}, Refused)
	f(h2Error{StreamID: 3, Code: 2}, Broken)
	f(As(Local, errors.New("breaker: open")), Local)
	f(As(Overload, context.DeadlineExceeded), Overload) // the adapter knows better
	f(As(Local, nil), None)
	f(&Error{Kind: Unavailable}, Unavailable)
}

// h2Error turns itself into any struct with its fields, as net/http's does.
type h2Error struct {
	StreamID, Code uint32
	Cause          error
}

func (h2Error) Error() string { return "stream error" }
func (e h2Error) As(target any) bool {
	s, ok := target.(*streamError)
	if ok {
		*s = streamError(e)
	}
	return ok
}

// TestKindOfRealErrors has the errors of real connections.
func TestKindOfRealErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, err = net.Dial("tcp", addr)
	if KindOf(err) != Dial {
		t.Errorf("a closed port: %v is %v", err, KindOf(err))
	}
	if resp, err := http.Get("http://" + addr); err == nil {
		resp.Body.Close()
	} else if KindOf(err) != Dial {
		t.Errorf("the same through net/http: %v is %v", err, KindOf(err))
	}

	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/abort" {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := s.Client()
	defer c.CloseIdleConnections()
	resp, err := c.Get(s.URL + "/abort")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(resp.Body)
	resp.Body.Close()
	var stream streamError
	if !errors.As(err, &stream) || stream.Code != 2 || KindOf(err) != Broken {
		t.Errorf("an aborted HTTP/2 stream: %v is %v, %+v", err, KindOf(err), stream)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	resp, err = c.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	if KindOf(err) != Timeout {
		t.Errorf("a time-out: %v is %v", err, KindOf(err))
	}
	_, err = tls.Dial("tcp", addr, nil)
	if KindOf(err) != Dial {
		t.Errorf("tls to a closed port: %v is %v", err, KindOf(err))
	}
}

func TestKindOfStatus(t *testing.T) {
	http := map[int]Kind{
		200: None, 304: None, 400: Unknown, 404: Unknown, 408: Timeout, 429: Overload,
		500: Unknown, 501: Unknown, 502: Broken, 503: Unavailable, 504: Timeout,
	}
	for s, want := range http {
		if got := KindOfHTTP(s); got != want {
			t.Errorf("HTTP %d: %v; want %v", s, got, want)
		}
	}
	grpc := map[uint32]Kind{
		0: None, 1: Canceled, 2: Unknown, 3: Unknown, 4: Timeout, 5: Unknown, 6: Unknown, 7: Unknown, 8: Overload,
		9: Unknown, 10: Unknown, 11: Unknown, 12: Unknown, 13: Unknown, 14: Unavailable, 15: Unknown, 16: Unknown,
	}
	for c, want := range grpc {
		if got := KindOfGRPC(c); got != want {
			t.Errorf("gRPC %d: %v; want %v", c, got, want)
		}
	}
}

func TestPushback(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(v string, want time.Duration) {
		t.Helper()
		if got := PushbackHTTP(v, now); got != want {
			t.Errorf("Retry-After %q: %v; want %v", v, got, want)
		}
	}
	f("", 0)
	f("0", 0)
	f("120", 2*time.Minute)
	f("-1", 0)
	f("99999999999", 0)
	f("Fri, 02 Jan 2026 03:05:05 GMT", time.Minute)
	f("Fri, 02 Jan 2026 03:04:04 GMT", 0)
	f("soon", 0)
	g := func(v string, want time.Duration) {
		t.Helper()
		if got := PushbackGRPC(v); got != want {
			t.Errorf("grpc-retry-pushback-ms %q: %v; want %v", v, got, want)
		}
	}
	g("", 0)
	g("0", 0)
	g("250", 250*time.Millisecond)
	g("-1", -1)
	g("soon", -1)
	g("3000000000", -1)
}

func FuzzPushback(f *testing.F) {
	for _, s := range []string{"", "0", "120", "-1", "2147483647", "2147483648", "Fri, 02 Jan 2026 03:05:05 GMT", "soon", "+5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := PushbackHTTP(s, time.Unix(0, 0)); d < 0 {
			t.Errorf("Retry-After %q: %v", s, d)
		}
		if d := PushbackGRPC(s); d < -1 || d > 1<<31*time.Millisecond {
			t.Errorf("pushback %q: %v", s, d)
		}
	})
}
