package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/embedetcd/etcdtest"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
	"github.com/shardd/shardd/topology"
)

// agents is a cluster "c" in an etcd, with a controller that admits nodes.
type agents struct {
	t        *testing.T
	endpoint string
	store    membership.ClusterStore
	mu       sync.Mutex
	states   map[string][]topology.State // of every node, in the order of versions
}

func newAgents(t *testing.T) *agents {
	t.Helper()
	server, err := embedetcd.Start(t.Context(), embedetcd.Config{Dir: t.TempDir(), Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	store, err := etcdstore.New(server.Client(), etcdstore.Options{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: []topology.Node{{ID: "op", Weight: 1}}}
	if _, err := store.Create(t.Context(), d, "", ""); err != nil {
		t.Fatal(err)
	}
	a := &agents{t: t, endpoint: server.Endpoint(), store: store.Open("c"), states: map[string][]topology.State{}}
	c, err := membership.NewController(membership.ControllerConfig{Store: a.store, Roster: a.store.(membership.Roster), Elector: store, Cluster: "c", ID: "x",
		Admission: membership.AdmissionConfig{Join: 100 * time.Millisecond, Down: 200 * time.Millisecond, Settle: 500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- c.Run(ctx) }()
	go func() { ended <- a.store.Watch(ctx, a.note) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	return a
}

func (a *agents) note(s membership.State) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.Head == nil {
		return nil
	}
	for _, n := range s.Head.Nodes() {
		if list := a.states[n.ID]; len(list) == 0 || list[len(list)-1] != n.State {
			a.states[n.ID] = append(list, n.State)
		}
	}
	return nil
}

func (a *agents) seen(id string) []topology.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.states[id])
}

func (a *agents) eventually(what string, ok func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("not within 15 s: %s; states %v", what, a.states)
		}
	}
}

func (a *agents) is(id string, want topology.State) func() bool {
	return func() bool {
		list := a.seen(id)
		return len(list) > 0 && list[len(list)-1] == want
	}
}

func (a *agents) args(more ...string) []string {
	return append([]string{"agent", "--etcd", a.endpoint, "--cluster", "c", "--ttl", "1s", "--drain-grace", "50ms", "--log-level", "debug"}, more...)
}

// start runs an agent in this process; stop ends it and returns how it ended.
func (a *agents) start(more ...string) (stop func() ended) {
	ctx, cancel := context.WithCancel(a.t.Context())
	done := make(chan ended, 1)
	go func() { done <- callCtx(ctx, Shardd, "", a.args(more...)...) }()
	return func() ended { cancel(); return <-done }
}

func (a *agents) live(id string) membership.Live {
	roll, err := a.store.(membership.Roster).Roll(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, l := range roll.Live {
		if l.ID == id {
			return l
		}
	}
	return membership.Live{}
}

// TestAgent: an agent registers its node, shows its health, which moves nothing,
// and drains it before it leaves.
func TestAgent(t *testing.T) {
	a := newAgents(t)
	node, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	file := filepath.Join(t.TempDir(), "state")
	flags := []string{"--id", "n1", "--addr", node.Addr().String(), "--weight", "2", "--state-file", file,
		"--check", "tcp", "--check-interval", "20ms", "--check-threshold", "2", "--metrics", etcdtest.FreeAddr(t)}
	stop := a.start(flags...)
	a.eventually("active", a.is("n1", topology.StateActive))
	a.eventually("well", func() bool { return a.live("n1").Health == membership.HealthOK })
	node.Close()
	a.eventually("unwell", func() bool { l := a.live("n1"); return l.Health == membership.HealthBad && l.Reason != "" })
	if !a.is("n1", topology.StateActive)() {
		t.Errorf("bad health changed its state: %v", a.seen("n1"))
	}

	metrics := scrape(t, flags[len(flags)-1])
	for _, want := range []string{`shardd_agent_registered{node="n1"} 1`, `shardd_agent_health{health="bad",node="n1"} 1`, `shardd_agent_health{health="ok",node="n1"} 0`,
		`shardd_agent_checks_total{node="n1",result="failed"}`, `shardd_agent_incarnation{node="n1"} 1`, `shardd_agent_registrations_lost_total{node="n1"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}

	second := call(t, Shardd, "", a.args("--id", "n1", "--addr", "127.0.0.1:1")...)
	if second.code != ExitConflict || !strings.Contains(second.stderr, node.Addr().String()) {
		t.Errorf("a second agent of the same id: exit %d, %s", second.code, second.stderr)
	}

	if end := stop(); end.code != ExitOK || end.stdout != "" {
		t.Errorf("agent: %+v", end)
	}
	a.eventually("left", a.is("n1", topology.StateLeft))
	want := []topology.State{topology.StateJoining, topology.StateActive, topology.StateDraining, topology.StateLeft}
	if got := a.seen("n1"); !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}

	var first agentState
	if first, err = loadAgentState(file, "n1"); err != nil || first.Cluster.IsZero() || len(first.Identity) != 32 {
		t.Errorf("state file %+v %v", first, err)
	}
	stop = a.start(append(flags, "--no-drain")...) // no weight, no zone: kept
	a.eventually("active again", a.is("n1", topology.StateActive))
	if l := a.live("n1"); l.Identity != first.Identity || l.Incarnation <= first.Incarnation {
		t.Errorf("restarted as %+v, was %+v", l, first)
	}
	stop()
	if got := a.seen("n1"); slices.Contains(got[len(want):], topology.StateDraining) {
		t.Errorf("--no-drain drained: %v", got)
	}
}

// scrape returns what /metrics at addr shows.
func scrape(t *testing.T, addr string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// startProcess runs the program as a process of its own.
func (a *agents) startProcess(more ...string) *exec.Cmd {
	a.t.Helper()
	cmd := exec.Command(os.Args[0], a.args(more...)...)
	cmd.Env = append(os.Environ(), "SHARDD_TEST_MAIN=1")
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// TestAgentSignals: after SIGTERM the process is there until the node owns
// nothing; after kill -9 the node is out of the topology within lease and settle.
func TestAgentSignals(t *testing.T) {
	a := newAgents(t)
	polite, rude := a.startProcess("--id", "polite", "--addr", "x:1"), a.startProcess("--id", "rude", "--addr", "x:2")
	a.eventually("both are active", func() bool { return a.is("polite", topology.StateActive)() && a.is("rude", topology.StateActive)() })
	_ = polite.Process.Signal(syscall.SIGTERM)
	_ = rude.Process.Signal(syscall.SIGKILL)
	if err := polite.Wait(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	if s, err := a.store.Load(t.Context()); err != nil || owns(s.Head, "polite") {
		t.Errorf("the process ended while its node owns keys: %v %v", a.seen("polite"), err)
	}
	a.eventually("the killed one is out", a.is("rude", topology.StateLeft))
	if got := a.seen("rude"); slices.Contains(got, topology.StateDraining) {
		t.Errorf("states of the killed one: %v", got)
	}
}

// TestAgentUsage: what cannot be done as asked is refused before anything is.
func TestAgentUsage(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(broken, []byte("{"), 0o600), (agentState{Node: "b", Identity: "x"}).save(other)); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		end := call(t, Shardd, "", append([]string{"agent"}, args...)...)
		if end.code != ExitUsage || !strings.Contains(end.stderr, want) {
			t.Errorf("%v: exit %d, %s; want exit %d, %q", args, end.code, end.stderr, ExitUsage, want)
		}
	}
	good := []string{"--id", "a", "--cluster", "c", "--etcd", "127.0.0.1:1"}
	f("--id: node id is empty")
	f("no cluster", "--id", "a")
	f("no etcd", "--id", "a", "--cluster", "c")
	f("--ttl 100ms", append(good, "--ttl", "100ms")...)
	f("--weight", append(good, "--weight", "-1")...)
	f("--check \"ping\"", append(good, "--addr", "x:1", "--check", "ping")...)
	f("nothing to check", append(good, "--check", "tcp")...)
	f("--metrics nowhere", append(good, "--metrics", "nowhere")...)
	if end := call(t, Shardd, "", append(append([]string{"agent"}, good...), "--metrics", "0.0.0.0:0")...); end.code != ExitRefused {
		t.Errorf("--metrics for everybody: exit %d, %s", end.code, end.stderr)
	}
	f("no command", append(good, "--check", "exec", "--addr", "x:1")...)
	f("--check-threshold", append(good, "--addr", "x:1", "--check", "tcp", "--check-threshold", "0")...)
	f("not a state file", append(good, "--state-file", broken)...)
	f("belongs to node", append(good, "--state-file", other)...)
	f("state file: ", append(good, "--addr", "x:1", "--state-file", filepath.Join(filepath.Dir(broken), "none", "below"))...)
	f("go together", append(good, "--etcd-cert", "x")...)
}

// TestChecks: every kind of check, against what is well, unwell and silent.
func TestChecks(t *testing.T) {
	line := func(answer string) string { // a server that answers one line, or nothing
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		t.Cleanup(func() { l.Close(); wg.Wait() })
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() {
					defer c.Close()
					_, _ = c.Read(make([]byte, 100))
					if answer != "" {
						_, _ = io.WriteString(c, answer)
						return
					}
					_, _ = io.Copy(io.Discard, c) // until the client goes
				})
			}
		})
		return l.Addr().String()
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer web.Close()
	f := func(kind, target, want string) {
		t.Helper()
		c, err := checkFlags{kind: kind, target: target, interval: 1, timeout: 1, threshold: 1}.check("n", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err = c(ctx)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: %v, want %q", kind, target, err, want)
		}
	}
	closed := "127.0.0.1:1"
	f("tcp", line("x"), "")
	f("tcp", closed, "refused")
	f("redis", line("+PONG\r\n"), "")
	f("redis", line("-NOAUTH Authentication required.\r\n"), "")
	f("redis", line("-LOADING Redis is loading the dataset in memory\r\n"), "LOADING")
	f("redis", line(""), "timeout")
	f("memcached", line("VERSION 1.6.18\r\n"), "")
	f("memcached", line("ERROR\r\n"), "ERROR")
	f("memcached", closed, "refused")
	f("http", strings.TrimPrefix(web.URL, "http://"), "")
	f("http", web.URL+"/bad", "503")
	f("http", line(""), "deadline")
	f("exec", `test "$SHARDD_NODE $SHARDD_ADDR" = "n a:1"`, "")
	f("exec", "echo broken; exit 3", "broken")
	f("exec", "sleep 5", "deadline")
}

// TestJudge: one result of the other kind changes nothing, threshold of them do.
func TestJudge(t *testing.T) {
	f := func(results, want string) {
		t.Helper()
		j, got := &judge{threshold: 2}, ""
		for _, r := range results {
			var err error
			if r == '-' {
				err = errors.New("x")
			}
			got += string((string(j.hear(err)) + "?")[0])
		}
		if got != want {
			t.Errorf("%s: %s, want %s", results, got, want)
		}
	}
	f("+", "o")
	f("-", "?")
	f("--", "?b")
	f("+-+-+", "ooooo")
	f("+--", "oob")
	f("--+++", "?bboo")
}
