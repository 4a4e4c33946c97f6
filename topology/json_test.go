package topology

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDeclaredJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDraft(t)
		want := Declared{d.Cluster, d.Spec.Normal(), d.Nodes}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatalf("Marshal: %v", err)
		}
		var got Declared
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("Unmarshal: %v\n%s", err, b)
		}
		if diff := cmp.Diff(want, got, cmpEmpty); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", b, diff)
		}
		var spec Spec
		if b, err = json.Marshal(d.Spec); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &spec); err != nil || spec != want.Spec {
			t.Fatalf("%s: read back as %+v, %v", b, spec, err)
		}
	})
}

func TestSpecJSONDefaults(t *testing.T) {
	f := func(text string, want Spec) {
		t.Helper()
		var got Spec
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	f(`{"algorithm":"ring"}`, Spec{Algorithm: Ring, VNodes: 160, KeyHash: XXH64, Replicas: 1})
	f(`{"algorithm":"slots","key_hash":"crc16"}`, Spec{Algorithm: Slots, SlotCount: 16384, KeyHash: CRC16, HashTag: "{}", Replicas: 1})
	f(`{"algorithm":"slots","key_hash":"crc16","hash_tag":""}`, Spec{Algorithm: Slots, SlotCount: 16384, KeyHash: CRC16, Replicas: 1})
	f(`{"algorithm":"jump","jump":{"variant":"jumpback"},"replicas":3}`, Spec{Algorithm: Jump, JumpUnit: 1, JumpVariant: JumpBack, KeyHash: XXH64, Replicas: 3})
}

func TestJSONRefuses(t *testing.T) {
	f := func(v any, text, want string) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	f(new(Spec), `{"algorithm":"ring","vnode":3}`, `unknown field "vnode"`)
	f(new(Spec), `{"algorithm":"ring","ring":{"vnode":3}}`, `unknown field "vnode"`)
	f(new(Spec), `{"algorithm":"slots","ring":{"vnodes":3}}`, "ring: parameters of ring, but the algorithm is")
	f(new(Spec), `{"algorithm":"maglev","maglev":{"table_size":0}}`, "maglev.table_size: 0 is not allowed")
	f(new(Spec), `{"algorithm":"ring","replicas":0}`, "replicas: 0 is not allowed")
	f(new(Spec), `{"algorithm":"ring","replicas":-1}`, "cannot unmarshal number -1")
	f(new(Declared), `{"cluster":"c","algorithm":"ring","nodes":[{"id":"a","wieght":2}]}`, `unknown field "wieght"`)
	f(new(Declared), `{"cluster":"c","algorithm":"ring","nodes":[{"id":"a","weight":1.5}]}`, "cannot unmarshal number 1.5")
	f(new(Declared), `{"cluster":"c","algorithm":"slots","jump":{}}`, "jump: parameters of jump")
	f(new(Declared), `{"cluster":"c","frozen":true}`, `unknown field "frozen"`)
	f(new(Node), `{"id":"a","state":"gone"}`, "want one of active")
	if err := strictJSON([]byte("{} {}"), new(Node)); err == nil || !strings.Contains(err.Error(), "more than one JSON value") {
		t.Errorf("got %v", err)
	}
}

// TestWeightAbsentOrZero: field case weight-04. Absent is 1, 0 is 0.
func TestWeightAbsentOrZero(t *testing.T) {
	var got []Node
	if err := json.Unmarshal([]byte(`[{"id":"a"},{"id":"b","weight":0},{"id":"c","weight":3}]`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Node{{ID: "a", Weight: 1}, {ID: "b"}, {ID: "c", Weight: 3}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTopologyJSON(t *testing.T) {
	got, err := json.MarshalIndent(mustTopology(slotsDraft()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/topology.json"
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSuffix(string(want), "\n"), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	empty := baseDraft()
	empty.Nodes = nil
	if b, _ := json.Marshal(mustTopology(empty)); !strings.Contains(string(b), `"nodes":[]`) {
		t.Errorf("no nodes should be [], not null: %s", b)
	}
	if b, _ := json.Marshal(Declared{}); !strings.Contains(string(b), `"nodes":[]`) {
		t.Errorf("no nodes should be [], not null: %s", b)
	}
}

func TestUnknownIsMarked(t *testing.T) {
	err := Spec{Algorithm: "x"}.Validate()
	if !errors.Is(err, ErrUnknown) || errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), ErrUnknown.Error()) {
		t.Errorf("got %v", err)
	}
}
