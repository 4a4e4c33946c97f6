package embedetcd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/embedetcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB, c embedetcd.Config) *embedetcd.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := embedetcd.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestRestart: what was written is there after a restart, on another port.
func TestRestart(t *testing.T) {
	for name, dev := range map[string]bool{"dev": true, "production": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedetcd.Config{Dir: t.TempDir(), Dev: dev}
			s := start(t, c)
			if _, err := s.Client().Put(t.Context(), "k", "v"); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			<-s.Done()
			s = start(t, c)
			r, err := s.Client().Get(t.Context(), "k")
			if err != nil || len(r.Kvs) != 1 || string(r.Kvs[0].Value) != "v" {
				t.Errorf("after a restart: %v %v", r, err)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		c    embedetcd.Config
		says string
	}{
		"no directory": {embedetcd.Config{}, "directory"},
		"a file":       {embedetcd.Config{Dir: file}, file},
		"everywhere":   {embedetcd.Config{Dir: t.TempDir(), Listen: "0.0.0.0:0"}, "0.0.0.0:0"},
		"another host": {embedetcd.Config{Dir: t.TempDir(), Listen: "10.1.2.3:2379"}, "loopback"},
		"a name":       {embedetcd.Config{Dir: t.TempDir(), Listen: "localhost:2379"}, "loopback"},
		"no port":      {embedetcd.Config{Dir: t.TempDir(), Listen: "127.0.0.1"}, "127.0.0.1"},
		"a taken port": {embedetcd.Config{Dir: t.TempDir(), Listen: taken.Addr().String()}, "in use"},
	} {
		_, err := embedetcd.Start(t.Context(), c.c)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "embedetcd: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := embedetcd.Start(ctx, embedetcd.Config{Dir: t.TempDir()}); err == nil {
		s.Close()
		t.Error("started although the context had ended")
	}
}

// TestQuiet: a normal life writes nothing above debug; a start that fails, or a
// disk that is slow, still may.
func TestQuiet(t *testing.T) {
	var out syncBuffer
	c := embedetcd.Config{Dir: t.TempDir(), Dev: true, Logger: hclog.New(&hclog.LoggerOptions{Name: "shardd", Output: &out, Level: hclog.Debug})}
	for range 2 {
		s := start(t, c)
		if _, err := s.Client().Put(t.Context(), "k", "v"); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if !strings.Contains(out.String(), "shardd.etcd: ") {
		t.Error("nothing was logged at all")
	}
	for line := range strings.Lines(out.String()) {
		slow := strings.Contains(line, "slow") || strings.Contains(line, "took too long") || strings.Contains(line, "exceeded")
		if !strings.Contains(line, "[DEBUG]") && !slow {
			t.Errorf("a normal life logs: %s", line)
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestSec03: nothing listens beyond the loopback interface, a page in a browser
// cannot reach the store by a rebound name, and the data are the owner's alone.
// (Field case sec-03: a bundled etcd on all interfaces, with CORS * and any Host.)
func TestSec03(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // as umask 0 leaves it
		t.Fatal(err)
	}
	s := start(t, embedetcd.Config{Dir: dir, Dev: true})
	t.Run("sockets", func(t *testing.T) {
		for _, addr := range listeners(t) {
			if !addr.IP.IsLoopback() {
				t.Errorf("listens at %s", addr)
			}
		}
	})
	t.Run("browser", func(t *testing.T) { browser(t, s.Endpoint()) })
	t.Run("modes", func(t *testing.T) {
		for _, path := range []string{dir, filepath.Join(dir, "etcd"), filepath.Join(dir, "etcd", "member")} {
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
		}
	})
}

func browser(t *testing.T, endpoint string) {
	for _, path := range []string{"/version", "/metrics", "/v3/kv/range", "/health"} {
		get := func(host, origin string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			if origin != "" {
				req.Header.Set("Origin", origin)
			}
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin")
		}
		if code, _ := get("evil.example", ""); code < 400 {
			t.Errorf("%s with Host evil.example: %d", path, code)
		}
		if _, allowed := get("127.0.0.1", "http://evil.example"); allowed != "" {
			t.Errorf("%s with Origin http://evil.example: allowed origin %q", path, allowed)
		}
	}
	resp, err := http.Get(endpoint + "/debug/pprof/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode < 400 {
		t.Errorf("the profiler answers %d", resp.StatusCode)
	}
}

// listeners returns the addresses that this process listens at.
func listeners(t *testing.T) []*net.TCPAddr {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, which only Linux has")
	}
	own := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if link, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			own[link] = true
		}
	}
	var addrs []*net.TCPAddr
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue // a kernel without IPv6
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == "0A" && own["socket:["+fields[9]+"]"] {
				addrs = append(addrs, parseAddr(t, fields[1]))
			}
		}
	}
	if len(addrs) < 2 {
		t.Fatalf("found the listeners %v: fewer than etcd has", addrs)
	}
	return addrs
}

// parseAddr reads the kernel's form: words of the machine's byte order in
// hexadecimal, a colon, the port.
func parseAddr(t *testing.T, s string) *net.TCPAddr {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	ip, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word) // little-endian machines, which all of ours are
	}
	var n int
	if _, err := fmt.Sscanf(port, "%x", &n); err != nil {
		t.Fatal(err)
	}
	return &net.TCPAddr{IP: ip, Port: n}
}

// TestInUse: a directory that another member has is refused at once, and free
// again after it.
func TestInUse(t *testing.T) {
	c := embedetcd.Config{Dir: t.TempDir(), Dev: true}
	s := start(t, c)
	if _, err := embedetcd.Start(t.Context(), c); !errors.Is(err, embedetcd.ErrInUse) || !strings.Contains(err.Error(), c.Dir) {
		t.Errorf("the second member of one directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, c)
}
