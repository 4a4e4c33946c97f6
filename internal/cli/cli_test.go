package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if os.Getenv("SHARDD_TEST_MAIN") == "1" { // this binary as the program; see startProcess
		os.Exit(Main(Shardd))
	}
	goleak.VerifyTestMain(m)
}

// ended is how a program ended.
type ended struct {
	code           int
	stdout, stderr string
}

type program func(context.Context, Env, []string) int

func call(t *testing.T, p program, stdin string, args ...string) ended {
	t.Helper()
	return callCtx(t.Context(), p, stdin, args...)
}

func callCtx(ctx context.Context, p program, stdin string, args ...string) ended {
	var out, errs bytes.Buffer
	env := Env{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
	code := p(ctx, env, args)
	return ended{code, out.String(), errs.String()}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestExitCodes: one number, one meaning, however deep the reason lies.
func TestExitCodes(t *testing.T) {
	f := func(err error, want int) {
		t.Helper()
		for _, e := range []error{err, fmt.Errorf("--from: %w", err), errors.Join(errors.New("other"), err)} {
			if got := exitCode(e); got != want {
				t.Errorf("%v: exit %d, want %d", e, got, want)
			}
		}
	}
	if got := exitCode(nil); got != ExitOK {
		t.Errorf("no error: exit %d", got)
	}
	f(errors.New("anything"), ExitFailed)
	f(context.Canceled, ExitFailed)
	f(placement.ErrNoNodes, ExitFailed)
	f(membership.ErrNoCluster, ExitFailed)
	f(usagef("x"), ExitUsage)
	f(migrate.ErrFile, ExitUsage)
	f(migrate.ErrCluster, ExitUsage)
	f(migrate.ErrNoServer, ExitUsage)
	f(membership.ErrInvalid, ExitUsage)
	f(api.Errorf(api.CodeBadRequest, "", "x"), ExitUsage)
	f(membership.ErrUnreachable, ExitUnreachable)
	f(api.Errorf(api.CodeStore, "", "x"), ExitUnreachable)
	f(api.Errorf(api.CodeStopping, "", "x"), ExitUnreachable)
	f(membership.ErrConflict, ExitConflict)
	f(membership.ErrExists, ExitConflict)
	f(api.ErrForked, ExitConflict)
	f(&coded{ExitRefused, errors.New("x")}, ExitRefused)
}

func TestReport(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		var out bytes.Buffer
		report(Env{Stderr: &out}, "shardd", err)
		if out.String() != want {
			t.Errorf("%v: got %q, want %q", err, &out, want)
		}
	}
	f(nil, "")
	f(errors.New("no"), "shardd: no\n")
	f(errors.Join(errors.New("a"), errors.New("b")), "shardd: a; b\n")
	f(fmt.Errorf("call: %w", context.Canceled), "shardd: interrupted\n")
	f(writeError(syscall.EPIPE), "")
	f(writeError(syscall.ENOSPC), "shardd: standard output: no space left on device\n")
	f(fmt.Errorf("topology: %w", topology.ErrUnknown), "shardd: not known to this release; upgrade this program\n")
	f(usagef("c.yaml:1:1: %w", topology.ErrUnknown), "shardd: c.yaml:1:1: not known to this release\n")
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{0: "0 %", -5.8e-18: "0 %", 1: "100.00 %", 0.25: "25.00 %", 0.00012: "0.01 %", 0.0000123: "0.0012 %", -0.0000038: "-0.00038 %", -0.5: "-50.00 %"} {
		if got := percent(x); got != want {
			t.Errorf("percent(%g) = %q, want %q", x, got, want)
		}
	}
	if got := signed(0.5); got != "+50.00 %" {
		t.Errorf("got %q", got)
	}
	for n, want := range map[uint64]string{0: "0", 1023: "1023", 1 << 20: "1048576 (1.0 MiB)", 3 << 40: "3298534883328 (3.0 TiB)", math.MaxUint64: "18446744073709551615 (16777216.0 TiB)"} {
		if got := byteSize(n); got != want {
			t.Errorf("byteSize(%d) = %q, want %q", n, got, want)
		}
	}
}

const (
	nowFile  = "{cluster: cache, algorithm: slots, nodes: [{id: cache-a}, {id: cache-b}, {id: cache-c, weight: 2}]}\n"
	nextFile = "{cluster: cache, algorithm: slots, nodes: [{id: cache-a}, {id: cache-b}, {id: cache-c, weight: 2}, {id: cache-d}]}\n"
)

func files(t *testing.T) (now, next string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"now.yaml": nowFile, "next.yaml": nextFile} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "now.yaml", "next.yaml"
}

// TestPlanOutput freezes the outputs of plan and compare; the JSON is what
// programs read.
func TestPlanOutput(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	now, next := files(t)
	got := map[string]ended{}
	for name, args := range map[string][]string{
		"plan.json":    {"plan", "-o", "json", "--keys", "-", "--bytes-per-key", "1000"},
		"plan.yaml":    {"plan", "-o", "yaml"},
		"plan.txt":     {"plan", "--keys", "-", "--bytes-per-key", "1000"},
		"compare.json": {"compare", "-o", "json"},
		"compare.txt":  {"compare"},
	} {
		got[name] = call(t, Migrate, "user:1\nuser:2\nuser:3\nuser:4\nuser:5\n", append(args, "--from", now, "--to", next)...)
	}
	t.Chdir(dir)
	for name, r := range got {
		if r.code != ExitOK || r.stderr != "" {
			t.Errorf("%s: %+v", name, r)
		}
		golden(t, name, r.stdout)
	}
}

// TestDocumentedJSON: exactly the names that are documented for plan -o json, at
// their places, and numbers that are shares.
func TestDocumentedJSON(t *testing.T) {
	now, next := files(t)
	r := call(t, Migrate, "", "plan", "-o", "json", "--from", now, "--to", next)
	var v struct {
		From, To string
		Movement map[string]any
		Nodes    []map[string]any
		Flows    []map[string]any
	}
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	has := func(what string, m map[string]any, names ...string) {
		t.Helper()
		for _, n := range names {
			if _, ok := m[n]; !ok {
				t.Errorf("%s has no %q: %v", what, n, m)
			}
		}
		if len(m) != len(names) {
			t.Errorf("%s has more than %v: %v", what, names, m)
		}
	}
	has("movement", v.Movement, "ratio", "minimum", "minimum_realised", "excess", "between_unchanged", "remapped", "method", "interval")
	has("node", v.Nodes[0], "id", "before", "after", "in", "out")
	has("flow", v.Flows[0], "from", "to", "share")
	if v.Movement["interval"] != nil || v.From != now || v.To != next {
		t.Errorf("got %+v", v)
	}
}

// TestDemo runs the demo on fewer keys.
func TestDemo(t *testing.T) {
	r := call(t, Shardd, "", "demo", "--keys", "20000", "-o", "json")
	if r.code != ExitOK {
		t.Fatalf("%+v", r)
	}
	var v demoResult
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	var names []string
	for _, row := range v.Rows {
		names = append(names, row.Algorithm)
		low, high := 0.2, 0.3
		if row.Algorithm == "modulo" {
			low, high = 0.7, 0.8
		}
		if row.Moved < low || row.Moved > high || math.Abs(row.Exact-row.Moved) > 0.02 || math.Abs(row.Minimum-0.25) > 1e-9 ||
			row.PeakBefore < 1 || row.PeakAfter < 1 || row.NSPerRoute <= 0 || (row.TakenMS > 0) == (row.Algorithm == "modulo") {
			t.Errorf("%+v", row)
		}
	}
	if diff := cmp.Diff([]string{"modulo", "ring", "jump", "rendezvous", "maglev", "slots"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var table bytes.Buffer
	demoTable(&table, v)
	if !strings.HasPrefix(table.String(), "ALGORITHM") || strings.Count(table.String(), "\n") != 10 {
		t.Errorf("got %s", &table)
	}
}

func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := callCtx(ctx, Shardd, "", "demo"); r.code != ExitFailed || r.stdout != "" || !strings.HasSuffix(r.stderr, "shardd: interrupted\n") {
		t.Errorf("%+v", r)
	}
}

// TestCheckDemo: each broken promise is seen.
func TestCheckDemo(t *testing.T) {
	good := placement.Summary{Ratio: 0.25, Minimum: 0.25, MinimumRealised: 0.25}
	f := func(want string, edit func(*demoRow, *placement.Summary)) {
		t.Helper()
		row, s := demoRow{Moved: 0.2501}, good
		edit(&row, &s)
		err := checkDemo(row, api.EditResult{Movement: &placement.Report{Summary: s}}, 1_000_000)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("", func(*demoRow, *placement.Summary) {})
	f("between nodes that did not change", func(r *demoRow, _ *placement.Summary) { r.Needless = 1 })
	f("between nodes that did not change", func(_ *demoRow, s *placement.Summary) { s.BetweenUnchanged = 1e-9 })
	f("the new shares ask for", func(_ *demoRow, s *placement.Summary) { s.MinimumRealised = 0.24 })
	f("but 0.25 was published", func(r *demoRow, _ *placement.Summary) { r.Moved = 0.26 })
}

func TestCountDemo(t *testing.T) {
	row := countDemo("x", []string{"cache-a", "cache-a", "cache-b", "cache-c"}, []string{"cache-a", "cache-d", "cache-c", "cache-c"})
	want := demoRow{Algorithm: "x", Moved: 0.5, Needless: 1, PeakBefore: 1.5, PeakAfter: 2}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fake is a server that answers each path with one text.
func fake(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(text, `"published":false`) {
			w.WriteHeader(http.StatusAccepted)
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestNotPublished: an edit that no version answers yet is no success.
func TestNotPublished(t *testing.T) {
	url := fake(t, map[string]string{"POST /v1/clusters/cache/nodes/a/remove": `{"cluster":"cache","generation":7,"published":false,"version":"1.3","from":"1.3",
		"warnings":[{"code":"not_published","message":"m","hint":"h"}]}`})
	r := call(t, Shardd, "", "node", "remove", "a", "--cluster", "cache", "--server", url)
	if r.code != ExitFailed || !strings.Contains(r.stdout, "not published yet; newest is 1.3") ||
		r.stderr != "shardd: the edit stands as generation 7, but no version answers it yet; see shardd get, and the log of the leading server\n" {
		t.Errorf("%+v", r)
	}
}

func TestClusterName(t *testing.T) {
	none := fake(t, map[string]string{"GET /v1/clusters": `{"clusters":[]}`})
	two := fake(t, map[string]string{"GET /v1/clusters": `{"clusters":[{"name":"a"},{"name":"b"}]}`})
	foreign := fake(t, nil)
	f := func(server string, code int, want string) {
		t.Helper()
		if r := call(t, Shardd, "", "get", "--server", server); r.code != code || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("%+v, want exit %d saying %q", r, code, want)
		}
	}
	f(none, ExitFailed, "the server has no cluster yet; create one with")
	f(two, ExitUsage, "name one with --cluster: a, b\n")
	f(foreign, ExitFailed, "the answer is not shardd's; is the address right?")
}

func TestDescribeSpec(t *testing.T) {
	for want, s := range map[string]topology.Spec{
		"ring, 160 points per unit of weight; key hash xxh64; replicas 1":           {Algorithm: topology.Ring},
		"jump (jumpback), 4 buckets per unit of weight; key hash xxh64; replicas 1": {Algorithm: topology.Jump, JumpVariant: topology.JumpBack, JumpUnit: 4},
		"rendezvous, table of 256; key hash xxh64; replicas 3 in distinct zones":    {Algorithm: topology.Rendezvous, RendezvousTable: 256, Replicas: 3, ZoneAware: true},
		"rendezvous; key hash xxh64; replicas 1":                                    {Algorithm: topology.Rendezvous},
		"maglev, table of 65537; key hash xxh64; replicas 1; load bound 1.25":       {Algorithm: topology.Maglev, BoundedLoad: 1.25},
		"slots, 16384 slots; key hash crc16 with tag {}; replicas 1":                {Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"},
	} {
		if got := describeSpec(s.Normal()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTopologyTable freezes the output of get for people.
func TestTopologyTable(t *testing.T) {
	table, err := placement.Update(nil, topology.Draft{Cluster: "cache", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
		Spec:  topology.Spec{Algorithm: topology.Slots},
		Nodes: []topology.Node{{ID: "cache-a", Addr: "10.0.0.1:11211", Zone: "z1", Weight: 3}, {ID: "cache-b", Weight: 1, State: topology.StateDraining}, {ID: "c", Weight: 1}},
		Cause: topology.Cause{Kind: "created", By: "ops", Why: "a start"}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	topologyTable(&out, table, api.ETag{Version: topology.Version{Epoch: 1, Seq: 1}, Generation: 4})
	golden(t, "get.txt", out.String())
	b, err := json.MarshalIndent(tagged{table.Topology(), api.ETag{Version: topology.Version{Epoch: 1, Seq: 1}, Generation: 4}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "get.json", string(b)+"\n")
}

// TestSlotOf: under slots the slot is that of the table; under crc16 it is Redis
// Cluster's, whatever the algorithm.
func TestSlotOf(t *testing.T) {
	if got := slotOf(topology.Spec{Algorithm: topology.Ring, KeyHash: topology.XXH64}, 1); got != nil {
		t.Errorf("ring: %d", *got)
	}
	if got := slotOf(topology.Spec{Algorithm: topology.Ring, KeyHash: topology.CRC16}, 12739<<50); *got != 12739 {
		t.Errorf("crc16: %d", *got)
	}
	if got := slotOf(topology.Spec{Algorithm: topology.Slots, SlotCount: 100, KeyHash: topology.XXH64}, math.MaxUint64); *got != 99 {
		t.Errorf("slots: %d", *got)
	}
}

func TestServeTLSFiles(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(bad, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		r := call(t, Shardd, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--etcd", "https://127.0.0.1:1"}, args...)...)
		if r.code != ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
	f("--etcd-cacert: open /nowhere", "--etcd-cacert", "/nowhere")
	f("holds no certificate in PEM form", "--etcd-cacert", bad)
	f("--etcd-cert: ", "--etcd-cert", bad, "--etcd-key", bad)
	f("--etcd-cert and --etcd-key go together", "--etcd-cert", bad)
}

// TestRefusedBeforeItBegins: what cannot be done as asked is not begun.
func TestRefusedBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a server that starts all the same ends at once
	f := func(want string, args ...string) {
		t.Helper()
		if r := callCtx(ctx, Shardd, "", args...); r.code != ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, r, want)
		}
	}
	for _, verb := range []string{"dev", "serve"} {
		f("--mass-loss 5: want a share", verb, "--listen", "127.0.0.1:0", "--mass-loss", "5")
		f("--mass-loss NaN: want a share", verb, "--listen", "127.0.0.1:0", "--mass-loss", "NaN")
		f("want no negative time", verb, "--listen", "127.0.0.1:0", "--down", "-1s")
		f("want no negative time", verb, "--listen", "127.0.0.1:0", "--settle", "-1s")
	}
	f("--output", "cluster", "delete", "cache", "--yes", "cache", "-o", "xml")
	f("--output", "cluster", "delete", "cache", "--yes", "cache", "-o", "topology")
}

func TestPortTaken(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	r := call(t, Shardd, "", "dev", "--listen", strings.TrimPrefix(s.URL, "http://"))
	if r.code != ExitFailed || !strings.Contains(r.stderr, "address already in use; is another shardd running there?") {
		t.Errorf("%+v", r)
	}
}
