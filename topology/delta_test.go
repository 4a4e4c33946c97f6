package topology

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// edited draws a draft that is made from d by edits of every kind.
func edited(t *rapid.T, d Draft) Draft {
	d.Version.Seq = d.Version.Seq%1000 + rapid.Uint64Range(1, 40).Draw(t, "steps")
	if rapid.Bool().Draw(t, "new epoch") {
		d.Version.Epoch, d.History = d.Version.Epoch%1000+1, History(rapid.Uint64Range(1, 9).Draw(t, "new history"))
	}
	if rapid.Bool().Draw(t, "other parent") {
		d.Parent = Digest{rapid.ByteRange(0, 1).Draw(t, "new parent")}
	}
	if rapid.Bool().Draw(t, "other mapping") {
		d.Mapping = Digest{rapid.ByteRange(0, 1).Draw(t, "new mapping")}
	}
	if rapid.Bool().Draw(t, "other cause") {
		d.Cause = Cause{Kind: "other"}
	}
	if rapid.Bool().Draw(t, "other spec") {
		d.Spec.Replicas = 3
	}
	nodes := genNodes(t, 4)
	for _, n := range d.Nodes {
		if slices.ContainsFunc(nodes, func(m Node) bool { return m.ID == n.ID }) || rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
			continue
		}
		if rapid.IntRange(0, 3).Draw(t, "reweight") == 0 {
			n.Weight++
		}
		nodes = append(nodes, n)
	}
	d.Nodes = nodes
	for i, o := range d.Objects {
		switch rapid.IntRange(0, 3).Draw(t, "table") {
		case 1:
			d.Objects[i] = genObject(t, o.Kind())
		case 2:
			entries := slices.Clone(o.entries)
			for range min(3, len(entries)) {
				entries[rapid.IntRange(0, len(entries)-1).Draw(t, "entry")] = NoOwner
			}
			d.Objects[i] = mustObject(o.kind, o.rows, o.nodes, entries)
		}
	}
	if len(d.Objects) > 0 && rapid.Bool().Draw(t, "drop table") {
		d.Objects = d.Objects[1:]
	}
	return d
}

// TestDeltaLaw: a delta leads from its base to its target and survives its
// encoding; the tables that it does not give are those to fetch.
func TestDeltaLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDraft(t)
		base, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		d.Parent = base.Digest()
		target, err := New(edited(t, base.Draft()))
		if err != nil {
			t.Skip("the edits are not legal: ", err)
		}
		delta, err := Diff(base, target)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeDelta(delta.Encode())
		if err != nil || !bytes.Equal(again.Encode(), delta.Encode()) || again.Base() != base.Digest() || again.Target() != target.Digest() {
			t.Fatalf("decoded: %v", err)
		}
		got, tables, err := again.Apply(base)
		if err != nil || !got.Equal(target) {
			t.Fatalf("applied: %v", err)
		}
		for _, o := range tables {
			if !slices.Contains(target.Refs(), o.Ref()) {
				t.Fatalf("table %s is not of the target", o.Digest())
			}
		}
		if _, err := got.Attach(append(tables, target.Objects()...)...); err != nil {
			t.Fatal(err)
		}
		if got.Digest() != base.Digest() {
			if _, _, err := again.Apply(target); !errors.Is(err, ErrDeltaBase) {
				t.Fatalf("applied to another topology: %v", err)
			}
		}
	})
}

func TestDiffOfClusters(t *testing.T) {
	a, b := baseDraft(), baseDraft()
	b.ID[0]++
	if _, err := Diff(mustTopology(a), mustTopology(b)); err == nil {
		t.Fatal("a delta between clusters")
	}
}

// tableDraft has n nodes that own size entries in turn.
func tableDraft(n, size int) Draft {
	d := baseDraft()
	d.Spec = Spec{Algorithm: Slots, SlotCount: uint32(size)}
	d.Nodes = nil
	var ids []string
	for i := range n {
		id := fmt.Sprintf("node-%04d", i)
		ids = append(ids, id)
		d.Nodes = append(d.Nodes, Node{ID: id, Addr: fmt.Sprintf("10.0.%d.%d:11211", i/256, i%256), Weight: 1})
	}
	entries := make([]uint16, size)
	for i := range entries {
		entries[i] = uint16(i % n)
	}
	d.Objects = []*Object{mustObject(KindSlots, 1, ids, entries)}
	return d
}

// grow adds one node in front of all others, to which its share of the entries
// moves.
func grow(d Draft) Draft {
	o := d.Objects[0]
	d.Nodes = append(slices.Clone(d.Nodes), Node{ID: "node--new", Addr: "10.9.9.9:11211", Weight: 1})
	ids := append([]string{"node--new"}, o.nodes...)
	entries := make([]uint16, o.size)
	for i, e := range o.entries {
		if entries[i] = e + 1; i%(len(o.nodes)+1) == 7 {
			entries[i] = 0
		}
	}
	d.Objects = []*Object{mustObject(KindSlots, 1, ids, entries)}
	d.Version.Seq++
	d.Cause = Cause{Kind: "nodes added", By: "ops"}
	return d
}

// TestDeltaOfTable: a node that is added costs about a byte for each slot that
// moves, though it renumbers all others.
func TestDeltaOfTable(t *testing.T) {
	for _, n := range []int{10, 100, 1000} {
		d := tableDraft(n, 16384)
		base := mustTopology(d)
		target := mustTopology(grow(d))
		delta, err := Diff(base, target)
		if err != nil {
			t.Fatal(err)
		}
		got, tables, err := delta.Apply(base)
		if err != nil || len(tables) != 1 || tables[0].Ref() != target.Refs()[0] {
			t.Fatalf("%d tables, %v", len(tables), err)
		}
		if _, err := got.Attach(tables...); err != nil {
			t.Fatal(err)
		}
		moved := 16384 / (n + 1)
		t.Logf("n %d: %d bytes, %d slots move, table has %d bytes", n, len(delta.Encode()), moved, target.Refs()[0].Length)
		if size := len(delta.Encode()); size > 220+2*moved {
			t.Errorf("n %d: delta of %d bytes for %d slots", n, size, moved)
		}
	}
}

// TestDeltaDamaged: a delta that does not lead to its target changes nothing; one
// whose table edits are wrong leaves the table to be fetched.
func TestDeltaDamaged(t *testing.T) {
	d := tableDraft(10, 64)
	base, target := mustTopology(d), mustTopology(grow(d))
	whole, err := Diff(base, target)
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, damage func(*delta), want error, tables int) {
		t.Helper()
		c := whole.d
		c.put = slices.Clone(c.put)
		c.tables = slices.Clone(c.tables)
		damage(&c)
		got, objects, err := (&Delta{c, nil}).Apply(base)
		if !errors.Is(err, want) || (err == nil) != (got != nil) || len(objects) != tables {
			t.Errorf("%s: %v, %d tables, %v", name, got, len(objects), err)
		}
	}
	f("nothing", func(*delta) {}, nil, 1)
	f("another target", func(d *delta) { d.target[0]++ }, ErrCorrupt, 0)
	f("another base", func(d *delta) { d.base[0]++ }, ErrDeltaBase, 0)
	f("a node too far", func(d *delta) { d.removed = []int{10} }, ErrCorrupt, 0)
	f("an illegal node", func(d *delta) { d.put[0].ID = "a/b" }, ErrCorrupt, 0)
	f("seq 0", func(d *delta) { d.seq = 0 }, ErrCorrupt, 0)
	f("an entry too far", func(d *delta) { d.tables[0].moves = []move{{0, []int{64}}} }, nil, 0)
	f("another entry", func(d *delta) { d.tables[0].moves = []move{{0, []int{3}}} }, nil, 0)
	f("no such table node", func(d *delta) { d.tables[0].removed = []int{10} }, nil, 0)
	f("a table node twice", func(d *delta) { d.tables[0].added = []string{"node-0001"} }, nil, 0)
	f("a table that the base has not", func(d *delta) { d.tables[0].ref.Kind = KindMaglev }, ErrCorrupt, 0)
	if _, _, err := whole.Apply(nil); !errors.Is(err, ErrDeltaBase) {
		t.Errorf("without a base: %v", err)
	}
	for i := range whole.Encode() {
		b := slices.Clone(whole.Encode())
		b[i] ^= 0x15
		got, err := DecodeDelta(b)
		if err != nil {
			continue
		}
		if topo, _, err := got.Apply(base); err == nil && topo.Digest() != target.Digest() {
			t.Fatalf("byte %d: leads to %s", i, topo.Digest())
		}
	}
}

func FuzzDecodeDelta(f *testing.F) {
	d := tableDraft(10, 64)
	base := mustTopology(d)
	targets := []*Topology{mustTopology(grow(d)), mustTopology(slotsDraft()), base}
	for _, target := range targets {
		delta, err := Diff(base, target)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(delta.Encode(), false)
		f.Add(delta.Encode()[:len(delta.Encode())/2], true)
	}
	// With aim set the base digest is made right, so that the fuzzer gets on.
	f.Fuzz(func(t *testing.T, b []byte, aim bool) {
		delta, err := DecodeDelta(b)
		if err != nil {
			decoderError(t, err)
			return
		}
		if !bytes.Equal(delta.Encode(), b) {
			t.Fatalf("encodes to %x", delta.Encode())
		}
		if aim {
			delta.d.base = base.Digest()
		}
		topo, tables, err := delta.Apply(base)
		if err != nil {
			if !errors.Is(err, ErrDeltaBase) {
				decoderError(t, err)
			}
			return
		}
		if topo.Digest() != delta.Target() {
			t.Fatalf("leads to %s", topo.Digest())
		}
		for _, o := range tables {
			if !slices.Contains(topo.Refs(), o.Ref()) {
				t.Fatalf("table %s is not of the target", o.Digest())
			}
		}
	})
}
