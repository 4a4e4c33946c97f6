package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// result is how a program ended.
type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, program string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("%s %v: %v", program, args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func mustRun(t *testing.T, program string, args ...string) string {
	t.Helper()
	r := run(t, program, args...)
	if r.code != 0 {
		t.Fatalf("%s %v: exit %d: %s", program, args, r.code, r.stderr)
	}
	return r.stdout
}

// serve starts a shardd on etcd, until the test ends, and returns its URL.
func serve(t *testing.T, etcd *etcdtest.Process) string {
	t.Helper()
	p := background(t, "shardd", "serve", "--listen", "127.0.0.1:0", "--etcd", etcd.Endpoint)
	return p.next(t)
}

// stream is a background process and its output, line by line.
type stream struct {
	lines  chan string
	stderr *bytes.Buffer
}

func background(t *testing.T, program string, args ...string) *stream {
	t.Helper()
	cmd := exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{lines: make(chan string, 1000), stderr: &bytes.Buffer{}}
	cmd.Stderr = s.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		var b [4096]byte
		var line []byte
		for {
			n, err := out.Read(b[:])
			line = append(line, b[:n]...)
			for i := bytes.IndexByte(line, '\n'); i >= 0; i = bytes.IndexByte(line, '\n') {
				s.lines <- string(line[:i])
				line = line[i+1:]
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s %v:\n%s", program, args, s.stderr)
		}
	})
	return s
}

func (s *stream) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-s.lines:
		return line
	case <-time.After(30 * time.Second):
		t.Fatal("no output for 30 s")
		return ""
	}
}

func clusterFile(t *testing.T, ids ...string) string {
	t.Helper()
	d := topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Slots}}
	for _, id := range ids {
		d.Nodes = append(d.Nodes, topology.Node{ID: id, Weight: 1})
	}
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	writeFile(t, path, clusterfile.Format(d))
	return path
}

// TestMember06: field case member-06. Twenty nodes join and five operators edit
// at the same moment, through two servers: nothing is lost, versions have no
// gaps, and an edit of what has changed since is refused.
func TestMember06(t *testing.T) {
	etcd := etcdtest.Start(t)
	servers := []string{serve(t, etcd), serve(t, etcd)}
	seeds := []string{"seed-0", "seed-1", "seed-2", "seed-3", "seed-4"}
	mustRun(t, "shardd", "apply", "-f", clusterFile(t, seeds...), "--server", servers[0])

	want := map[string]uint32{}
	var all sync.WaitGroup
	for i := range 20 {
		id := fmt.Sprintf("node-%02d", i)
		want[id] = 1
		all.Go(func() { mustSucceed(t, "node", "add", id, "--server", servers[i%2]) })
	}
	for i, id := range seeds {
		want[id] = uint32(i + 2)
		all.Go(func() { mustSucceed(t, "node", "weight", id, fmt.Sprint(i+2), "--server", servers[i%2]) })
	}
	all.Wait()

	for _, server := range servers {
		got := map[string]uint32{}
		var v struct{ Nodes []topology.Node }
		if err := json.Unmarshal([]byte(mustRun(t, "shardd", "get", "-o", "json", "--server", server)), &v); err != nil {
			t.Fatal(err)
		}
		for _, n := range v.Nodes {
			got[n.ID] = n.Weight
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: nodes (-want +got):\n%s", server, diff)
		}
	}
	noGaps(t, servers[0])

	late := run(t, "shardd", "node", "weight", "seed-0", "9", "--if-match", "1.1+1", "--server", servers[1])
	if late.code != 4 || !strings.Contains(late.stderr, "conflict") || late.stdout != "" {
		t.Errorf("a late edit: %+v, want exit 4", late)
	}
}

// mustSucceed is mustRun of shardd for goroutines.
func mustSucceed(t *testing.T, args ...string) {
	if r := run(t, "shardd", args...); r.code != 0 {
		t.Errorf("shardd %v: exit %d: %s", args, r.code, r.stderr)
	}
}

func noGaps(t *testing.T, server string) {
	t.Helper()
	c, err := api.NewClient(api.ClientConfig{Servers: []string{server}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, err := c.History(t.Context(), "cache", 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range h.Versions { // the newest first
		if want := uint64(len(h.Versions) - i); e.Version.Epoch != 1 || e.Version.Seq != want {
			t.Errorf("version %s at place %d of %d", e.Version, i, len(h.Versions))
		}
	}
	if len(h.Versions) < 2 || len(h.Versions) > 26 {
		t.Errorf("%d versions for 26 edits", len(h.Versions))
	}
}

// TestEtcdGone: without etcd edits fail with exit 3 and a watch goes on; with
// etcd back both go on as before, by themselves.
func TestEtcdGone(t *testing.T) {
	etcd := etcdtest.Start(t)
	server := serve(t, etcd)
	file := clusterFile(t, "a", "b", "c")
	mustRun(t, "shardd", "apply", "-f", file, "--server", server)
	saved := filepath.Join(t.TempDir(), "saved")
	writeFile(t, saved, []byte(mustRun(t, "shardd", "get", "-o", "topology", "--server", server)))
	watch := background(t, "shardd", "watch", "--server", server)
	if line := watch.next(t); !strings.HasPrefix(line, "1.1\t3 nodes\t") {
		t.Errorf("watch: %q", line)
	}

	etcd.Stop(t)
	r := run(t, "shardd", "node", "add", "d", "--server", server, "--timeout", "8s")
	if r.code != 3 || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("node add without etcd: %+v, want exit 3", r)
	}
	if out := mustRun(t, "shardd", "route", "--file", saved, "key"); !strings.HasPrefix(out, "key\t") {
		t.Errorf("route by the saved version: %q", out)
	}

	etcd.Run(t)
	mustRun(t, "shardd", "node", "add", "d", "--server", server, "--timeout", "30s")
	if line := watch.next(t); !strings.HasPrefix(line, "1.2\t4 nodes\tnodes added") {
		t.Errorf("watch: %q", line)
	}
}
