package sdk_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// begin, step and settle publish the versions of a transition.
func (l *line) begin(share float64, nodes ...topology.Node) *topology.Topology {
	l.t.Helper()
	x := topology.Transition{ID: 99, Kind: topology.TransitionNone, Thresholds: []uint64{uint64(share*(1<<32)) << 32}}
	return l.next(placement.Begin(l.table, l.draftOf(nodes), x))
}

func (l *line) step(share float64, nodes ...topology.Node) *topology.Topology {
	l.t.Helper()
	return l.next(placement.Step(l.table, l.draftOf(nodes), uint64(share*(1<<32))<<32))
}

func (l *line) settle(nodes ...topology.Node) *topology.Topology {
	l.t.Helper()
	return l.next(placement.Settle(l.table, l.draftOf(nodes)))
}

func (l *line) next(table *placement.Table, err error) *topology.Topology {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	l.table = table
	return table.Topology()
}

func (l *line) draftOf(nodes []topology.Node) topology.Draft {
	t := l.table.Topology()
	d := topology.Draft{Cluster: "cache", ID: l.id, History: l.hist, Version: t.Version(), Spec: t.Spec(), Nodes: nodes}
	d.Version.Seq++
	return d
}

// A node that joins in steps gets its keys one after the other, each once, at the
// same version in all clients; Other names where the key was, or will be.
func TestJoinInSteps(t *testing.T) {
	l := newLine(t)
	a, fa := start(t)
	three, four := nodes(3), nodes(4)
	mustGive(t, fa, l.ring(three...))
	keys := make([]string, 2000)
	owner := map[string]string{}
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		r, _ := a.Route(keys[i])
		owner[keys[i]] = r.ID()
	}
	gone := map[string]bool{}
	check := func(topo *topology.Topology, share float64) {
		t.Helper()
		mustGive(t, fa, topo)
		b, fb := start(t) // one that begins now
		mustGive(t, fb, topo)
		moving, moved := 0, 0
		for _, k := range keys {
			r, err := a.Route(k)
			if err != nil {
				t.Fatal(err)
			}
			if other, _ := b.Route(k); other.ID() != r.ID() {
				t.Fatalf("two clients send %s to %s and %s", k, r.ID(), other.ID())
			}
			other, ok := r.Other()
			if !ok {
				if share < 1 && r.ID() != owner[k] {
					t.Fatalf("%s is at %s, and nothing says that it moves", k, r.ID())
				}
				continue
			}
			moving++
			now, was := r.ID(), other.ID
			if now == "node-003" {
				moved++
				gone[k] = true
			} else {
				now, was = was, now
				if gone[k] {
					t.Fatalf("%s went back", k)
				}
			}
			if now != "node-003" || was != owner[k] {
				t.Fatalf("%s moves from %s to %s, its owner was %s", k, was, now, owner[k])
			}
		}
		if share < 1 && (moving < 300 || moved < int(float64(moving)*(share-0.08)) || moved > int(float64(moving)*(share+0.08))) {
			t.Fatalf("at %v %d of %d have moved", share, moved, moving)
		}
	}
	check(l.begin(0.25, four...), 0.25)
	if n := loadOf(t, a, "node-003"); n.Cap == 0 {
		t.Fatal("a node that joins in steps takes no load")
	}
	check(l.step(0.5, four...), 0.5)
	check(l.step(0.75, four...), 0.75)
	check(l.settle(four...), 1)
	for k := range gone {
		if r, _ := a.Route(k); r.ID() != "node-003" {
			t.Fatalf("%s went back at the end", k)
		}
	}
}

// A node that drains in steps owns keys, and is no departure, until the last.
func TestDrainInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		var mu sync.Mutex
		drained := 0
		c, f := start(t, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25}), sdk.WithResilience(sdk.Resilience{}),
			sdk.WithHooks(sdk.Hooks{OnDrained: func(sdk.Departed) { mu.Lock(); defer mu.Unlock(); drained++ }}))
		three := nodes(3)
		mustGive(t, f, l.ring(three...))
		three[0].State = topology.StateDraining
		mustGive(t, f, l.begin(0.5, three...))
		seen := 0
		for i := range 1000 {
			tk := acquire(t, c, fmt.Sprint(i), 1)
			if tk.ID() == "node-000" {
				seen++
			}
			tk.Done(sdk.Success)
		}
		if seen < 80 || seen > 240 { // a sixth
			t.Fatalf("half drained, %d of 1000", seen)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if drained != 0 {
			t.Fatal("drained while it owns keys")
		}
		mu.Unlock()
		mustGive(t, f, l.settle(three...))
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if drained != 1 {
			t.Fatalf("%d drained", drained)
		}
	})
}
