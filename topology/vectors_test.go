package topology

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const vectorsPath = "../docs/spec/topology-vectors.json"

// vectors are the cases that other implementations test themselves with; see
// docs/spec/topology.md.
type vectors struct {
	Topologies []topologyVector `json:"topologies"`
	Objects    []objectVector   `json:"objects"`
	Refused    []refusedVector  `json:"refused"`
	Deltas     []deltaVector    `json:"deltas"`
}

type topologyVector struct {
	Name   string          `json:"name"`
	Hex    string          `json:"hex"`
	Digest Digest          `json:"digest"`
	View   json.RawMessage `json:"view"`
}

type objectVector struct {
	Name    string   `json:"name"`
	Hex     string   `json:"hex"`
	Digest  Digest   `json:"digest"`
	Kind    Kind     `json:"kind"`
	Rows    int      `json:"rows"`
	Size    int      `json:"size"`
	Nodes   []string `json:"nodes"`
	Entries []uint16 `json:"entries"`
}

type deltaVector struct {
	Name   string   `json:"name"`
	Base   string   `json:"base"`
	Tables []string `json:"base_tables"`
	Hex    string   `json:"hex"`
	Target string   `json:"target"`
	After  []string `json:"target_tables"`
}

type refusedVector struct {
	Name string `json:"name"`
	Hex  string `json:"hex"`
	Why  string `json:"why"`
}

func makeVectors(t *testing.T) vectors {
	t.Helper()
	var v vectors
	add := func(name string, d Draft) {
		top := mustTopology(d)
		view, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		v.Topologies = append(v.Topologies, topologyVector{name, hex.EncodeToString(top.Encode()), top.Digest(), view})
		for _, o := range top.Objects() {
			v.Objects = append(v.Objects, objectVector{name + ", " + o.Kind().String(), hex.EncodeToString(o.Encode()), o.Digest(), o.Kind(), o.Rows(), o.Size(), o.Nodes(), o.entries})
		}
	}
	add("ring", baseDraft())
	add("slots with two tables", slotsDraft())
	for _, s := range []Spec{{Algorithm: Maglev, TableSize: 13, BoundedLoad: 2}, {Algorithm: Rendezvous, RendezvousTable: 256}, {Algorithm: Jump, JumpVariant: JumpBack, JumpUnit: 4}} {
		d := baseDraft()
		d.Spec = s
		add(string(s.Algorithm), d)
	}
	d := baseDraft()
	d.Nodes, d.Cause, d.Parent, d.Mapping = nil, Cause{}, Digest{}, Digest{}
	add("no nodes, nothing optional", d)
	add("in the middle of a transition", movingDraft())
	for _, c := range badTopologies(t) {
		why := "corrupt"
		if errors.Is(c.want, ErrUnknown) {
			why = "unknown"
		}
		v.Refused = append(v.Refused, refusedVector{c.name, hex.EncodeToString(c.b), why})
	}
	v.Deltas = makeDeltaVectors(t)
	return v
}

// TestVectors: the published vectors are what this package writes and reads.
func TestVectors(t *testing.T) {
	want, err := json.MarshalIndent(makeVectors(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(vectorsPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(vectorsPath)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("vectors differ: other implementations would fail (-made +file):\n%s", diff)
	}
	var v vectors
	if err := json.Unmarshal(got, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Topologies {
		b, _ := hex.DecodeString(c.Hex)
		if top, err := Decode(b); err != nil || top.Digest() != c.Digest {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	checkDeltas(t, v.Deltas)
	for _, c := range v.Objects {
		b, _ := hex.DecodeString(c.Hex)
		if o, err := DecodeObject(b); err != nil || o.Digest() != c.Digest {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
