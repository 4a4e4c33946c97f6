package sdk_test

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// TestRouteLaws: for any algorithm, weights and states, Route, RouteN and
// Replicas agree with each other and with the table.
func TestRouteLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := topology.Spec{Algorithm: rapid.SampledFrom(topology.Algorithms()).Draw(rt, "algorithm"), VNodes: 16, TableSize: 251, SlotCount: 256,
			Replicas: uint32(rapid.IntRange(1, 3).Draw(rt, "replicas")), ZoneAware: rapid.Bool().Draw(rt, "zones")}
		all := nodes(rapid.IntRange(1, 8).Draw(rt, "nodes"))
		for i := range all {
			all[i].Weight = uint32(rapid.IntRange(0, 2).Draw(rt, "weight"))
			all[i].State = rapid.SampledFrom([]topology.State{topology.StateActive, topology.StateActive, topology.StateDown, topology.StateDraining}).Draw(rt, "state")
			all[i].Zone = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "zone")
		}
		l := newLine(t)
		c, f := start(t)
		defer c.Close()
		topo := l.publish(spec, all...)
		mustGive(t, f, topo)
		for i := range 20 {
			checkRoute(rt, c, l, fmt.Sprint("key", i))
		}
	})
}

func checkRoute(t *rapid.T, c *sdk.Client, l *line, key string) {
	r, err := c.Route(key)
	owner, ownerErr := l.table.Owner(key)
	if (err == nil) != (ownerErr == nil) {
		t.Fatalf("route %v, owner %v", err, ownerErr)
	}
	if err != nil {
		if !errors.Is(err, sdk.ErrNoNodes) {
			t.Fatal(err)
		}
		return
	}
	topo := c.Topology()
	order := l.table.AppendReplicas(nil, r.Hash(), topo.Len())
	if r.Owner() != topo.Node(owner) {
		t.Fatalf("owner %v, want %v", r.Owner(), topo.Node(owner))
	}
	var up, down []string
	for _, i := range order {
		if n := topo.Node(i); n.State == topology.StateDown {
			down = append(down, n.ID)
		} else {
			up = append(up, n.ID)
		}
	}
	want := append(up, down...)
	for n := 1; n <= len(order)+1; n++ {
		routes, err := c.RouteN(nil, key, n)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range routes {
			got = append(got, r.ID())
		}
		if diff := cmp.Diff(want[:min(n, len(want))], got); diff != "" {
			t.Fatalf("first %d nodes: %s", n, diff)
		}
		if routes[0] != r {
			t.Fatalf("the first of RouteN is %v, Route is %v", routes[0], r)
		}
	}
	if r.Detour() != (r.ID() != r.Owner().ID) {
		t.Fatalf("detour %v: node %s, owner %s", r.Detour(), r.ID(), r.Owner().ID)
	}
	replicas := r.Replicas(nil)
	if len(replicas) != min(int(topo.Spec().Replicas), len(order)) {
		t.Fatalf("%d replicas", len(replicas))
	}
	for i, n := range replicas {
		if n != topo.Node(order[i]) {
			t.Fatalf("replica %d is %v, want %v", i, n, topo.Node(order[i]))
		}
	}
	if byDefault, _ := c.RouteN(nil, key, 0); len(byDefault) != len(replicas) {
		t.Fatalf("RouteN of 0 gives %d nodes for %d replicas", len(byDefault), len(replicas))
	}
}

// TestDownManyNodes: the node that stands in is found however many are down.
func TestDownManyNodes(t *testing.T) {
	all := nodes(200)
	for i := range all {
		all[i].State = topology.StateDown
	}
	all[77].State = topology.StateActive
	l := newLine(t)
	c, f := start(t)
	mustGive(t, f, l.ring(all...))
	for i := range 50 {
		if r, err := c.Route(fmt.Sprint(i)); err != nil || r.ID() != "node-077" {
			t.Fatalf("key %d: %s, %v", i, r.ID(), err)
		}
	}
}

func TestRouteNAppends(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	mustGive(t, f, l.ring(nodes(5)...))
	first, _ := c.RouteN(nil, "a", 2)
	both, _ := c.RouteN(first, "b", 2)
	if len(both) != 4 || both[0] != first[0] {
		t.Fatalf("%v", both)
	}
	mustGive(t, f, l.ring())
	if kept, err := c.RouteN(both, "c", 2); !errors.Is(err, sdk.ErrNoNodes) || len(kept) != 4 {
		t.Fatalf("%v, %v", kept, err)
	}
}

// TestHash10: field case; keys with hash tags fall into the slots of Redis
// Cluster, through the SDK.
func TestHash10(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	mustGive(t, f, l.publish(topology.Spec{Algorithm: topology.Ring, KeyHash: topology.CRC16, HashTag: "{}"}, nodes(3)...))
	for key, want := range map[string]uint64{
		"123456789": 12739, "foo{}{bar}": 8363, "wp:{}{same}": 1583, "{}{}{x}": 2088, "{}": 15257, "foo{{bar}}zap": 4015,
		"foo{bar}{zap}": 5061, "foo{bar": 15278, "A}B{C": 7939, "A}B{C}": 14503, "{user1000}.following": 3443,
		"{user1000}.followers": 3443, "a{'1':{'i32':1}}": 5540, "": 0, "\x00\xff\x7b\xfe\x7d": 3793, "キー{タグ}": 9716,
	} {
		r, err := c.Route(key)
		if err != nil {
			t.Fatal(err)
		}
		if slot, _ := bits.Mul64(r.Hash(), 16384); slot != want {
			t.Errorf("%q: slot %d, want %d", key, slot, want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	mustGive(t, f, l.publish(topology.Spec{Algorithm: topology.Ring, Replicas: 3}, nodes(20)...))
	key, raw := "user:1", []byte("user:1")
	dst := make([]sdk.Route, 0, 8)
	replicas := make([]topology.Node, 0, 8)
	for name, call := range map[string]func(){
		"Route":      func() { _, _ = c.Route(key) },
		"RouteBytes": func() { _, _ = c.RouteBytes(raw) },
		"RouteN":     func() { _, _ = c.RouteN(dst, key, 3) },
		"Replicas":   func() { r, _ := c.Route(key); r.Replicas(replicas) },
		"methods":    func() { r, _ := c.Route(key); _, _, _ = r.Addr(), r.Version(), r.Node() },
	} {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	mustGive(t, f, l.ring())
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Route(key) }); n != 0 {
		t.Errorf("failing Route: %v allocations", n)
	}
}
