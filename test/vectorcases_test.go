package test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// vectors are the cases: every algorithm with replicas 1 and 3, uneven weights,
// zones, states, hash tags, tables after updates, and the edges.
func vectors(t *testing.T) []vector {
	return slices.Concat(computedVectors(t), tableVectors(t), jumpVectors(t), edgeVectors(t))
}

func computedVectors(t *testing.T) []vector {
	uneven, even := sevenNodes(), weighted(sevenNodes(), 1, 1, 1, 1, 1, 1, 1)
	fewPoints := chain(t, step{topology.Spec{Algorithm: topology.Ring, VNodes: 4, Replicas: 3}, uneven})
	exact := topology.Spec{Algorithm: topology.Rendezvous, Replicas: 3}
	return []vector{
		{name: "ring", about: "ring of 160 points a unit of weight, weights 1 1 2 3 5 8 13",
			table: chain(t, step{topology.Spec{Algorithm: topology.Ring}, uneven})},
		{name: "ring-points", about: "ring of few points, and the hashes at, before and after some of them",
			table: fewPoints, further: aroundPoints(t, fewPoints)},
		{name: "ring-zones", about: "ring, CRC16 with the tag {}, 3 replicas in distinct zones of 4",
			table: chain(t, step{topology.Spec{Algorithm: topology.Ring, VNodes: 16, KeyHash: topology.CRC16, HashTag: "{}", Replicas: 3, ZoneAware: true}, inZones(uneven, "z0", "z1", "z2", "z3")})},
		{name: "ring-states", about: "ring of nodes that are joining, draining, down, left, of weight 0; addresses, labels and a load bound, which change no owner",
			table: chain(t, step{topology.Spec{Algorithm: topology.Ring, VNodes: 20, Replicas: 3, HashTag: "||", BoundedLoad: 1.25}, inStates(uneven)})},
		{name: "rendezvous", about: "exact rendezvous, weights 1 1 2 3 5 8 13; the further hashes give each node the least and the largest draw",
			table: chain(t, step{exact, uneven}), further: extremeDraws(uneven)},
		{name: "rendezvous-even-zones", about: "exact rendezvous, equal weights, 3 replicas in distinct zones of 4",
			table: chain(t, step{topology.Spec{Algorithm: topology.Rendezvous, Replicas: 3, ZoneAware: true}, inZones(even, "z0", "z1", "z2", "z3")})},
		{name: "rendezvous-table", about: "rendezvous by a table of 512 slots, tag {}",
			table: chain(t, step{topology.Spec{Algorithm: topology.Rendezvous, RendezvousTable: 512, HashTag: "{}", Replicas: 3}, uneven}), further: aroundSlots(512)},
	}
}

func tableVectors(t *testing.T) []vector {
	uneven := sevenNodes()
	maglev := topology.Spec{Algorithm: topology.Maglev, TableSize: 251}
	redis := topology.Spec{Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"}
	rows := topology.Spec{Algorithm: topology.Slots, SlotCount: 512, Replicas: 3, ZoneAware: true}
	zones := inZones(uneven, "z0", "z1", "z2", "z3")
	twoZones := topology.Spec{Algorithm: topology.Slots, SlotCount: 256, Replicas: 3, ZoneAware: true}
	return []vector{
		{name: "maglev", about: "the first Maglev table of 251 entries: build it by the rules and compare, if you write tables",
			table: chain(t, step{maglev, uneven}), further: aroundSlots(251)},
		{name: "maglev-refill", about: "the same after a drain, a weight raised and a new node: the table cannot be built from the nodes",
			table: chain(t, step{maglev, uneven}, step{maglev, draining(uneven, 5)}, step{maglev, weighted(draining(uneven, 5), 4, 1, 2, 3, 5, 8, 13)},
				step{maglev, added(weighted(draining(uneven, 5), 4, 1, 2, 3, 5, 8, 13), "cache-c2")})},
		{name: "maglev-zones", about: "Maglev of 509 entries, 3 replicas in distinct zones of 4",
			table: chain(t, step{topology.Spec{Algorithm: topology.Maglev, TableSize: 509, Replicas: 3, ZoneAware: true}, zones})},
		{name: "slots-redis", about: "16384 slots, CRC16, tag {}: the slots of Redis Cluster",
			table: chain(t, step{redis, uneven}), further: aroundSlots(16384)},
		{name: "slots-rows", about: "512 slots with 3 replicas in rows, zones, after a drain and a new node",
			table: chain(t, step{rows, zones}, step{rows, draining(zones, 4)}, step{rows, added(draining(zones, 4), "a-first")}), further: aroundSlots(512)},
		{name: "slots-relaxed", about: "256 slots with 3 replicas in 2 zones: the order is that of the rows, also where it begins in one zone twice",
			table: chain(t, step{twoZones, inZones(uneven, "east", "west")})},
	}
}

func jumpVectors(t *testing.T) []vector {
	uneven := sevenNodes()
	var all []vector
	for _, v := range []topology.JumpVariant{topology.JumpClassic, topology.JumpBack} {
		spec := topology.Spec{Algorithm: topology.Jump, JumpVariant: v, Replicas: 3}
		fine := topology.Spec{Algorithm: topology.Jump, JumpVariant: v, JumpUnit: 4}
		zoned := topology.Spec{Algorithm: topology.Jump, JumpVariant: v, Replicas: 3, ZoneAware: true}
		sparse := []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 997}, {ID: "c", Weight: 1}, {ID: "d", Weight: 1}}
		few := chain(t, step{spec, sparse}, step{spec, draining(sparse, 1)})
		all = append(all,
			vector{name: "jump-" + string(v), about: "jump without holes, 4 buckets a unit of weight", table: chain(t, step{fine, uneven})},
			vector{name: "jump-" + string(v) + "-holes", about: "jump with holes: two nodes drained, one removed, one came back with less",
				table: chain(t, step{spec, uneven}, step{spec, draining(draining(uneven, 2), 5)}, step{spec, slices.Delete(draining(draining(uneven, 2), 5), 1, 2)}, step{spec, weighted(draining(uneven, 2), 1, 1, 2, 3, 5, 6, 13)})},
			vector{name: "jump-" + string(v) + "-sparse", about: "jump with 3 buckets of 1000: most keys meet none in 128 draws; the further hashes do in the 128th, or would in the 129th", mostKeys: 40,
				table: few, further: lastDraws(few)},
			vector{name: "jump-" + string(v) + "-zones", about: "jump, 3 replicas in 2 zones of 5 and 2 nodes: the zone rule relaxed",
				table: chain(t, step{zoned, inZones(uneven, "east", "west", "east")})})
	}
	return append(all, vector{name: "jump-classic-rounding", about: "jump where the quotient of two doubles is just below the number that it should be", mostKeys: 8,
		table: chain(t, step{topology.Spec{Algorithm: topology.Jump}, []topology.Node{{ID: "below", Weight: 64}, {ID: "from", Weight: 64}}}), further: roundedJumps()})
}

func edgeVectors(t *testing.T) []vector {
	var all []vector
	for _, a := range topology.Algorithms() {
		spec := topology.Spec{Algorithm: a, VNodes: 8, TableSize: 13, SlotCount: 16, RendezvousTable: 256, Replicas: 3}
		two := []topology.Node{{ID: "one", Weight: 3}, {ID: "two", Weight: 2}}
		all = append(all,
			vector{name: "few-" + string(a), about: "2 owners for 3 replicas", table: chain(t, step{spec, two}), mostKeys: 20},
			vector{name: "none-" + string(a), about: "nodes, but nobody owns anything", table: chain(t, step{spec, two}, step{spec, draining(draining(two, 0), 1)}), mostKeys: 8})
	}
	zoned := topology.Spec{Algorithm: topology.Ring, VNodes: 16, Replicas: 5, ZoneAware: true}
	return append(all,
		vector{name: "one-rendezvous", about: "one node", table: chain(t, step{topology.Spec{Algorithm: topology.Rendezvous}, []topology.Node{{ID: "only", Weight: 7}}}), mostKeys: 8},
		vector{name: "zones-relaxed", about: "5 replicas in 3 zones of 1, 2 and 4 nodes, one of them the zone without a name",
			table: chain(t, step{zoned, inZones(sevenNodes(), "", "b", "c", "c", "b", "c", "c")})},
		vector{name: "crc16-whole-key", about: "CRC16 without a hash tag",
			table: chain(t, step{topology.Spec{Algorithm: topology.Maglev, TableSize: 17, KeyHash: topology.CRC16}, sevenNodes()})})
}

// step is one version of a cluster.
type step struct {
	spec  topology.Spec
	nodes []topology.Node
}

// chain publishes one version after the other and returns the last.
func chain(t *testing.T, steps ...step) *placement.Table {
	t.Helper()
	var table *placement.Table
	for i, s := range steps {
		d := topology.Draft{Cluster: "vectors", ID: topology.ClusterID{1, 2, 3}, History: 0x1122334455667788, Spec: s.spec, Nodes: s.nodes,
			Version: topology.Version{Epoch: 1, Seq: uint64(i + 1)}, Cause: topology.Cause{By: "test", At: 1700000000000}}
		var err error
		if table, err = placement.Update(table, d); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// sevenNodes have names of 1 to 52 bytes and the weights 1, 1, 2, 3, 5, 8, 13.
func sevenNodes() []topology.Node {
	ids := []string{"a", "b-2", "cache-c", "cache-d:11211", "cache-e.example.net:11211", "node-f.rack-12.zone-3.eu-west.example.net:6379", "~tilde{g}|"}
	nodes := make([]topology.Node, len(ids))
	for i, id := range ids {
		nodes[i] = topology.Node{ID: id, Addr: fmt.Sprintf("10.0.0.%d:11211", i+1)}
	}
	return weighted(nodes, 1, 1, 2, 3, 5, 8, 13)
}

func weighted(nodes []topology.Node, weights ...uint32) []topology.Node {
	nodes = slices.Clone(nodes)
	for i, w := range weights {
		nodes[i].Weight = w
	}
	return nodes
}

func draining(nodes []topology.Node, i int) []topology.Node {
	nodes = slices.Clone(nodes)
	nodes[i].State = topology.StateDraining
	return nodes
}

func added(nodes []topology.Node, id string) []topology.Node {
	return append(slices.Clone(nodes), topology.Node{ID: id, Weight: 3, Zone: "z1"})
}

// inZones gives nodes the zones in turn.
func inZones(nodes []topology.Node, zones ...string) []topology.Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Zone = zones[i%len(zones)]
	}
	return nodes
}

func inStates(nodes []topology.Node) []topology.Node {
	nodes = slices.Clone(nodes)
	for i, s := range []topology.State{topology.StateActive, topology.StateJoining, topology.StateDraining, topology.StateDown, topology.StateLeft} {
		nodes[i].State, nodes[i].Label = s, fmt.Sprintf("label %d", i)
	}
	more := topology.Node{ID: "weightless", Weight: 0}
	return append(nodes, more, topology.Node{ID: "x", Weight: 2}, topology.Node{ID: "y", Weight: 4, State: topology.StateDown})
}

// aroundPoints are the hashes at, before and after some points of a ring.
func aroundPoints(t *testing.T, table *placement.Table) []uint64 {
	t.Helper()
	nodes := table.Topology().Nodes()
	ids, weights := make([]string, len(nodes)), make([]uint32, len(nodes))
	for i, n := range nodes {
		ids[i], weights[i] = n.ID, n.OwnerWeight()
	}
	r, err := ring.New(ids, weights, table.Topology().Spec().VNodes)
	if err != nil {
		t.Fatal(err)
	}
	var hs []uint64
	for _, i := range []int{0, 1, 2, r.NumPoints() / 2, r.NumPoints() - 1} {
		place, _ := r.Point(i)
		hs = append(hs, place-1, place, place+1)
	}
	return hs
}

// aroundSlots are the first and the last hash of some slots.
func aroundSlots(count uint64) []uint64 {
	var hs []uint64
	for _, s := range []uint64{1, count / 3, count / 2, count - 1} {
		first, rest := bits.Div64(s, 0, count) // the least h with h*count >= s<<64
		if rest > 0 {
			first++
		}
		hs = append(hs, first-1, first)
	}
	return hs
}

// extremeDraws are the hashes under which a node draws the least and the largest
// number: its seed, and the complement of it.
func extremeDraws(nodes []topology.Node) []uint64 {
	var hs []uint64
	for _, n := range nodes {
		seed := splitmix.Mix(xxhash.Sum64String(n.ID))
		hs = append(hs, seed, ^seed)
	}
	return hs
}

// lastDraws are hashes that meet their first live bucket in the last draw that
// counts, and some that would in the draw after it.
func lastDraws(table *placement.Table) []uint64 {
	draw := jump.Hash
	if table.Topology().Spec().JumpVariant == topology.JumpBack {
		draw = jump.BackHash
	}
	row := table.Topology().Object(topology.KindJump).Entries(0)
	firstLive := func(h uint64) int {
		n := 1
		for ; row[draw(h, len(row))] == topology.NoOwner; n++ {
			h = splitmix.Mix(h + splitmix.Golden)
		}
		return n
	}
	last, after := []uint64(nil), []uint64(nil)
	for h := uint64(0); len(last) < 4 || len(after) < 4; h++ {
		switch firstLive(splitmix.Mix(h)) {
		case jump.Draws:
			last = append(last, splitmix.Mix(h))
		case jump.Draws + 1:
			after = append(after, splitmix.Mix(h))
		}
	}
	return append(last[:4], after[:4]...)
}

// roundedJumps are hashes that jump from bucket 48 by exactly 49 * 2^31/d = 64,
// if the numbers were real: the nearest double to 2^31/d, times 49, is below 64,
// and so the next bucket is 63. The generator is run backwards to find them.
func roundedJumps() []uint64 {
	const lcg, d = 2862933555777941757, 49 << 25
	inverse := uint64(lcg)
	for range 5 {
		inverse *= 2 - lcg*inverse // Newton: each step doubles the bits that are right
	}
	var hs []uint64
	for draw := splitmix.Source(4); len(hs) < 6; {
		second := uint64(d-1)<<33 | draw.Next()>>31
		first := (second - 1) * inverse
		if h := (first - 1) * inverse; (1<<31)/(first>>33+1) == 48 && jump.Hash(h, 128) == 63 {
			hs = append(hs, h)
		}
	}
	return hs
}
