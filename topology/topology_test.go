package topology

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refused checks that err is a *FieldError at path whose text has every part.
func refused(t *testing.T, err error, path string, parts ...string) {
	t.Helper()
	var fe *FieldError
	if !errors.As(err, &fe) {
		t.Errorf("got %v, want a FieldError at %s", err, path)
		return
	}
	if fe.Path != path {
		t.Errorf("got path %q (%v), want %q", fe.Path, err, path)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got %q, want it to say %q", err, p)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	f := func(path string, edit func(*Draft), parts ...string) {
		t.Helper()
		d := baseDraft()
		edit(&d)
		top, err := New(d)
		if top != nil {
			t.Errorf("%s: got a topology beside the error", path)
		}
		refused(t, err, path, parts...)
	}
	f("cluster", func(d *Draft) { d.Cluster = "" }, "empty")
	f("cluster", func(d *Draft) { d.Cluster = "a/b" }, `'/' at byte 1`)
	f("version", func(d *Draft) { d.ID = ClusterID{} }, "none of them may be zero")
	f("version", func(d *Draft) { d.History = 0 })
	f("version", func(d *Draft) { d.Version.Epoch = 0 })
	f("version", func(d *Draft) { d.Version.Seq = 0 })
	f("cause", func(d *Draft) { d.Cause.Why = strings.Repeat("x", 1025) }, "longer than 1024")
	f("cause", func(d *Draft) { d.Cause.By = "a\nb" }, "control character")
	f("algorithm", func(d *Draft) { d.Spec.Algorithm = "rng" }, `"rng"`, "ring, jump, rendezvous, maglev, slots")
	f("nodes[1].weight", func(d *Draft) { d.Nodes[1].Weight = MaxWeight + 1 }, "cache-a")
	f("objects", func(d *Draft) { d.Objects = []*Object{nil} }, "nil")
	f("objects", func(d *Draft) { o := slotsDraft().Objects[0]; d.Objects = []*Object{o, o} }, "each kind once")
}

func TestValidateNodes(t *testing.T) {
	ring := Spec{Algorithm: Ring}.Normal()
	many := func(n int, weight uint32) []Node {
		nodes := make([]Node, n)
		for i := range nodes {
			nodes[i] = Node{ID: fmt.Sprint("n", i), Weight: weight}
		}
		return nodes
	}
	f := func(spec Spec, nodes []Node, path string, parts ...string) {
		t.Helper()
		err := ValidateNodes(spec.Normal(), nodes)
		if path != "" {
			refused(t, err, path, parts...)
		} else if err != nil {
			t.Errorf("refused: %v", err)
		}
	}
	f(ring, nil, "")
	f(ring, many(3, 0), "")
	f(ring, many(26, 1008), "") // 26 x 1008 x 160 = 4,193,280
	f(ring, many(26, 1009), "nodes", "4197440 ring points", "more than 4194304", "lower ring.vnodes")
	f(ring, many(MaxNodes+1, 0), "nodes", "65535 nodes are more than 65534")
	f(ring, []Node{{ID: "a"}, {ID: "b"}, {ID: "a"}}, "nodes[2].id", `duplicate node id "a"`, "nodes[0]")
	f(ring, []Node{{ID: "a"}, {ID: ""}}, "nodes[1].id", "empty")
	f(ring, []Node{{ID: "a", State: numStates}}, "nodes[0].state", "unknown state 5")
	f(ring, []Node{{ID: "a", Zone: "z\x00"}}, "nodes[0].zone", `"a"`, "control")
	f(ring, []Node{{ID: "a", Addr: strings.Repeat("x", MaxAddrLen+1)}}, "nodes[0].addr", "longer than 512")
	f(ring, []Node{{ID: "a", Label: "\xff"}}, "nodes[0].label", "not UTF-8")
	f(Spec{Algorithm: Jump, JumpUnit: 16}, many(64, 1024), "")
	f(Spec{Algorithm: Jump, JumpUnit: 16}, many(64, 1025), "nodes", "1049600 jump buckets", "scale the weights down")
	f(Spec{Algorithm: Maglev, TableSize: 13}, many(13, 1), "")
	f(Spec{Algorithm: Maglev, TableSize: 13}, many(20, 1), "maglev.table_size", "20 nodes", "raise maglev.table_size")
	f(Spec{Algorithm: Maglev, TableSize: 13}, many(20, 0), "")
	f(Spec{Algorithm: Slots, SlotCount: 4}, many(5, 1), "slots.count", "raise slots.count")
	f(Spec{Algorithm: Rendezvous}, many(1000, MaxWeight), "")
	draining := many(26, 1009)
	draining[0].State, draining[1].State, draining[2].State = StateDraining, StateJoining, StateLeft
	f(ring, draining, "")
}

func TestValidateSpec(t *testing.T) {
	f := func(s Spec, path string, unknown bool, parts ...string) {
		t.Helper()
		err := s.Validate()
		refused(t, err, path, parts...)
		if errors.Is(err, ErrUnknown) != unknown {
			t.Errorf("%v: ErrUnknown is %t, want %t", err, !unknown, unknown)
		}
	}
	f(Spec{}, "algorithm", false, "no algorithm", "ring, jump, rendezvous, maglev, slots")
	f(Spec{Algorithm: "Ring"}, "algorithm", true, `unknown algorithm "Ring"`)
	f(Spec{Algorithm: Ring, VNodes: MaxPoints + 1}, "ring.vnodes", false)
	f(Spec{Algorithm: Jump, JumpVariant: "flip"}, "jump.variant", true, "classic or jumpback")
	f(Spec{Algorithm: Jump, JumpUnit: 257}, "jump.unit", false, "256")
	f(Spec{Algorithm: Rendezvous, RendezvousTable: 255}, "rendezvous.table", false, "0 (exact)")
	f(Spec{Algorithm: Rendezvous, RendezvousTable: 1<<20 + 1}, "rendezvous.table", false)
	f(Spec{Algorithm: Slots, SlotCount: MaxSlots + 1}, "slots.count", false)
	f(Spec{Algorithm: Ring, KeyHash: "md5"}, "key_hash", true, "xxh64 or crc16")
	f(Spec{Algorithm: Ring, HashTag: "{"}, "hash_tag", false, "two printable ASCII")
	f(Spec{Algorithm: Ring, HashTag: "é"}, "hash_tag", false)
	f(Spec{Algorithm: Ring, HashTag: "{}x"}, "hash_tag", false)
	f(Spec{Algorithm: Ring, Replicas: 17}, "replicas", false)
	f(Spec{Algorithm: Ring, BoundedLoad: 0.99}, "bounded_load", false, "below 1")
	f(Spec{Algorithm: Ring, BoundedLoad: -1}, "bounded_load", false)
	f(Spec{Algorithm: Ring, BoundedLoad: 1001}, "bounded_load", false)
	for _, a := range Algorithms() {
		if err := (Spec{Algorithm: a, Replicas: 3, HashTag: "<>", BoundedLoad: 1}).Validate(); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// TestTableSizePrime: field case hash-07. A table size that is not prime never
// reaches a build, and the message names the next prime.
func TestTableSizePrime(t *testing.T) {
	f := func(m uint32, parts ...string) {
		t.Helper()
		refused(t, Spec{Algorithm: Maglev, TableSize: m}.Validate(), "maglev.table_size", parts...)
	}
	f(1, "from 3 to 4194301")
	f(2, "from 3 to 4194301")
	f(1000, "1000 is not prime", "the next prime is 1009")
	f(1024, "the next prime is 1031")
	f(65536, "the next prime is 65537")
	f(MaxTableSize-1, "the next prime is 4194301")
	f(MaxTableSize+1, "from 3 to 4194301")
	f(4294967291, "from 3 to 4194301")
	for _, m := range []uint32{3, 5, 251, 65537, 655373, MaxTableSize} {
		if err := (Spec{Algorithm: Maglev, TableSize: m}).Validate(); err != nil {
			t.Errorf("%d: %v", m, err)
		}
	}
}

// TestIsPrime compares with trial division.
func TestIsPrime(t *testing.T) {
	for m := uint32(0); m < 5000; m++ {
		want := m > 1
		for d := uint32(2); d*d <= m; d++ {
			want = want && m%d != 0
		}
		if isPrime(m) != want {
			t.Errorf("isPrime(%d) = %t", m, !want)
		}
	}
}

func TestDeclaredValidate(t *testing.T) {
	good := func() Declared {
		return Declared{"cache", Spec{Algorithm: Ring}, []Node{{ID: "a", Weight: 1}, {ID: "b"}}}
	}
	f := func(path string, edit func(*Declared), parts ...string) {
		t.Helper()
		d := good()
		edit(&d)
		if err := d.Validate(); path != "" {
			refused(t, err, path, parts...)
		} else if err != nil {
			t.Errorf("refused: %v", err)
		}
	}
	f("", func(*Declared) {})
	f("", func(d *Declared) { d.Nodes = nil })
	f("cluster", func(d *Declared) { d.Cluster = ".." })
	f("key_hash", func(d *Declared) { d.Spec.KeyHash = "sha" })
	f("nodes[1].id", func(d *Declared) { d.Nodes[1].ID = "a" })
	f("nodes", func(d *Declared) { d.Nodes[0].Weight = 0 }, "every node has weight 0")
}

func TestNames(t *testing.T) {
	f := func(validate func(string) error, name, want string) {
		t.Helper()
		err := validate(name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
	for _, ok := range []string{"a", "Z9", "0", "a.b_c-d", strings.Repeat("x", 63)} {
		f(ValidateClusterName, ok, "")
	}
	for name, want := range map[string]string{"": "empty", ".": "'.' at byte 0", "-a": "'-' at byte 0", "a/b": "'/' at byte 1",
		"a b": "' ' at byte 1", "ä": "at byte 0", "a\x00": "at byte 1", strings.Repeat("x", 64): "longer than 63"} {
		f(ValidateClusterName, name, want)
	}
	for _, ok := range []string{"a", "10.0.0.1:11211", "[::1]:80", "a.b", "...", "~!@#$%^&*()", strings.Repeat("x", MaxNameLen)} {
		f(ValidateNodeID, ok, "")
	}
	for name, want := range map[string]string{"": "empty", ".": "not allowed", "..": "not allowed", "a/b": "'/' at byte 1", "a,b": "',' at byte 1",
		"a b": "' ' at byte 1", "é": "at byte 0", "a\n": `'\n' at byte 1`, "a\x7f": "at byte 1", strings.Repeat("x", MaxNameLen+1): "longer than 128"} {
		f(ValidateNodeID, name, want)
	}
}

func TestDraftIsACopy(t *testing.T) {
	in := slotsDraft()
	top := mustTopology(in)
	want := top.Digest()
	in.Nodes[0].ID, in.Objects[0] = "changed", nil
	d := top.Draft()
	d.Nodes[0].ID = "changed"
	d.Objects[0] = nil
	again, err := New(top.Draft())
	if err != nil || again.Digest() != want || top.Digest() != want {
		t.Errorf("the topology changed with its draft: %v", err)
	}
}

func TestAttach(t *testing.T) {
	top := mustTopology(slotsDraft())
	bare, err := Decode(top.Encode())
	if err != nil {
		t.Fatal(err)
	}
	slots, jump := top.Object(KindSlots), top.Object(KindJump)
	stranger := mustObject(KindSlots, 1, []string{"x"}, []uint16{0})
	f := func(want *Object, objects ...*Object) {
		t.Helper()
		got, err := bare.Attach(objects...)
		if want != nil {
			if !errors.Is(err, ErrMissingObject) || !strings.Contains(err.Error(), want.Kind().String()) || got != nil {
				t.Errorf("got %v, want ErrMissingObject for %s", err, want.Kind())
			}
			return
		}
		if err != nil || !got.Complete() || got.Object(KindSlots) != slots || got.Object(KindMaglev) != nil {
			t.Errorf("got %v, %v", got, err)
		}
	}
	f(slots)
	f(jump, slots)
	f(slots, stranger, jump)
	f(slots, nil, jump)
	f(nil, slots, jump)
	f(nil, stranger, jump, nil, slots)
	if bare.Complete() || len(bare.Objects()) != 0 {
		t.Error("Attach changed its receiver")
	}
}

func TestStates(t *testing.T) {
	want := map[State]uint32{StateActive: 5, StateDown: 5, StateJoining: 0, StateDraining: 0, StateLeft: 0}
	got := map[State]uint32{}
	for s := State(0); s < numStates; s++ {
		text, _ := s.MarshalText()
		var back State
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%s: read back as %v, %v", text, back, err)
		}
		got[s] = Node{ID: "a", Weight: 5, State: s}.OwnerWeight()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owner weights (-want +got):\n%s", diff)
	}
	if s, err := ParseState(""); s != StateActive || err != nil {
		t.Errorf(`ParseState(""): %v, %v`, s, err)
	}
	if _, err := ParseState("Active"); err == nil || !strings.Contains(err.Error(), "active, joining, draining, down, left") {
		t.Errorf("got %v", err)
	}
	if s := State(9).String(); s != "state(9)" {
		t.Errorf("got %q", s)
	}
}
