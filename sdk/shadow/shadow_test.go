package shadow_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk/shadow"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is the first publication of n nodes under a spec.
func table(t testing.TB, spec topology.Spec, n int) *placement.Table {
	t.Helper()
	d := topology.Draft{Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: spec.Normal()}
	for i := range n {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("n%d", i), Addr: fmt.Sprintf("10.0.0.%d:11211", i+1), Weight: 1})
	}
	tab, err := placement.Update(nil, d)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

var (
	ring   = topology.Spec{Algorithm: topology.Ring}
	ketama = topology.Spec{Compat: topology.Foreign{Mode: topology.ModeKetama}}
	caddy  = topology.Spec{Compat: topology.Foreign{Mode: topology.ModeCaddy, Distribution: "2.10"}}
)

// Every request is counted where the two tables put it, whatever their kind.
func TestObserve(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new topology.Spec
		n, m     int
	}{
		{"grow", ring, ring, 4, 5}, {"leave ketama", ketama, ring, 4, 4}, {"both ketama", ketama, ketama, 4, 3}, {"plan only", caddy, ring, 3, 3}, {"the same", ring, ring, 3, 3},
	} {
		a, b := table(t, c.old, c.n), table(t, c.new, c.m)
		var moves []shadow.Move
		s := shadow.New(a, b, shadow.WithMoves(func(m shadow.Move) { moves = append(moves, m) }))
		want := make(map[string]*shadow.NodeFigures)
		for _, tab := range []*placement.Table{a, b} {
			for _, n := range tab.Topology().Nodes() {
				want[n.ID] = &shadow.NodeFigures{ID: n.ID}
			}
		}
		moved := 0
		for i := range 2000 {
			key := fmt.Sprintf("key-%d", i)
			x, _ := a.Owner(key)
			y, _ := b.Owner(key)
			from, to := want[a.Topology().Node(x).ID], want[b.Topology().Node(y).ID]
			from.Before++
			to.After++
			if from != to {
				from.Out++
				to.In++
				moved++
			}
			if got := s.Observe(key); got != (from != to) {
				t.Fatalf("%s: %q moves: %v", c.name, key, got)
			}
		}
		f := s.Figures()
		if f.Requests != 2000 || f.Moved != uint64(moved) || math.Abs(f.Ratio-float64(moved)/2000) > 1e-12 || len(moves) != moved || len(f.Nodes) != len(want) {
			t.Errorf("%s: %+v, %d moves told, want %d", c.name, f, len(moves), moved)
		}
		for _, n := range f.Nodes {
			if n != *want[n.ID] {
				t.Errorf("%s: %+v, want %+v", c.name, n, *want[n.ID])
			}
		}
		if c.name == "the same" && moved != 0 || c.name != "the same" && moved == 0 {
			t.Errorf("%s: %d moved", c.name, moved)
		}
	}
}

// Where nobody owns anything, requests have no node, and all that get one move.
func TestObserveNoNodes(t *testing.T) {
	s := shadow.New(table(t, ring, 0), table(t, ring, 2))
	if !s.Observe("k") {
		t.Error("a request that gets a node does not move")
	}
	if f := s.Figures(); f.Moved != 1 || f.Nodes[0] != (shadow.NodeFigures{Before: 1, Out: 1}) {
		t.Errorf("%+v", f)
	}
}

// Counts go on over a change of mappings, and Reset ends them.
func TestSet(t *testing.T) {
	a, b, c := table(t, ring, 2), table(t, ring, 3), table(t, ring, 5)
	s := shadow.New(a, b)
	for i := range 100 {
		s.Observe(fmt.Sprint(i))
	}
	s.Set(b, c)
	for i := range 100 {
		s.Observe(fmt.Sprint(i))
	}
	if f := s.Figures(); f.Requests != 200 || len(f.Nodes) != 5 {
		t.Errorf("%+v", f)
	}
	s.Set(a, b)
	s.Reset()
	if f := s.Figures(); f.Requests != 0 || f.Ratio != 0 || len(f.Nodes) != 3 {
		t.Errorf("%+v", f)
	}
}

func TestObserveAllocates(t *testing.T) {
	for _, pair := range [][2]topology.Spec{{ring, ring}, {ketama, ring}} {
		s := shadow.New(table(t, pair[0], 10), table(t, pair[1], 11))
		i := 0
		keys := []string{"a", "user:1", "{tag}b", "session/17"}
		if n := testing.AllocsPerRun(200, func() { s.Observe(keys[i%4]); i++ }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// Nothing is lost when many observe at a time, while mappings change.
func TestConcurrent(t *testing.T) {
	a, b := table(t, ring, 4), table(t, ring, 5)
	s := shadow.New(a, b)
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() {
			for i := range 1000 {
				s.Observe(fmt.Sprintf("%d-%d", w, i))
				if i%100 == 0 {
					s.Set(a, b)
					s.Figures()
				}
			}
		})
	}
	wait.Wait()
	if f := s.Figures(); f.Requests != 8000 {
		t.Errorf("%d requests", f.Requests)
	}
}

// A wrapped client routes as the client does, and Follow keeps up with versions.
func TestClient(t *testing.T) {
	plane := shardtest.New(t, "n0", "n1", "n2")
	inner := plane.Client()
	if err := inner.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := placement.New(plane.Topology())
	if err != nil {
		t.Fatal(err)
	}
	s := shadow.New(first, first)
	c := shadow.Wrap(inner, s)
	r, err := c.Route("k")
	if want, _ := inner.Route("k"); err != nil || r != want {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := c.RouteN(nil, "k", 2); err != nil || c.Shadow().Figures().Requests != 2 {
		t.Errorf("%v, %+v", err, s.Figures())
	}
	// The second version is told after Follow's callback has had the first.
	stop := shadow.Follow(inner, s)
	defer stop()
	plane.Publish(func(d *topology.Declared) { d.Nodes = append(d.Nodes, topology.Node{ID: "n3", Weight: 1}) })
	for has := false; !has && t.Context().Err() == nil; runtime.Gosched() {
		has = slices.ContainsFunc(s.Figures().Nodes, func(n shadow.NodeFigures) bool { return n.ID == "n3" })
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		for _, pair := range []struct {
			name     string
			old, new topology.Spec
		}{{"ring", ring, ring}, {"ketama-to-ring", ketama, ring}} {
			b.Run(fmt.Sprintf("%s/N=%d", pair.name, n), func(b *testing.B) {
				old, new := table(b, pair.old, n), table(b, pair.new, n+1)
				s := shadow.New(old, new)
				keys := make([]string, 1024)
				for i := range keys {
					keys[i] = fmt.Sprintf("user:%d:profile", i)
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					s.Observe(keys[i&1023])
					i++
				}
			})
		}
	}
}
