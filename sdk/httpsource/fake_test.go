package httpsource_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line publishes versions of one cluster.
type line struct {
	t     testing.TB
	id    topology.ClusterID
	hist  topology.History
	table *placement.Table
}

func newLine(t testing.TB) *line {
	return &line{t: t, id: topology.NewClusterID(), hist: topology.NewHistory()}
}

func (l *line) copy() *line { c := *l; return &c }

func (l *line) publish(spec topology.Spec, n int) *topology.Topology {
	l.t.Helper()
	d := topology.Draft{Cluster: "cache", ID: l.id, History: l.hist, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: spec}
	for i := range n {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("node-%03d", i), Weight: 1})
	}
	if l.table != nil {
		d.Version.Seq = l.table.Topology().Version().Seq + 1
	}
	table, err := placement.Update(l.table, d)
	if err != nil {
		l.t.Fatal(err)
	}
	l.table = table
	return table.Topology()
}

func (l *line) ring(n int) *topology.Topology {
	l.t.Helper()
	return l.publish(topology.Spec{Algorithm: topology.Ring}, n)
}

// fake is a shardd that says what a test tells it to.
type fake struct {
	mu      sync.Mutex
	seen    []string // requests, with their queries
	refuse  func(w http.ResponseWriter, r *http.Request) bool
	lines   chan string // what open watches send
	objects map[topology.Digest]*topology.Object
	whole   map[string]*topology.Topology // by version
}

func newFake() *fake {
	return &fake{lines: make(chan string, 100), objects: make(map[topology.Digest]*topology.Object)}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.URL.RequestURI())
	refuse := f.refuse
	f.mu.Unlock()
	if refuse != nil && refuse(w, r) {
		return
	}
	if v := r.URL.Query().Get("version"); v != "" {
		f.version(w, v)
		return
	}
	if r.PathValue("digest") != "" {
		f.object(w, r)
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line := <-f.lines:
			if line == hangUp {
				return
			}
			fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// hangUp ends a watch.
const hangUp = "hang up"

func (f *fake) object(w http.ResponseWriter, r *http.Request) {
	d, _ := topology.ParseDigest(r.PathValue("digest"))
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.objects[d]; o != nil {
		_, _ = w.Write(o.Encode())
		return
	}
	fail(w, api.CodeNoObject)
}

func (f *fake) version(w http.ResponseWriter, v string) {
	f.mu.Lock()
	t := f.whole[v]
	f.mu.Unlock()
	if t == nil {
		fail(w, api.CodeNoVersion)
		return
	}
	b, err := t.MarshalSaved()
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
}

func fail(w http.ResponseWriter, code api.Code) {
	e := api.Errorf(code, "", "made up: %s", code)
	w.WriteHeader(e.HTTPStatus())
	_ = json.NewEncoder(w).Encode(api.ErrorBody{Error: e})
}

func (f *fake) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/clusters/cache/watch", f)
	mux.Handle("GET /v1/clusters/cache/topology", f)
	mux.Handle("GET /v1/clusters/cache/objects/{digest}", f)
	return mux
}

func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

func (f *fake) setRefuse(fn func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = fn
}

// send makes open watches send t.
func (f *fake) send(t *topology.Topology) {
	f.mu.Lock()
	for _, o := range t.Objects() {
		f.objects[o.Digest()] = o
	}
	f.mu.Unlock()
	f.lines <- encode(api.Message{Type: api.MessageFull, ClusterID: t.ClusterID(), Version: t.Version(), Digest: t.Digest(), Encoded: t.Encode()})
}

// beat makes open watches send a heartbeat.
func (f *fake) beat(t *topology.Topology, interval time.Duration) {
	f.lines <- encode(api.Message{Type: api.MessageHeartbeat, ClusterID: t.ClusterID(), Version: t.Version(), Digest: t.Digest(), IntervalMS: interval.Milliseconds()})
}

func encode(m api.Message) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// client follows the servers over the network, the first one first.
func client(t *testing.T, n *network, opts []sdk.Option, servers ...string) *sdk.Client {
	t.Helper()
	src, err := httpsource.New("cache", servers, httpsource.WithTransport(n.transport(t)), httpsource.WithChance(func() float64 { return 0 }))
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

// await waits until the client holds topo, and returns how long that took.
func await(t *testing.T, c *sdk.Client, topo *topology.Topology) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 5*time.Minute {
		if got := c.Topology(); got != nil && got.Ref() == topo.Ref() {
			return time.Since(start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("version %s does not come: %+v", topo.Version(), c.State())
	return 0
}
