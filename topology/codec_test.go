package topology

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top, err := New(genDraft(t))
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		back, err := Decode(top.Encode())
		if err != nil {
			t.Fatalf("Decode: %v", err)
		}
		if back.Complete() != (len(top.Refs()) == 0) {
			t.Fatalf("decoded topology says Complete() = %t with %d refs", back.Complete(), len(top.Refs()))
		}
		back, err = back.Attach(top.Objects()...)
		if err != nil {
			t.Fatalf("Attach: %v", err)
		}
		sameTopology(t, back, top)
	})
}

func sameTopology(t interface{ Fatalf(string, ...any) }, got, want *Topology) {
	if got.Digest() != want.Digest() || !got.Equal(want) || got.Ref() != want.Ref() {
		t.Fatalf("got %s, want %s", got.Ref(), want.Ref())
	}
	if diff := cmp.Diff(want.Draft(), got.Draft(), cmp.AllowUnexported(Object{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("draft (-want +got):\n%s", diff)
	}
}

// TestOrderIrrelevant: the listing order of nodes and objects leaves no trace.
func TestOrderIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDraft(t)
		want := mustTopology(d)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rng.Shuffle(len(d.Nodes), func(i, j int) { d.Nodes[i], d.Nodes[j] = d.Nodes[j], d.Nodes[i] })
		rng.Shuffle(len(d.Objects), func(i, j int) { d.Objects[i], d.Objects[j] = d.Objects[j], d.Objects[i] })
		got := mustTopology(d)
		if got.Digest() != want.Digest() {
			t.Fatalf("digest %s after shuffling, %s before", got.Digest(), want.Digest())
		}
		for i, n := range got.Nodes() {
			if got.Index(n.ID) != i || got.Node(i) != n {
				t.Fatalf("Index(%q) = %d, want %d", n.ID, got.Index(n.ID), i)
			}
		}
	})
}

// TestEveryFieldCounts: a change of any field changes the digest.
func TestEveryFieldCounts(t *testing.T) {
	edits := map[string]func(*Draft){
		"cluster":      func(d *Draft) { d.Cluster = "cache2" },
		"id":           func(d *Draft) { d.ID[15]++ },
		"history":      func(d *Draft) { d.History++ },
		"epoch":        func(d *Draft) { d.Version.Epoch++ },
		"seq":          func(d *Draft) { d.Version.Seq++ },
		"parent":       func(d *Draft) { d.Parent[15]++ },
		"mapping":      func(d *Draft) { d.Mapping[15]++ },
		"algorithm":    func(d *Draft) { d.Spec.Algorithm = Rendezvous },
		"vnodes":       func(d *Draft) { d.Spec.VNodes = 161 },
		"key hash":     func(d *Draft) { d.Spec.KeyHash = CRC16 },
		"hash tag":     func(d *Draft) { d.Spec.HashTag = "" },
		"replicas":     func(d *Draft) { d.Spec.Replicas = 3 },
		"zone aware":   func(d *Draft) { d.Spec.ZoneAware = false },
		"bounded load": func(d *Draft) { d.Spec.BoundedLoad = math.Nextafter(1.25, 2) },
		"node id":      func(d *Draft) { d.Nodes[0].ID = "cache-c" },
		"node addr":    func(d *Draft) { d.Nodes[0].Addr = "" },
		"node zone":    func(d *Draft) { d.Nodes[0].Zone = "z3" },
		"node label":   func(d *Draft) { d.Nodes[0].Label = "x" },
		"node weight":  func(d *Draft) { d.Nodes[0].Weight = 3 },
		"node state":   func(d *Draft) { d.Nodes[0].State = StateActive },
		"node gone":    func(d *Draft) { d.Nodes = d.Nodes[:1] },
		"object":       func(d *Draft) { d.Objects = slotsDraft().Objects },
		"cause kind":   func(d *Draft) { d.Cause.Kind = "" },
		"cause by":     func(d *Draft) { d.Cause.By = "" },
		"cause why":    func(d *Draft) { d.Cause.Why = "" },
		"cause at":     func(d *Draft) { d.Cause.At = -1 },
	}
	seen := map[Digest]string{mustTopology(baseDraft()).Digest(): "nothing"}
	for name, edit := range edits {
		d := baseDraft()
		edit(&d)
		top := mustTopology(d)
		if other, taken := seen[top.Digest()]; taken {
			t.Errorf("changing %s gives the same digest as changing %s", name, other)
		}
		seen[top.Digest()] = name
		back, err := Decode(top.Encode())
		if err != nil || back.Digest() != top.Digest() {
			t.Errorf("changing %s: does not decode: %v", name, err)
		}
	}
}

// TestNormalForm: parameters of other algorithms and spelt-out defaults leave
// no trace, so that equal mappings have equal digests.
func TestNormalForm(t *testing.T) {
	f := func(a, b Spec) {
		t.Helper()
		da, db := baseDraft(), baseDraft()
		da.Spec, db.Spec = a, b
		if mustTopology(da).Digest() != mustTopology(db).Digest() {
			t.Errorf("%+v and %+v have different digests", a, b)
		}
	}
	f(Spec{Algorithm: Ring}, Spec{Algorithm: Ring, VNodes: 160, KeyHash: XXH64, Replicas: 1, TableSize: 13, SlotCount: 4, JumpUnit: 9, JumpVariant: "x", RendezvousTable: 7})
	f(Spec{Algorithm: Maglev}, Spec{Algorithm: Maglev, TableSize: 65537, VNodes: 5})
	f(Spec{Algorithm: Slots}, Spec{Algorithm: Slots, SlotCount: 16384, VNodes: 5})
	f(Spec{Algorithm: Jump}, Spec{Algorithm: Jump, JumpUnit: 1, JumpVariant: JumpClassic})
	f(Spec{Algorithm: Rendezvous}, Spec{Algorithm: Rendezvous, BoundedLoad: math.Copysign(0, -1)})
}

// golden compares b with testdata/name, as lines of hexadecimal digits.
func golden(t *testing.T, name string, b []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	var text strings.Builder
	for rest := b; len(rest) > 0; {
		n := min(32, len(rest))
		text.WriteString(hex.EncodeToString(rest[:n]) + "\n")
		rest = rest[n:]
	}
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s differs: the canonical form is frozen, so old stores would not be read (-want +got):\n%s", name, diff)
	}
}

// TestGolden freezes the bytes of the canonical form.
func TestGolden(t *testing.T) {
	golden(t, "ring.hex", mustTopology(baseDraft()).Encode())
	slots := mustTopology(slotsDraft())
	golden(t, "slots.hex", slots.Encode())
	golden(t, "slots-object.hex", slots.Object(KindSlots).Encode())
	golden(t, "jump-object.hex", slots.Object(KindJump).Encode())
	saved, err := slots.MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "slots-saved.hex", saved)
	for _, s := range []Spec{{Algorithm: Maglev, TableSize: 13}, {Algorithm: Rendezvous, RendezvousTable: 256}, {Algorithm: Jump, JumpVariant: JumpBack, JumpUnit: 4}} {
		d := baseDraft()
		d.Spec = s
		golden(t, string(s.Algorithm)+".hex", mustTopology(d).Encode())
	}
	d := baseDraft()
	d.Nodes, d.Cause, d.Parent, d.Mapping = nil, Cause{}, Digest{}, Digest{}
	golden(t, "empty.hex", mustTopology(d).Encode())
}

// splitFields takes the top-level fields of an encoding apart.
func splitFields(t *testing.T, b []byte) (fields [][]byte) {
	t.Helper()
	r := &reader{b: b}
	for len(r.b) > 0 && r.err == nil {
		start := r.b
		r.uvarint()
		r.take(r.uvarint())
		fields = append(fields, start[:len(start)-len(r.b)])
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return fields
}

func joinTopology(fields ...[]byte) []byte {
	return append(bytes.Clone(topologyMagic), bytes.Join(fields, nil)...)
}

// field writes one field without the rules of the writer.
func field(tag uint64, payload []byte) []byte {
	b := binary.AppendUvarint(nil, tag)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	return append(b, payload...)
}

type badTopology struct {
	name string
	b    []byte
	want error
}

// badTopologies are deviations from the canonical form, one each.
func badTopologies(t *testing.T) (bad []badTopology) {
	good := mustTopology(slotsDraft()).Encode()
	fields := splitFields(t, good[len(topologyMagic):])
	with := func(i int, f []byte) []byte {
		c := bytes.Clone(joinTopology(fields[:i]...))
		return append(append(c, f...), bytes.Join(fields[i+1:], nil)...)
	}
	spec := func(mutate func(w *writer)) []byte {
		var w writer
		mutate(&w)
		return with(tagSpec-1, field(tagSpec, w.b))
	}
	swapped := [][]byte{fields[1], fields[0]}
	f := func(name string, b []byte, want error) { bad = append(bad, badTopology{name, b, want}) }
	if _, err := Decode(joinTopology(fields...)); err != nil {
		t.Fatalf("split and joined: %v", err)
	}
	f("nothing", nil, ErrCorrupt)
	f("magic only", topologyMagic, ErrCorrupt)
	f("another format", append([]byte("SHT\x02"), good[4:]...), ErrCorrupt)
	f("trailing byte", append(bytes.Clone(good), 0), ErrCorrupt)
	f("fields swapped", joinTopology(append(swapped, fields[2:]...)...), ErrCorrupt)
	f("field twice", joinTopology(append([][]byte{fields[0]}, fields...)...), ErrCorrupt)
	f("field missing", joinTopology(fields[1:]...), ErrCorrupt)
	f("unknown field", append(bytes.Clone(good), field(99, []byte{1})...), ErrUnknown)
	f("overlong varint", with(tagSeq-1, field(tagSeq, []byte{0xad, 0x00})), ErrCorrupt)
	f("varint of 11 bytes", with(tagSeq-1, field(tagSeq, bytes.Repeat([]byte{0x80}, 11))), ErrCorrupt)
	f("bytes after a field's value", with(tagSeq-1, field(tagSeq, []byte{45, 0})), ErrCorrupt)
	f("a zero field spelt out", with(tagSeq-1, append(bytes.Clone(fields[tagSeq-1]), field(tagParent, make([]byte, 16))...)), ErrCorrupt)
	f("short digest", with(tagID-1, field(tagID, []byte{1, 2, 3})), ErrCorrupt)
	f("length beyond the end", append(bytes.Clone(good), 99, 200), ErrCorrupt)
	f("no algorithm", spec(func(w *writer) { w.strField(tagKeyHash, "xxh64") }), ErrCorrupt)
	f("algorithm of a later release", spec(func(w *writer) { w.strField(tagAlgorithm, "anchor/1") }), ErrUnknown)
	f("later mapping of a known algorithm", spec(func(w *writer) { w.strField(tagAlgorithm, "slots/2") }), ErrUnknown)
	f("algorithm without mapping version", spec(func(w *writer) { w.strField(tagAlgorithm, "slots") }), ErrUnknown)
	f("unknown field of the spec", spec(func(w *writer) { w.strField(tagAlgorithm, "slots/1"); w.intField(77, 1) }), ErrUnknown)
	f("unknown key hash", spec(func(w *writer) { w.strField(tagAlgorithm, "slots/1"); w.strField(tagKeyHash, "md5") }), ErrUnknown)
	f("unknown jump variant", spec(func(w *writer) {
		w.strField(tagAlgorithm, "jump/1")
		w.intField(tagJumpUnit, 1)
		w.strField(tagJumpVariant, "flip")
	}), ErrUnknown)
	f("default left out", spec(func(w *writer) { w.strField(tagAlgorithm, "slots/1") }), ErrCorrupt)
	f("parameter of another algorithm", spec(func(w *writer) {
		w.strField(tagAlgorithm, "slots/1")
		w.intField(tagVNodes, 160)
		w.intField(tagSlotCount, 8)
		w.strField(tagKeyHash, "crc16")
		w.strField(tagHashTag, "{}")
		w.intField(tagReplicas, 1)
	}), ErrCorrupt)
	f("zone aware 2", spec(func(w *writer) { w.strField(tagAlgorithm, "slots/1"); w.intField(tagZoneAware, 2) }), ErrCorrupt)
	f("count of nodes beyond the bytes", with(tagNodes-1, field(tagNodes, binary.AppendUvarint(nil, 1<<40))), ErrCorrupt)
	f("nodes unsorted", with(tagNodes-1, field(tagNodes, encodeNodes([]Node{{ID: "b", Weight: 1}, {ID: "a", Weight: 1}}))), ErrCorrupt)
	f("node twice", with(tagNodes-1, field(tagNodes, encodeNodes([]Node{{ID: "a", Weight: 1}, {ID: "a", Weight: 1}}))), ErrCorrupt)
	f("state of a later release", with(tagNodes-1, field(tagNodes, encodeNodes([]Node{{ID: "a", Weight: 1, State: numStates}}))), ErrUnknown)
	f("no nodes spelt out", with(tagNodes-1, field(tagNodes, []byte{0})), ErrCorrupt)
	f("table of a later kind", with(tagRefs-1, field(tagRefs, encodeRefs([]ObjectRef{{Kind: maxKind + 1}}))), ErrUnknown)
	f("tables unsorted", with(tagRefs-1, field(tagRefs, encodeRefs([]ObjectRef{{Kind: KindJump}, {Kind: KindSlots}}))), ErrCorrupt)
	f("length over 32 bits", with(tagRefs-1, field(tagRefs, append(append([]byte{1, 1}, make([]byte, 16)...), 0xff, 0xff, 0xff, 0xff, 0x1f))), ErrCorrupt)
	return bad
}

// TestDecodeRefuses: every deviation from the canonical form is refused, even
// where the content would be the same.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range badTopologies(t) {
		if top, err := Decode(c.b); !errors.Is(err, c.want) || top != nil {
			t.Errorf("%s: got %v, %v, want %v", c.name, top, err, c.want)
		}
	}
}

// TestDecodeCutShort: no prefix of an encoding is an encoding, and no single
// changed bit goes unnoticed.
func TestDecodeCutShort(t *testing.T) {
	top := mustTopology(slotsDraft())
	good := top.Encode()
	for n := range good {
		// Trailing fields may be absent, so a cut at a field's border is
		// another topology; it then has another digest.
		if cut, err := Decode(good[:n]); err == nil && cut.Digest() == top.Digest() {
			t.Fatalf("cut to %d bytes: the same digest", n)
		}
		for bit := range 8 {
			b := bytes.Clone(good)
			b[n] ^= 1 << bit
			if changed, err := Decode(b); err == nil && changed.Digest() == top.Digest() {
				t.Fatalf("bit %d of byte %d changed: the same digest", bit, n)
			}
		}
	}
}
