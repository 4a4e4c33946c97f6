package test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

const refusedPath = "../docs/spec/refused-vectors.json"

// refusedVector is a topology that is well formed and must not be routed by.
type refusedVector struct {
	Name     string   `json:"name"`
	Topology string   `json:"topology"`
	Tables   []string `json:"tables"`
}

// refusals are topologies whose tables do not fit, and what placement says.
type refusals struct {
	t    *testing.T
	list []refusedVector
}

// add makes a topology of owners a, b and c and of d, which is draining, and
// checks that it is refused. A nil table is referred to and missing.
func (r *refusals) add(name string, want error, spec topology.Spec, edit func(*topology.Draft)) {
	r.t.Helper()
	d := topology.Draft{Cluster: "vectors", ID: topology.ClusterID{1, 2, 3}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: spec,
		Nodes: []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 2}, {ID: "d", Weight: 1, State: topology.StateDraining}}}
	edit(&d)
	topo, err := topology.New(d)
	if err != nil {
		r.t.Fatal(err)
	}
	v := refusedVector{Name: name, Topology: hex.EncodeToString(topo.Encode()), Tables: []string{}}
	if errors.Is(want, topology.ErrMissingObject) {
		if topo, err = topology.Decode(topo.Encode()); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, o := range topo.Objects() {
		v.Tables = append(v.Tables, hex.EncodeToString(o.Encode()))
	}
	if _, err := placement.New(topo); !errors.Is(err, want) {
		r.t.Errorf("%s: %v, want %v", name, err, want)
	}
	r.list = append(r.list, v)
}

// table is add with one table of the given kind, rows and entries, which index
// the ids a, b, c, d and x, an unknown node; none is nobody.
func (r *refusals) table(name string, spec topology.Spec, kind topology.Kind, rows int, entries ...uint16) {
	r.t.Helper()
	r.add(name, placement.ErrTable, spec, func(d *topology.Draft) { d.Objects = []*topology.Object{r.object(kind, rows, entries...)} })
}

func (r *refusals) object(kind topology.Kind, rows int, entries ...uint16) *topology.Object {
	r.t.Helper()
	o, err := topology.NewObject(kind, rows, []string{"a", "b", "c", "d", "x"}, entries)
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// TestRefusedVectors: every topology of the published list is refused, here and
// by whoever tests with the list.
func TestRefusedVectors(t *testing.T) {
	const none = topology.NoOwner
	maglev := topology.Spec{Algorithm: topology.Maglev, TableSize: 5}
	slots := topology.Spec{Algorithm: topology.Slots, SlotCount: 4, Replicas: 3}
	jump := topology.Spec{Algorithm: topology.Jump, JumpVariant: topology.JumpBack}
	r := refusals{t: t}
	r.add("another mapping than the publisher's", placement.ErrMapping, topology.Spec{Algorithm: topology.Ring}, func(d *topology.Draft) { d.Mapping = topology.Digest{1} })
	r.add("no table", placement.ErrTable, maglev, func(*topology.Draft) {})
	r.add("a table that is referred to and not there", topology.ErrMissingObject, maglev, func(d *topology.Draft) {
		d.Objects = []*topology.Object{r.object(topology.KindMaglev, 1, 0, 1, 2, 0, 2)}
	})
	r.table("a table of another kind", maglev, topology.KindSlots, 1, 0, 1, 2, 0, 2)
	r.table("maglev: another size", maglev, topology.KindMaglev, 1, 0, 1, 2, 0, 2, 2, 1)
	r.table("maglev: two rows", maglev, topology.KindMaglev, 2, 0, 1, 2, 0, 2, 0, 1, 2, 0, 2)
	r.table("maglev: an entry of a draining node", maglev, topology.KindMaglev, 1, 0, 1, 2, 3, 2)
	r.table("maglev: an entry of an unknown node", maglev, topology.KindMaglev, 1, 0, 1, 2, 4, 2)
	r.table("maglev: an entry of nobody", maglev, topology.KindMaglev, 1, 0, 1, 2, none, 2)
	r.table("maglev: nobody owns an entry", maglev, topology.KindMaglev, 1, none, none, none, none, none)
	r.table("slots: two rows for three replicas", slots, topology.KindSlots, 2, 0, 1, 2, 2, 1, 2, 0, 1)
	r.table("slots: a node twice in a slot", slots, topology.KindSlots, 3, 0, 1, 2, 2, 1, 2, 0, 1, 2, 0, 1, 1)
	r.table("slots: a row owned in part", slots, topology.KindSlots, 3, 0, 1, 2, 2, 1, 2, 0, 1, 2, 0, 1, none)
	r.table("slots: a row with owners after one without", slots, topology.KindSlots, 3, 0, 1, 2, 2, none, none, none, none, 2, 0, 1, 1)
	r.table("jump: one row", jump, topology.KindJump, 1, 0, 1, 2, 2)
	r.table("jump: holes only", jump, topology.KindJump, 2, none, none, 0, 1)
	r.table("jump: a bucket of a draining node", jump, topology.KindJump, 2, 0, 1, 2, 3, none, none, none, none)

	want := append([]byte("{\"mappings_refused\":\n"), bytes.ReplaceAll(line(t, r.list), []byte("},{"), []byte("},\n{"))...)
	want = append(want, "}\n"...)
	if *update {
		writePublic(t, refusedPath, want)
	}
	got, err := os.ReadFile(refusedPath)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-made +file):\n%s", refusedPath, diff)
	}
}
