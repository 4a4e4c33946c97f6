package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership/memstore"
)

// serving runs a server on a store in memory until the test ends, and returns its
// address.
func serving(t *testing.T) string {
	t.Helper()
	store := memstore.New()
	s, err := server.New(server.Config{Directory: store, Elector: store})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	addr := ln.Addr().String()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if end := call(t, Shardd, "", "cluster", "list", "--server", addr); end.code == ExitOK {
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatal("the server is not there")
		}
	}
}

// clusterFile writes a file of so many nodes on a ring.
func clusterFile(t *testing.T, nodes ...string) string {
	t.Helper()
	text := "cluster: cache\nalgorithm: ring\nnodes:\n"
	if len(nodes) == 0 {
		text = "cluster: cache\nalgorithm: ring\nnodes: []\n"
	}
	for _, n := range nodes {
		text += "  - {id: " + n + "}\n"
	}
	name := filepath.Join(t.TempDir(), "cache.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestApplyMaxMovement: a change that moves more than is allowed is refused as a
// whole, with the share; a smaller one, and a new cluster, are not.
func TestApplyMaxMovement(t *testing.T) {
	addr := serving(t)
	apply := func(want int, file string, more ...string) ended {
		t.Helper()
		end := call(t, Shardd, "", append([]string{"apply", "-f", file, "--server", addr}, more...)...)
		if end.code != want {
			t.Fatalf("apply %v: exit %d, want %d: %s", more, end.code, want, end.stderr)
		}
		return end
	}
	apply(ExitUsage, clusterFile(t, "a", "b"), "--max-movement", "25")
	apply(ExitUsage, clusterFile(t, "a", "b"), "--max-movement", "nan")
	apply(ExitOK, clusterFile(t, "a", "b"), "--max-movement", "0", "--why", "a beginning")
	end := apply(ExitRefused, clusterFile(t, "a", "b", "c"), "--max-movement", "0.2")
	for _, want := range []string{"of the keys would move", "--max-movement allows 20", "nothing was changed"} {
		if !strings.Contains(end.stderr, want) {
			t.Errorf("no %q in %s", want, end.stderr)
		}
	}
	apply(ExitOK, clusterFile(t, "a", "b", "c"), "--max-movement", "0.5")
	apply(ExitConflict, clusterFile(t, "a", "b", "c", "d"), "--max-movement", "0.5", "--if-match", "1.1+1")
	history := call(t, Shardd, "", "history", "--server", addr)
	if !strings.Contains(history.stdout, "a beginning") || !strings.Contains(history.stdout, "1.2") || strings.Contains(history.stdout, "1.3") {
		t.Errorf("history:\n%s", history.stdout)
	}
}

// TestApplyEmpty: what get writes of a cluster without nodes can be applied, if
// that is said.
func TestApplyEmpty(t *testing.T) {
	addr := serving(t)
	if end := call(t, Shardd, "", "apply", "-f", clusterFile(t, "a"), "--server", addr); end.code != ExitOK {
		t.Fatal(end.stderr)
	}
	if end := call(t, Shardd, "", "node", "remove", "a", "--server", addr); end.code != ExitOK {
		t.Fatal(end.stderr)
	}
	file := call(t, Shardd, "", "get", "-o", "yaml", "--server", addr)
	if !strings.Contains(file.stdout, "nodes: []") {
		t.Fatalf("get -o yaml: %s%s", file.stdout, file.stderr)
	}
	if end := call(t, Shardd, file.stdout, "apply", "-f", "-", "--server", addr); end.code != ExitUsage || !strings.Contains(end.stderr, "--empty") {
		t.Errorf("apply of a file without nodes: exit %d, %s", end.code, end.stderr)
	}
	if end := call(t, Shardd, file.stdout, "apply", "-f", "-", "--empty", "--server", addr); end.code != ExitOK {
		t.Errorf("apply --empty: exit %d, %s", end.code, end.stderr)
	}
	if end := call(t, Shardd, "", "apply", "-f", clusterFile(t, "b"), "--server", addr); end.code != ExitOK {
		t.Errorf("nodes again: exit %d, %s", end.code, end.stderr)
	}
}

// TestErrorsReadWell: an error of the server says what and where, and nothing of
// the program's packages.
func TestErrorsReadWell(t *testing.T) {
	addr := serving(t)
	if end := call(t, Shardd, "", "apply", "-f", clusterFile(t, "a"), "--server", addr); end.code != ExitOK {
		t.Fatal(end.stderr)
	}
	for _, args := range [][]string{{"node", "remove", "x"}, {"node", "add", "a"}, {"diff", "1.1", "1.7"}, {"rollback", "1.9"}, {"get", "--cluster", "none"}} {
		end := call(t, Shardd, "", append(args, "--server", addr)...)
		if end.code == ExitOK {
			t.Errorf("%v succeeded", args)
		}
		for _, name := range []string{"memstore:", "membership:", "etcdstore:", "api:", "topology:"} {
			if strings.Contains(end.stderr, name) {
				t.Errorf("%v: %s", args, end.stderr)
			}
		}
	}
}
