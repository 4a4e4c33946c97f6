package topology_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func ExampleNew() {
	t, err := topology.New(topology.Draft{
		Cluster: "cache",
		ID:      topology.ClusterID{1},
		History: 1,
		Version: topology.Version{Epoch: 1, Seq: 1},
		Spec:    topology.Spec{Algorithm: topology.Ring},
		Nodes: []topology.Node{
			{ID: "cache-b", Addr: "10.0.0.2:11211", Weight: 1},
			{ID: "cache-a", Addr: "10.0.0.1:11211", Weight: 1},
		},
		Cause: topology.Cause{Kind: "created"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Version(), t.Spec().VNodes, t.Node(0).ID)

	back, err := topology.Decode(t.Encode())
	fmt.Println(back.Digest() == t.Digest(), err)
	// Output:
	// 1.1 160 cache-a
	// true <nil>
}

func ExampleDeclared_Validate() {
	d := topology.Declared{
		Cluster: "cache",
		Spec:    topology.Spec{Algorithm: topology.Maglev, TableSize: 1000},
		Nodes:   []topology.Node{{ID: "a", Weight: 1}},
	}
	fmt.Println(d.Validate())
	// Output:
	// maglev.table_size: table size 1000 is not prime (a permutation would not reach every entry); the next prime is 1009
}

// first is a published version: 1.1 of a cluster of four slots.
func first() *topology.Topology {
	owners, err := topology.NewObject(topology.KindSlots, 1, []string{"a", "b"}, []uint16{0, 0, 1, 1})
	if err != nil {
		panic(err)
	}
	t, err := topology.New(topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1,
		Version: topology.Version{Epoch: 1, Seq: 1},
		Spec:    topology.Spec{Algorithm: topology.Slots, SlotCount: 4},
		Nodes:   []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}},
		Objects: []*topology.Object{owners},
	})
	if err != nil {
		panic(err)
	}
	return t
}

// A table is addressed by its digest: who has it need not fetch it again.
func ExampleObject() {
	owners := first().Object(topology.KindSlots)
	ref := owners.Ref()
	fmt.Println(ref.Kind, ref.Length, owners.Nodes(), owners.Entries(0))

	received, err := topology.DecodeObject(owners.Encode())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(received.Digest() == ref.Digest)
	// Output:
	// slots 13 [a b] [0 0 1 1]
	// true
}

// A client that has 1.1 is sent what differs in 1.2, and has the same bytes then.
func ExampleDelta() {
	base := first()
	d := base.Draft()
	d.Version.Seq, d.Parent = 2, base.Digest()
	d.Nodes[1].Addr = "10.0.0.7:6379" // b has moved; no key does
	target, err := topology.New(d)
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, err := topology.Diff(base, target)
	if err != nil {
		fmt.Println(err)
		return
	}
	var delta *topology.Delta
	if delta, err = topology.DecodeDelta(sent.Encode()); err != nil {
		fmt.Println(err)
		return
	}
	got, tables, err := delta.Apply(base)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err = got.Attach(tables...)
	fmt.Println(got.Equal(target), len(delta.Encode()) < len(target.Encode()), err)
	// Output: true true <nil>
}

// A refused value says where it stands.
func ExampleFieldError() {
	_, err := topology.New(topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
		Spec:  topology.Spec{Algorithm: topology.Ring},
		Nodes: []topology.Node{{ID: "a", Weight: 1}, {ID: "a/b", Weight: 1}},
	})
	var field *topology.FieldError
	if errors.As(err, &field) {
		fmt.Println(field.Path, "|", field.Err)
	}
	// Output: nodes[1].id | node id "a/b" has '/' at byte 1; use printable ASCII without space, '/' and ','
}

// The mapping of twemproxy's ketama, under its own names.
func ExampleForeign() {
	f := topology.Foreign{Mode: topology.ModeTwemproxy, Distribution: "ketama", Hash: "fnv1a_64", HashTag: "{}"}
	fmt.Println(f.Live(), f.Mode.Parameters()) // live: can be published and routed with
	d := topology.Declared{
		Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Compat, Compat: f},
		Nodes: []topology.Node{{ID: "a", Addr: "10.0.0.1:11211", Weight: 1}},
	}
	fmt.Println(d.Validate())
	// Output:
	// true [distribution hash hash_tag]
	// <nil>
}

// Defaults are filled in once, so that equal specs are equal values.
func ExampleSpec() {
	for _, spec := range []topology.Spec{
		{Algorithm: topology.Slots, KeyHash: topology.CRC16},
		{Algorithm: topology.Jump, JumpVariant: topology.JumpClassic},
	} {
		normal := spec.Normal()
		hash := normal.KeyHash
		fmt.Printf("%s: %s, %d slots, variant %q\n", normal.Algorithm, hash, normal.SlotCount, normal.JumpVariant)
	}
	// Output:
	// slots: crc16, 16384 slots, variant ""
	// jump: xxh64, 0 slots, variant "classic"
}

// What a client holds, to compare with what another one does.
func ExampleRef() {
	var held topology.Ref
	fmt.Println(held.IsZero())
	held = first().Ref()
	fmt.Println(held.Version, held.Digest == first().Digest())
	// Output:
	// true
	// 1.1 true
}

// Who owns keys: active and down do, a node that joins or drains does not.
func ExampleState() {
	for _, name := range []string{"active", "down", "draining", "joining", "left"} {
		state, err := topology.ParseState(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(state, topology.Node{ID: "a", Weight: 3, State: state}.OwnerWeight())
	}
	// Output:
	// active 3
	// down 3
	// draining 0
	// joining 0
	// left 0
}

// Node c joins in steps: a quarter of the keys that will be its own are by now.
func ExampleTransition() {
	table, err := placement.New(first())
	if err != nil {
		fmt.Println(err)
		return
	}
	d := first().Draft()
	d.Version.Seq, d.Parent = 2, first().Digest()
	d.Nodes = append(d.Nodes, topology.Node{ID: "c", Weight: 1})
	moving, err := placement.Begin(table, d, topology.Transition{
		ID: 7, Kind: topology.TransitionNone, Thresholds: []uint64{1 << 62}, Over: 5 * time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := moving.Topology().Transition()
	kind := x.Kind
	before := x.Before
	fmt.Println(kind, x.Over, before, moving.Moving())
	// Output: none 5m0s [{c 0}] true
}

// Since when a node owns what it owns: b left in 1.3 and came back in 1.4, so what
// it holds from before missed what was written meanwhile.
func ExampleTenure() {
	table, err := placement.New(first())
	if err != nil {
		fmt.Println(err)
		return
	}
	steps := [][]topology.Node{
		{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}},
		{{ID: "a", Weight: 1}},
		{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}},
	}
	for k, nodes := range steps {
		d := table.Topology().Draft()
		d.Version.Seq, d.Parent, d.Nodes = uint64(k+2), table.Topology().Digest(), nodes
		if table, err = placement.UpdateWith(table, d, placement.UpdateOptions{Tenure: true}); err != nil {
			fmt.Println(err)
			return
		}
	}
	record := table.Topology().Tenure()
	b := record.Node("b")
	fmt.Println("b lost keys in", b.Lost, "and has them since", b.Gained)
	// Output: b lost keys in 1.3 and has them since 1.4
}

// On a ring a node that grows takes keys and keeps its own: what each weight had is
// remembered, so that only the keys that came with the growth count as new.
func ExampleWeightStep() {
	d := topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1,
		Version: topology.Version{Epoch: 1, Seq: 1},
		Spec:    topology.Spec{Algorithm: topology.Ring},
		Nodes:   []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}},
	}
	var table *placement.Table
	for seq, weight := range []uint32{1, 3, 2} {
		d.Version.Seq, d.Nodes[1].Weight = uint64(seq+1), weight
		next, err := placement.UpdateWith(table, d, placement.UpdateOptions{Tenure: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		table = next
	}
	for _, s := range table.Topology().Tenure().Node("b").Steps {
		step := s
		fmt.Println("weight", step.Weight, "since", step.Since)
	}
	// Output:
	// weight 3 since 1.2
	// weight 2 since 1.3
}
