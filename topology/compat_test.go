package topology

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const compatVectorsPath = "../docs/spec/compat-vectors.json"

// compatDrafts are topologies that use every field of a foreign mapping.
func compatDrafts() map[string]Draft {
	of := func(f Foreign, nodes ...Node) Draft {
		d := baseDraft()
		d.Spec = Spec{Compat: f, Replicas: 2}
		if len(nodes) > 0 {
			d.Nodes = nodes
		}
		return d
	}
	return map[string]Draft{
		"twemproxy":     of(Foreign{Mode: ModeTwemproxy, Distribution: "modula", Hash: "murmur", HashTag: "{}"}),
		"haproxy":       of(Foreign{Mode: ModeHAProxy, Distribution: "consistent", Input: "uri", Depth: 2}, Node{ID: "b", Label: "77", Weight: 2, Position: 3}, Node{ID: "a", Weight: 1}),
		"libmemcached":  of(Foreign{Mode: ModeLibmemcached, Distribution: "ketama", SortHosts: true}),
		"envoy-ring":    of(Foreign{Mode: ModeEnvoyRing, MinRingSize: 100}),
		"cilium-maglev": of(Foreign{Mode: ModeCilium, TableSize: 1021, Seed: "AAAAAAAAAAAAAAAA"}),
		"buraksezer":    of(Foreign{Mode: ModeBuraksezer, Partitions: 7, Load: 1.5}),
		"npm-hashring":  of(Foreign{Mode: ModeNpmHashring, Distribution: "hash_ring", DefaultPort: 11211}),
		"redis-slots":   of(Foreign{Mode: ModeRedisSlots, Threshold: 5}, Node{ID: "a", Weight: 1, Slots: "0-8191"}, Node{ID: "b", Weight: 1, Slots: "8192-16383"}),
		"groupcache":    of(Foreign{Mode: ModeGroupcache, Points: 7}),
	}
}

// The published vectors of foreign mappings are what this package writes and reads.
func TestCompatVectors(t *testing.T) {
	made := map[string]topologyVector{}
	for name, d := range compatDrafts() {
		top := mustTopology(d)
		view, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		made[name] = topologyVector{name, hex.EncodeToString(top.Encode()), top.Digest(), view}
	}
	want, err := json.MarshalIndent(made, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if want = append(want, '\n'); *update {
		if err := os.WriteFile(compatVectorsPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(compatVectorsPath)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("vectors differ (-made +file):\n%s", diff)
	}
	for name, v := range made {
		b, _ := hex.DecodeString(v.Hex)
		if top, err := Decode(b); err != nil || top.Digest() != v.Digest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every parameter of every mode is written, read and compared: a change of one
// gives another topology.
func TestCompatEveryFieldCounts(t *testing.T) {
	seen := map[Digest]string{}
	for name, d := range compatDrafts() {
		top := mustTopology(d)
		if other, dup := seen[top.Digest()]; dup {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[top.Digest()] = name
		for i := range top.Nodes() {
			e := top.Draft()
			e.Nodes[i].Position += 100
			if mustTopology(e).Digest() == top.Digest() {
				t.Errorf("%s: the position of node %d does not count", name, i)
			}
		}
		var back Declared
		b, err := json.Marshal(Declared{Cluster: "c", Spec: top.Spec(), Nodes: top.Nodes()})
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if diff := cmp.Diff(top.Spec(), back.Spec); err != nil || diff != "" {
			t.Errorf("%s: through JSON: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

func TestCompatJSONRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var s Spec
		if err := json.Unmarshal([]byte(text), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	f(`{"compat":{"mode":"ketama","points":3}}`, "compat.points: mode ketama has no such parameter; it has hash, sort_hosts")
	f(`{"compat":{"mode":"x","points":3}}`, `compat.mode: unknown mode "x"`)
	f(`{"compat":{"mode":"ketama"},"algorithm":"ring"}`, "stands instead of an algorithm")
	f(`{"compat":{"mode":"ketama"},"key_hash":"xxh64"}`, "stands instead of an algorithm")
	f(`{"compat":{"mode":"ketama"},"replicas":0}`, "replicas: 0 is not allowed")
	f(`{"compat":{"mode":"ketama","colour":1}}`, "unknown field")
}

func TestForeignValidate(t *testing.T) {
	f := func(x Foreign, want string) {
		t.Helper()
		err := Spec{Compat: x}.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", x, err, want)
		}
	}
	f(Foreign{Mode: ModeKetama}, "")
	f(Foreign{Mode: "unheard-of"}, "compat.mode: unknown mode")
	f(Foreign{Mode: ModeKetama, Hash: "hsieh"}, "compat.hash: unknown")
	f(Foreign{Mode: ModeHAProxy, Distribution: "sticky"}, "compat.hash_type: unknown")
	f(Foreign{Mode: ModeNpmHashring, Distribution: "x"}, "compat.compatibility: unknown")
	f(Foreign{Mode: ModeNginx, Hash: "md5"}, "compat.hash: \"md5\": this mode has no choice here")
	f(Foreign{Mode: ModeTwemproxy, HashTag: "{"}, "compat.hash_tag: hash tag")
	f(Foreign{Mode: ModeEnvoyRing, MinRingSize: 9, MaxRingSize: 8}, "smallest ring of 9 points is above")
	f(Foreign{Mode: ModeEnvoyRing, MaxRingSize: 1<<23 + 1}, "are more than")
	f(Foreign{Mode: ModeCilium, Seed: "short"}, "want 12 bytes in base 64")
	f(Foreign{Mode: ModeBuraksezer, Load: 1}, "load factor 1")
	f(Foreign{Mode: ModeHAProxy, Depth: 2}, "compat.depth")
	f(Foreign{Mode: ModeHAProxy, Input: "header"}, "compat.input: unknown input")
	f(Foreign{Mode: ModeNpmHashring, DefaultPort: 70000}, "compat.default_port")
	f(Foreign{Mode: ModeRedisSlots, Threshold: 101}, "compat.threshold")
	f(Foreign{Mode: ModeGroupcache, Points: MaxPoints + 1}, "compat.points")
	f(Foreign{Mode: ModeBuraksezer, Partitions: MaxSlots + 1}, "compat.partitions")
	f(Foreign{Mode: ModeKkdaiMaglev, TableSize: 10}, "compat.table_size: table size 10 is not prime")
	if err := (Spec{Compat: Foreign{Mode: "unheard-of"}}).Validate(); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown mode is not ErrUnknown: %v", err)
	}
}

// InOrder puts nodes without a position behind, by id, and gives them one.
func TestInOrder(t *testing.T) {
	var got []string
	var places []uint32
	for _, n := range InOrder([]Node{{ID: "d"}, {ID: "a", Position: 9}, {ID: "b"}, {ID: "c", Position: 2}}) {
		got, places = append(got, n.ID), append(places, n.Position)
	}
	if diff := cmp.Diff([]string{"c", "a", "b", "d"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{2, 9, 10, 11}, places); diff != "" {
		t.Error(diff)
	}
}

// SlotLayout never panics, and what it takes covers no slot twice.
func FuzzSlotLayout(f *testing.F) {
	for _, s := range []string{"0-16383", "1,2 3-9", "", "5-3", "-", "99999", "1-2-3", " , "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		owner, given, err := SlotLayout([]Node{{ID: "a", Weight: 1, Slots: s}, {ID: "b", Weight: 1}})
		if err != nil {
			var field *FieldError
			if !errors.As(err, &field) {
				t.Fatalf("%q: %v is no FieldError", s, err)
			}
			return
		}
		if len(owner) != RedisSlots || given != (s != "") {
			t.Fatalf("%q: %d slots, given %v", s, len(owner), given)
		}
	})
}
