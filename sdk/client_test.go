package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

func TestLifeOfAClient(t *testing.T) {
	synctest.Test(t, testLifeOfAClient) // a second passes
}

func testLifeOfAClient(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	if have := <-f.haves; !have.IsZero() {
		t.Fatalf("the source was told that %v is held", have)
	}
	if _, err := c.Route("k"); !errors.Is(err, sdk.ErrNotReady) {
		t.Fatalf("before the first topology: %v", err)
	}
	if got := c.Topology(); got != nil {
		t.Fatalf("topology before the first: %v", got)
	}

	first := l.ring(nodes(3)...)
	mustGive(t, f, first)
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := c.Route("k")
	if err != nil {
		t.Fatal(err)
	}
	owner, _ := l.table.Owner("k")
	if diff := cmp.Diff(first.Node(owner), r.Node()); diff != "" {
		t.Fatal(diff)
	}
	if r.ID() != r.Node().ID || r.Addr() != r.Node().Addr || r.Version() != first.Version() || r.Hash() != l.table.Hash("k") || r.Owner() != r.Node() || r.Detour() || r.Topology() != first {
		t.Fatalf("route %+v", r)
	}
	if rb, err := c.RouteBytes([]byte("k")); err != nil || rb != r {
		t.Fatalf("by bytes: %+v, %v", rb, err)
	}

	second := l.ring(nodes(4)...)
	mustGive(t, f, second)
	if c.Topology() != second {
		t.Fatal("the second topology is not there")
	}
	if r.Version() != first.Version() || r.Topology() != first {
		t.Fatal("a route that was kept changed its version")
	}
	want := sdk.State{Cluster: "cache", Held: second.Ref(), Nodes: 4, Taken: 2, Origin: sdk.OriginSource}
	got := c.State()
	got.TakenAt, got.ConfirmedAt = time.Time{}, time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}

	f.stop()
	if have := <-f.haves; have != second.Ref() {
		t.Fatalf("the source was called again with %v, held is %v", have, second.Ref())
	}

	c.Close()
	if _, err := c.Route("k"); !errors.Is(err, sdk.ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
	if err := c.WaitReady(t.Context()); !errors.Is(err, sdk.ErrClosed) {
		t.Fatalf("WaitReady after Close: %v", err)
	}
	if r.Addr() == "" || r.Node().ID == "" {
		t.Fatal("a route lost its node with Close")
	}
	c.Close()
}

func TestZeroRoute(t *testing.T) {
	var r sdk.Route
	if r.ID() != "" || r.Addr() != "" || r.Zone() != "" || r.Node() != (topology.Node{}) || r.Owner() != (topology.Node{}) ||
		!r.Version().IsZero() || r.Topology() != nil || r.Detour() || r.Replicas(nil) != nil {
		t.Fatal("the zero Route is not empty")
	}
}

func TestNewWithoutSource(t *testing.T) {
	if _, err := sdk.New(nil); err == nil {
		t.Fatal("a nil source was taken")
	}
}

// TestNeverBack: what does not come later in the own chain is refused with the
// reason, kept out, and shown; the client stays on what it has.
func TestNeverBack(t *testing.T) {
	l := newLine(t)
	v1 := l.ring(nodes(3)...)
	fork := l.copy()
	v2, v3 := l.ring(nodes(4)...), l.ring(nodes(5)...)
	fork2, fork3 := fork.ring(nodes(2)...), fork.ring(nodes(1)...)
	other := newLine(t).ring(nodes(9)...)
	rival := l.copy() // a second store that begins the same epoch
	l.newEpoch()
	rival.newEpoch()
	v21, rival21 := l.ring(nodes(6)...), rival.ring(nodes(7)...)

	var hooked []string
	c, f := start(t, sdk.WithHooks(sdk.Hooks{
		OnTaken: func(from, to topology.Ref, _ time.Duration) {
			hooked = append(hooked, fmt.Sprint(from.Version, " -> ", to.Version))
		},
		OnRefused: func(e *sdk.RefusedError) { hooked = append(hooked, "refused "+e.Offered.Version.String()) },
	}))
	step := func(name string, topo *topology.Topology, want error, held *topology.Topology) {
		t.Helper()
		err := f.give(topo)
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", name, err, want)
		}
		if c.Topology() != held {
			t.Fatalf("%s: client is on %v, want %v", name, c.Topology().Ref(), held.Ref())
		}
		var refused *sdk.RefusedError
		if want != nil && (!errors.As(err, &refused) || refused.Held != held.Ref() || refused.Offered != topo.Ref() || !errors.Is(c.State().Problem, want)) {
			t.Fatalf("%s: %#v, state %+v", name, err, c.State())
		}
		if want == nil && c.State().Problem != nil {
			t.Fatalf("%s: problem %v stays", name, c.State().Problem)
		}
	}
	step("first", v1, nil, v1)
	step("first again", v1, nil, v1)
	step("another cluster", other, sdk.ErrCluster, v1)
	step("next", v2, nil, v2)
	step("back", v1, sdk.ErrOlder, v2)
	step("same version of a copy", fork2, sdk.ErrForked, v2)
	step("next version of a copy", fork3, sdk.ErrForked, v2)
	step("next but one epoch", v21, nil, v21)
	step("same epoch begun elsewhere", rival21, sdk.ErrForked, v21)
	step("earlier epoch", v3, sdk.ErrOlder, v21)
	if got := c.State(); got.Taken != 3 || got.Refused != 6 {
		t.Fatalf("taken %d, refused %d", got.Taken, got.Refused)
	}
	want := []string{"0.0 -> 1.1", "refused 1.1", "1.1 -> 1.2", "refused 1.1", "refused 1.2", "refused 1.3", "1.2 -> 2.1", "refused 2.1", "refused 1.3"}
	if diff := cmp.Diff(want, hooked); diff != "" {
		t.Fatal(diff)
	}
}

// TestSec04: a client follows one cluster id, configured or seen first, and
// names both when another one comes.
func TestSec04(t *testing.T) {
	ours, theirs := newLine(t), newLine(t)
	a, b := ours.ring(nodes(3)...), theirs.ring(nodes(3)...)
	f := func(name string, c *sdk.Client, src *feed) {
		t.Helper()
		err := src.give(b)
		if !errors.Is(err, sdk.ErrCluster) || !strings.Contains(err.Error(), ours.id.String()) || !strings.Contains(err.Error(), theirs.id.String()) {
			t.Fatalf("%s: %v", name, err)
		}
		if topo := c.Topology(); topo != nil && topo != a {
			t.Fatalf("%s: routes by %v", name, topo.Ref())
		}
	}
	pinned, src := start(t, sdk.WithClusterID(ours.id))
	f("configured, nothing held", pinned, src)
	if _, err := pinned.Route("k"); !errors.Is(err, sdk.ErrNotReady) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pinned.WaitReady(ctx); !errors.Is(err, sdk.ErrNotReady) || !errors.Is(err, sdk.ErrCluster) || !errors.Is(err, context.Canceled) {
		t.Fatalf("WaitReady: %v", err)
	}
	mustGive(t, src, a)
	f("configured", pinned, src)

	seen, src := start(t)
	mustGive(t, src, a)
	f("first seen", seen, src)
}

// TestUnusable: topologies of the own chain that cannot be used leave the last
// good one in place.
func TestUnusable(t *testing.T) {
	l := newLine(t)
	good := l.publish(topology.Spec{Algorithm: topology.Maglev, TableSize: 251}, nodes(3)...)
	next := l.publish(topology.Spec{Algorithm: topology.Maglev, TableSize: 251}, nodes(4)...)
	bare, err := topology.Decode(next.Encode())
	if err != nil {
		t.Fatal(err)
	}
	draft := next.Draft()
	draft.Mapping[0] ^= 1
	wrong, err := topology.New(draft)
	if err != nil {
		t.Fatal(err)
	}
	c, f := start(t)
	mustGive(t, f, good)
	for _, tc := range []struct {
		name string
		topo *topology.Topology
		want error
	}{{"table missing", bare, topology.ErrMissingObject}, {"another mapping digest", wrong, placement.ErrMapping}} {
		err := f.give(tc.topo)
		if !errors.Is(err, tc.want) || !errors.Is(c.State().Problem, tc.want) {
			t.Fatalf("%s: %v, state %v", tc.name, err, c.State().Problem)
		}
		if r, err := c.Route("k"); err != nil || r.Version() != good.Version() {
			t.Fatalf("%s: %v, %v", tc.name, r.Version(), err)
		}
	}
	// What the source itself cannot decode it reports.
	f.report(fmt.Errorf("version 1.2: %w", topology.ErrUnknown))
	if !errors.Is(c.State().Problem, topology.ErrUnknown) {
		t.Fatalf("problem %v", c.State().Problem)
	}
	mustGive(t, f, next)
	if c.State().Problem != nil {
		t.Fatalf("problem %v stays after a good version", c.State().Problem)
	}
}

// TestSdk02 is the part of the field case that the client decides: what says
// nothing changes nothing, what says "no nodes" is obeyed, and both mend.
func TestSdk02(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.report(errors.New("connection refused"))
		if err := c.WaitReady(ctx); !errors.Is(err, sdk.ErrNotReady) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
			t.Fatalf("nothing came: %v", err)
		}
		mustGive(t, f, l.ring(nodes(5)...))

		time.Sleep(time.Hour) // nothing comes
		f.report(errors.New("connection refused"))
		if _, err := c.Route("k"); err != nil {
			t.Fatal(err)
		}
		if age := c.Age(); age != time.Hour {
			t.Fatalf("age %v", age)
		}
		mustGive(t, f, nil) // the source says: still the newest
		if age := c.Age(); age != 0 || c.State().Problem != nil {
			t.Fatalf("age %v, problem %v", age, c.State().Problem)
		}

		f.stop() // the source gives up, and is asked again within a second
		<-f.haves
		before := time.Now()
		<-f.haves
		if waited := time.Since(before); waited < 500*time.Millisecond || waited > time.Second {
			t.Fatalf("called again after %v", waited)
		}

		mustGive(t, f, l.ring())
		for _, call := range []func() error{
			func() error { _, err := c.Route("k"); return err },
			func() error { _, err := c.RouteBytes([]byte("k")); return err },
			func() error { _, err := c.RouteN(nil, "k", 3); return err },
		} {
			if err := call(); !errors.Is(err, sdk.ErrNoNodes) {
				t.Fatalf("no nodes: %v", err)
			}
		}
		if c.Topology().Len() != 0 {
			t.Fatal("the empty topology is not shown")
		}
		zero := nodes(2)
		zero[0].Weight, zero[1].Weight = 0, 0
		mustGive(t, f, l.ring(zero...))
		if _, err := c.Route("k"); !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatalf("all weights 0: %v", err)
		}
		mustGive(t, f, l.ring(nodes(5)...))
		if _, err := c.Route("k"); err != nil {
			t.Fatalf("nodes are back: %v", err)
		}
	})
}

// TestSdk01: 32 goroutines look up while versions come and go; every answer is
// of one version, and what was handed out stays as it was.
func TestSdk01(t *testing.T) {
	const versions = 500
	l := newLine(t)
	spec := topology.Spec{Algorithm: topology.Ring, VNodes: 8, Replicas: 3}
	c, f := start(t)
	kept := l.publish(spec, nodes(10)...)
	mustGive(t, f, kept)
	before := append([]topology.Node(nil), kept.Nodes()...)

	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			var routes []sdk.Route
			var replicas []topology.Node
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				runtime.Gosched() // or the versions wait for the readers' time slices
				key := fmt.Sprint("key", g, i)
				r, err := c.Route(key)
				if err != nil || r.Node().ID != r.ID() || r.ID() == "" {
					t.Errorf("route %+v: %v", r, err)
					return
				}
				routes, err = c.RouteN(routes[:0], key, 3)
				replicas = routes[0].Replicas(replicas[:0])
				if err != nil || len(routes) != 3 || len(replicas) != 3 || routes[0].Version() != routes[2].Version() {
					t.Errorf("routes %v, replicas %v: %v", routes, replicas, err)
					return
				}
				for j, n := range c.Topology().Nodes() {
					if n.ID == "" {
						t.Errorf("node %d has no id", j)
					}
				}
				if g%8 == 0 {
					c.OnChange(func(ch sdk.Change) { ch.To.Len() })()
				}
			}
		})
	}
	for i := range versions {
		mustGive(t, f, l.publish(spec, nodes(10+(i+1)%2)...))
	}
	close(stop)
	wg.Wait()
	if diff := cmp.Diff(before, kept.Nodes()); diff != "" {
		t.Fatalf("nodes of an earlier version changed: %s", diff)
	}
	if got := c.State().Taken; got != versions+1 {
		t.Fatalf("%d versions taken", got)
	}
}

// TestProblemRepeats: a problem that repeats is logged as a warning once, until
// things are well again; the hook gets every one.
func TestProblemRepeats(t *testing.T) {
	var log bytes.Buffer
	var hooked int
	l := newLine(t)
	c, f := start(t, sdk.WithLogger(hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})),
		sdk.WithHooks(sdk.Hooks{OnProblem: func(error) { hooked++ }}))
	for range 3 {
		f.report(errors.New("no answer"))
	}
	mustGive(t, f, l.ring(nodes(1)...))
	f.report(errors.New("no answer"))
	c.Close()
	if lines := strings.Count(log.String(), "no answer"); lines != 2 || hooked != 4 {
		t.Fatalf("%d warnings, %d calls of the hook:\n%s", lines, hooked, &log)
	}
}
