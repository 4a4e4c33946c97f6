package topology

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hexOf(objects []*Object) []string {
	all := []string{}
	for _, o := range objects {
		all = append(all, hex.EncodeToString(o.Encode()))
	}
	return all
}

func makeDeltaVectors(t *testing.T) (all []deltaVector) {
	t.Helper()
	add := func(name string, from, to Draft) {
		t.Helper()
		base := mustTopology(from)
		if to.Parent == (Digest{0xff}) {
			to.Parent = base.Digest()
		}
		target := mustTopology(to)
		d, err := Diff(base, target)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, deltaVector{name, hex.EncodeToString(base.Encode()), hexOf(base.Objects()), hex.EncodeToString(d.Encode()), hex.EncodeToString(target.Encode()), hexOf(target.Objects())})
	}
	next := baseDraft()
	next.Parent, next.Version.Seq = Digest{0xff}, next.Version.Seq+1
	next.Nodes = append(next.Nodes, Node{ID: "cache-c", Addr: "10.0.0.3:11211", Weight: 1})
	add("a node added", baseDraft(), next)
	removed := next
	removed.Nodes = []Node{{ID: "cache-b", Addr: "10.0.0.9:11211", Weight: 5}}
	add("a node removed, one changed", baseDraft(), removed)
	bump := baseDraft()
	bump.Version, bump.History, bump.Parent, bump.Mapping, bump.Cause = Version{3, 1}, 8, Digest{}, Digest{}, Cause{}
	bump.Spec = Spec{Algorithm: Rendezvous}
	add("an epoch begun, another algorithm, nothing optional", baseDraft(), bump)
	table := tableDraft(5, 200)
	add("a table edited", table, grow(table))
	none := table
	none.Objects, none.Spec = nil, Spec{Algorithm: Ring}
	add("no tables any more", table, none)
	further := movingDraft()
	further.Parent, further.Version.Seq, further.Transition.Thresholds = Digest{0xff}, further.Version.Seq+1, []uint64{1 << 63}
	add("one step of a transition", movingDraft(), further)
	return all
}

func checkDeltas(t *testing.T, deltas []deltaVector) {
	t.Helper()
	for _, c := range deltas {
		base := decodeWhole(t, c.Base, c.Tables)
		encoded, _ := hex.DecodeString(c.Hex)
		d, err := DecodeDelta(encoded)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		got, tables, err := d.Apply(base)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if diff := cmp.Diff([]any{c.Target, c.After}, []any{hex.EncodeToString(got.Encode()), hexOf(tables)}); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
}

func decodeWhole(t *testing.T, topo string, tables []string) *Topology {
	t.Helper()
	b, _ := hex.DecodeString(topo)
	top, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*Object
	for _, text := range tables {
		b, _ := hex.DecodeString(text)
		o, err := DecodeObject(b)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	if top, err = top.Attach(objects...); err != nil {
		t.Fatal(err)
	}
	return top
}
