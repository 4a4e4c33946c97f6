package membership_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func weighted(algorithm topology.Algorithm, weights ...uint32) topology.Declared {
	d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: algorithm}.Normal()}
	for i, w := range weights {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprint("n", i+1), Addr: fmt.Sprint("a:", i+1), Weight: w})
	}
	return d
}

// TestWeight06Maps: a client that saw all versions and one that saw only the
// newest send every key to the same node.
func TestWeight06Maps(t *testing.T) {
	for _, algorithm := range []topology.Algorithm{topology.Ring, topology.Rendezvous, topology.Jump, topology.Maglev, topology.Slots} {
		t.Run(string(algorithm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, weighted(algorithm, 2, 3, 4))
				_, stop := w.run(nil)
				defer func() { _ = stop() }()
				var old *placement.Table
				follow := func() *topology.Topology {
					head := w.load().Head
					var err error
					if old == nil {
						old, err = placement.New(head)
					} else {
						old, err = placement.Next(old, head)
					}
					if err != nil {
						t.Fatal(err)
					}
					return head
				}
				follow()
				for _, weights := range [][]uint32{{1, 1, 1}, {2, 3, 4}} {
					w.declare(membership.ReplaceAll(weighted(algorithm, weights...)))
					follow()
				}
				b, err := follow().MarshalSaved()
				if err != nil {
					t.Fatal(err)
				}
				saved, err := topology.UnmarshalSaved(b)
				if err != nil {
					t.Fatal(err)
				}
				fresh, err := placement.New(saved)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 10_000 {
					key := fmt.Sprint("k:", i)
					a, err1 := old.Owner(key)
					b, err2 := fresh.Owner(key)
					if a != b || err1 != nil || err2 != nil {
						t.Fatalf("key %s: %d and %d, %v %v", key, a, b, err1, err2)
					}
				}
			})
		})
	}
}

// TestWeight06Picks: a node whose health failed for a while has its weight again
// when it recovers: 2:3:4 over 90,000 picks, as before.
func TestWeight06Picks(t *testing.T) {
	d := weighted(topology.Ring, 2, 3, 4)
	var nodes []*balance.Node
	for _, n := range d.Nodes {
		nodes = append(nodes, balance.NewNode(n.ID, 1))
	}
	set := func(bad string) *balance.Set { // weights from the topology, health from the overlay
		var members []balance.Member
		for i, n := range d.Nodes {
			members = append(members, balance.Member{Node: nodes[i], Weight: float64(n.Weight), Down: n.ID == bad})
		}
		s, err := balance.NewSet(members)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var p balance.Picker
	p, err := wrr.NewSmooth(set(""), wrr.SmoothConfig{})
	if err != nil {
		t.Fatal(err)
	}
	picks := func() map[string]int {
		got := map[string]int{}
		for i := range 90_000 {
			ticket, err := p.Pick(time.Duration(i), uint64(i), nil)
			if err != nil {
				t.Fatal(err)
			}
			got[ticket.Node().ID()]++
			ticket.Done(time.Duration(i), balance.Outcome{Result: balance.Success})
		}
		return got
	}
	check := func(when string, want map[string]int) {
		t.Helper()
		got := picks()
		for id, n := range want {
			if diff := got[id] - n; diff < -900 || diff > 900 {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
	}
	next := func(bad string) {
		t.Helper()
		if p, err = p.Next(set(bad)); err != nil {
			t.Fatal(err)
		}
	}
	whole := map[string]int{"n1": 20_000, "n2": 30_000, "n3": 40_000}
	check("before", whole)
	next("n2")
	check("while n2 is bad", map[string]int{"n1": 30_000, "n2": 0, "n3": 60_000})
	next("")
	check("recovered", whole)
}
