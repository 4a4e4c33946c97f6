package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// movingDraft is slotsDraft in the middle of a transition.
func movingDraft() Draft {
	d := slotsDraft()
	d.Nodes = append(d.Nodes, Node{ID: "cache-c", Addr: "10.0.0.3:11211", Weight: 2})
	d.Transition = &Transition{ID: 0xfeed, Kind: TransitionNone, Thresholds: []uint64{1 << 62}, Over: 5 * time.Minute,
		Before: []NodeWeight{{"cache-c", 0}, {"cache-a", 3}},
		Tenure: &Tenure{Floor: Version{1, 9}, Nodes: []NodeTenure{{ID: "cache-a", Peak: 3, Gained: Version{1, 12}}}}, Up: Version{2, 44},
		Tables: []*Object{d.Objects[0], mustObject(KindSlots, 1, []string{"cache-a", "cache-b"}, []uint16{0, 0, 0, 0, 0, 1, 0, 1})}}
	d.Tenure = &Tenure{Floor: Version{1, 9}, Moved: Version{2, 8}, Nodes: []NodeTenure{{ID: "cache-a", Peak: 3, Gained: Version{1, 12}, Lost: Version{2, 44},
		Least: 1, Steps: []WeightStep{{Version{1, 12}, 3}, {Version{2, 44}, 1}}}, {ID: "gone", Peak: 1, Lost: Version{2, 7}}}}
	return d
}

func TestTransitionRoundTrip(t *testing.T) {
	top := mustTopology(movingDraft())
	back, err := Decode(top.Encode())
	if err != nil || back.Digest() != top.Digest() {
		t.Fatal(err)
	}
	if back.Complete() || len(back.Refs()) != 3 || len(top.Objects()) != 3 {
		t.Fatalf("complete %v, %d references, %d objects; the jump table is one of both", back.Complete(), len(back.Refs()), len(top.Objects()))
	}
	if _, err := back.Attach(top.Objects()[:2]...); !errors.Is(err, ErrMissingObject) {
		t.Fatalf("attached without the table before: %v", err)
	}
	full, err := back.Attach(top.Objects()...)
	if err != nil || !full.Complete() || back.Complete() {
		t.Fatal(err)
	}
	saved, err := full.MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := UnmarshalSaved(saved)
	if err != nil || !again.Complete() || !again.Equal(top) {
		t.Fatal(err)
	}
	x := again.Transition()
	if diff := cmp.Diff([]NodeWeight{{"cache-a", 3}, {"cache-c", 0}}, x.Before); diff != "" || x.Over != 5*time.Minute || x.Thresholds[0] != 1<<62 {
		t.Fatal(diff, x)
	}
	before := again.Before()
	if before.Transition() != nil || before.Object(KindSlots) != x.Tables[0] || !before.Complete() {
		t.Fatal("the mapping before has not the tables before")
	}
	weights := map[string]uint32{}
	for _, n := range before.Nodes() {
		weights[n.ID] = n.OwnerWeight()
	}
	if diff := cmp.Diff(map[string]uint32{"cache-a": 3, "cache-b": 2, "cache-c": 0}, weights); diff != "" {
		t.Fatal(diff)
	}
	view, err := json.Marshal(top)
	if err != nil || !bytes.Contains(view, []byte(`"transition":{"id":"000000000000feed","kind":"none","thresholds":[0.25],"over":"5m0s"`)) {
		t.Fatalf("%s, %v", view, err)
	}
	if d := again.Draft(); !mustTopology(d).Equal(top) {
		t.Fatal("a draft lost something")
	}
}

func TestTransitionRefused(t *testing.T) {
	f := func(name string, change func(*Draft), path string, want error) {
		t.Helper()
		d := movingDraft()
		change(&d)
		_, err := New(d)
		var field *FieldError
		if !errors.As(err, &field) || field.Path != path || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f("id", func(d *Draft) { d.Transition.ID = 0 }, "transition.id", nil)
	f("kind", func(d *Draft) { d.Transition.Kind = "wave" }, "transition.kind", ErrUnknown)
	f("thresholds", func(d *Draft) { d.Transition.Thresholds = nil }, "transition.thresholds", nil)
	f("two", func(d *Draft) { d.Transition.Thresholds = []uint64{2, 1} }, "transition.thresholds", nil)
	f("over", func(d *Draft) { d.Transition.Over = -1 }, "transition.over", nil)
	f("nothing", func(d *Draft) { d.Transition.Before = nil }, "transition.before", nil)
	f("a stranger", func(d *Draft) { d.Transition.Before[0].ID = "x" }, "transition.before", nil)
	f("twice", func(d *Draft) { d.Transition.Before[0] = d.Transition.Before[1] }, "transition.before", nil)
	f("the same weight", func(d *Draft) { d.Transition.Before[1].Weight = 1 }, "transition.before", nil)
	f("weight", func(d *Draft) { d.Transition.Before[1].Weight = MaxWeight + 1 }, "transition.before", nil)
	f("nobody before", func(d *Draft) {
		d.Transition.Before = []NodeWeight{{"cache-a", 0}, {"cache-b", 0}, {"cache-c", 0}}
	}, "transition.before", nil)
	f("tables", func(d *Draft) { d.Transition.Tables = append(d.Transition.Tables, d.Objects[0]) }, "transition.tables", nil)
	f("no table", func(d *Draft) { d.Transition.Tables[0] = nil }, "transition.tables", nil)
	f("tenure", func(d *Draft) { d.Tenure.Floor = Version{} }, "tenure.floor", nil)
	f("tenures", func(d *Draft) { d.Tenure.Nodes[1].ID = "a" }, "tenure.nodes", nil)
	f("peak", func(d *Draft) { d.Tenure.Nodes[1].Peak = MaxWeight + 1 }, "tenure.nodes", nil)
	f("half a version", func(d *Draft) { d.Tenure.Nodes[1].Gained = Version{1, 0} }, "tenure.nodes", nil)
	f("half a version moved", func(d *Draft) { d.Tenure.Moved = Version{0, 1} }, "tenure.moved", nil)
	step := func(at, w uint32) WeightStep { return WeightStep{Version{1, uint64(at)}, w} }
	f("a least weight alone", func(d *Draft) { d.Tenure.Nodes[1].Least = 1 }, "tenure.nodes", nil)
	f("a least weight above", func(d *Draft) { d.Tenure.Nodes[0].Least, d.Tenure.Nodes[0].Steps = 4, []WeightStep{step(3, 1)} }, "tenure.nodes", nil)
	f("a weight above the peak", func(d *Draft) { d.Tenure.Nodes[0].Steps = []WeightStep{step(3, 4)} }, "tenure.nodes", nil)
	f("weights in no order", func(d *Draft) { d.Tenure.Nodes[0].Steps = []WeightStep{step(3, 1), step(3, 2)} }, "tenure.nodes", nil)
	f("half a version of a weight", func(d *Draft) { d.Tenure.Nodes[0].Steps = []WeightStep{step(0, 1)} }, "tenure.nodes", nil)
	f("many weights", func(d *Draft) { d.Tenure.Nodes[0].Steps = make([]WeightStep, MaxWeightSteps+1) }, "tenure.nodes", nil)
	f("many", func(d *Draft) { d.Tenure.Nodes = make([]NodeTenure, MaxTenures+1) }, "tenure.nodes", nil)
	f("tenure before", func(d *Draft) { d.Transition.Tenure.Floor = Version{} }, "transition.tenure.floor", nil)
	f("half a version up", func(d *Draft) { d.Transition.Up = Version{1, 0} }, "transition", nil)
	f("foreign", func(d *Draft) { d.Spec = Spec{Algorithm: Compat, Compat: Foreign{Mode: ModeJump}} }, "transition", nil)
}

func TestTransitionDelta(t *testing.T) {
	f := func(from, to Draft, wantTables int) {
		t.Helper()
		base := mustTopology(from)
		to.Parent, to.Version = base.Digest(), Version{2, 46}
		target := mustTopology(to)
		d, err := Diff(base, target)
		if err != nil {
			t.Fatal(err)
		}
		if d, err = DecodeDelta(d.Encode()); err != nil {
			t.Fatal(err)
		}
		got, tables, err := d.Apply(base)
		if err != nil || !got.Equal(target) || len(tables) != wantTables {
			t.Fatalf("%v, %d tables, want %d", err, len(tables), wantTables)
		}
		if got.Complete() && len(target.Refs()) > 0 {
			t.Fatal("complete before its tables are attached")
		}
	}
	plain := movingDraft()
	plain.Transition = nil
	f(plain, movingDraft(), 2) // the table before is not the base's here
	f(movingDraft(), plain, 2)
	further := movingDraft()
	further.Transition.Thresholds = []uint64{1 << 63}
	f(movingDraft(), further, 3)
	begun := movingDraft()
	begun.Transition.Tables = begun.Objects // as a controller does: the table before is the base's
	f(plain, begun, 2)
}

// Whatever New takes comes back the same.
func TestTransitionAnyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDraft(t)
		x := &Transition{ID: rapid.Uint64Range(1, math.MaxUint64).Draw(t, "x"), Kind: TransitionNone,
			Thresholds: []uint64{rapid.Uint64().Draw(t, "threshold")}, Over: time.Duration(rapid.Int64Min(0).Draw(t, "over")), Tables: genObjects(t)}
		for _, n := range d.Nodes {
			if w := rapid.Uint32Range(0, 3).Draw(t, "before"); w != n.OwnerWeight() {
				x.Before = append(x.Before, NodeWeight{n.ID, w})
			}
		}
		d.Transition = x
		top, err := New(d)
		if err != nil {
			return
		}
		back, err := Decode(top.Encode())
		if err != nil || !back.Equal(top) || back.Before() == nil {
			t.Fatal(err)
		}
	})
}

func TestSince(t *testing.T) {
	f := func(rows int, since ...Version) {
		t.Helper()
		o, err := NewSince(rows, since)
		if err != nil {
			t.Fatal(err)
		}
		if o, err = DecodeObject(o.Encode()); err != nil {
			t.Fatal(err)
		}
		got, err := o.Since()
		if diff := cmp.Diff(since, got); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
	}
	f(1, Version{1, 2}, Version{1, 10}, Version{}, Version{1, 2}, Version{12, 1})
	f(2, Version{1, 1}, Version{})
	for _, id := range []string{"x", "1.02", "1.0"} {
		if _, err := mustObject(KindSince, 1, []string{id}, []uint16{0}).Since(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := mustObject(KindSlots, 1, []string{"1.2"}, []uint16{0}).Since(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another kind: %v", err)
	}
	var none *Tenure
	if none.Node("x").ID != "" || mustTopology(movingDraft()).Tenure().Node("gone").Lost != (Version{2, 7}) {
		t.Error("nodes of a tenure")
	}
}
