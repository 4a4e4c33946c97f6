package live

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/placement"
)

// keys are the recorded lists: 867 texts and 58 of arbitrary bytes.
func keys(t *testing.T) (text, binary []string) {
	t.Helper()
	var texts struct{ Keys []string }
	var bins struct {
		Keys []string `json:"keys_hex"`
	}
	for name, v := range map[string]any{"keys_text.json": &texts, "keys_bin.json": &bins} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range bins.Keys {
		b, err := hex.DecodeString(h)
		if err != nil {
			t.Fatal(err)
		}
		binary = append(binary, string(b))
	}
	if len(texts.Keys) != 867 || len(binary) != 58 {
		t.Fatalf("%d and %d keys", len(texts.Keys), len(binary))
	}
	return texts.Keys, binary
}

// carried leaves out keys that a protocol does not carry as they are.
func carried(all []string, ok func(c byte) bool) []string {
	var out []string
	for _, k := range all {
		fine := k != ""
		for i := range len(k) {
			fine = fine && ok(k[i])
		}
		if fine {
			out = append(out, k)
		}
	}
	return out
}

// inHeader says whether a byte of a key can stand anywhere in a header's value.
func inHeader(c byte) bool { return c > ' ' && c != 0x7f }

// inMemcached says whether a byte can stand in a key of memcached's text protocol.
func inMemcached(c byte) bool { return c > ' ' && c != 0x7f }

// mapping is what another system's configuration comes to.
func mapping(t *testing.T, file, pool string) *placement.Table {
	t.Helper()
	l := migrate.Loader{From: migrate.Import{Pool: pool}}
	side, err := l.Source(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return side.Table
}

// agrees compares what answered with what the mapping says, key by key; answers
// are addresses of nodes.
func agrees(t *testing.T, what string, table *placement.Table, keys, answers []string) {
	t.Helper()
	wrong := 0
	used := make(map[string]bool)
	for i, key := range keys {
		at := table.AppendNodes(nil, []byte(key), 1)
		if len(at) == 0 {
			t.Fatalf("%s: no node", what)
		}
		used[answers[i]] = true
		if want := table.Topology().Node(at[0]).Addr; answers[i] != want {
			if wrong++; wrong <= 3 {
				t.Errorf("%s: %q went to %s, the mapping says %s", what, key, answers[i], want)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d keys differ", what, wrong, len(keys))
		return
	}
	t.Logf("%s: %d keys on %d of %d nodes agree", what, len(keys), len(used), table.Len())
}

// backends are HTTP servers that answer with their own address: n on TCP, and one
// at each of paths.
func backends(t *testing.T, n int, paths ...string) []string {
	t.Helper()
	var addrs []string
	serve := func(network, addr string) {
		ln, err := net.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		name := ln.Addr().String()
		if network == "unix" {
			name = "unix:" + addr
		}
		addrs = append(addrs, name)
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Serve(ln)
		}()
		t.Cleanup(func() {
			s.Close()
			<-done
		})
	}
	for range n {
		serve("tcp", "127.0.0.1:0")
	}
	for _, p := range paths {
		serve("unix", p)
	}
	return addrs
}

// ask sends one request a key, as text, over a few connections without waiting for
// answers, and returns their bodies.
func ask(t *testing.T, addr string, keys []string, request func(key string) string) []string {
	t.Helper()
	const connections = 4
	answers := make([]string, len(keys))
	var wait sync.WaitGroup
	for first := range connections {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			w := bufio.NewWriter(conn)
			for i := first; i < len(keys); i += connections {
				_, _ = w.WriteString(request(keys[i])) // an error shows below
			}
			_ = w.Flush()
		})
		wait.Go(func() {
			r := bufio.NewReader(conn)
			for i := first; i < len(keys) && !t.Failed(); i += connections {
				var err error
				if answers[i], err = answer(r); err != nil {
					t.Errorf("%q: %v", keys[i], err)
				}
			}
		})
	}
	if wait.Wait(); t.Failed() {
		t.FailNow()
	}
	return answers
}

func answer(r *bufio.Reader) (string, error) {
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = errors.New(a.Status)
	}
	return string(body), err
}

func write(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fill stores every key with the server's own address as its value.
func fill(t *testing.T, network, addr, name string, keys []string) {
	t.Helper()
	var b bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&b, "set %s 0 0 %d noreply\r\n%s\r\n", k, len(name), name)
	}
	b.WriteString("version\r\n")
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "VERSION") {
		t.Fatalf("%q, %v", line, err)
	}
}

// get reads every key and returns the values.
func get(t *testing.T, addr string, keys []string) []string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&b, "get %s\r\n", k)
	}
	var wait sync.WaitGroup
	defer func() {
		conn.Close()
		wait.Wait()
	}()
	wait.Go(func() { _, _ = conn.Write(b.Bytes()) }) // an error shows below
	r := bufio.NewReader(conn)
	answers := make([]string, len(keys))
	for i, k := range keys {
		head, err := r.ReadString('\n')
		if err != nil || !strings.HasPrefix(head, "VALUE ") {
			t.Fatalf("%q: %q, %v", k, head, err)
		}
		value, _ := r.ReadString('\n')
		end, err := r.ReadString('\n')
		if err != nil || end != "END\r\n" {
			t.Fatalf("%q: %q, %v", k, end, err)
		}
		answers[i] = strings.TrimSpace(value)
	}
	return answers
}
