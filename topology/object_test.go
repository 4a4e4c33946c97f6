package topology

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestObjectRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genObject(t, Kind(rapid.IntRange(1, int(maxKind)).Draw(t, "kind")))
		back, err := DecodeObject(o.Encode())
		if err != nil {
			t.Fatalf("DecodeObject: %v", err)
		}
		if diff := cmp.Diff(o, back, cmp.AllowUnexported(Object{}), cmpEmpty); diff != "" {
			t.Fatalf("object (-want +got):\n%s", diff)
		}
	})
}

// TestObjectPacked: an entry takes ceil(log2(nodes+1)) bits, at every width.
func TestObjectPacked(t *testing.T) {
	const size = 1000
	for _, n := range []int{0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 256, 4095, 40_000, MaxNodes} {
		ids := make([]string, n)
		header := 0
		for i := range ids {
			ids[i] = fmt.Sprintf("n%05d", i)
			header += 1 + len(ids[i])
		}
		entries := make([]uint16, size)
		for i := range entries {
			entries[i] = NoOwner
			if n > 0 && i%7 != 0 {
				entries[i] = uint16(n - 1 - i%n)
			}
		}
		o := mustObject(KindMaglev, 1, ids, entries)
		if want, most := (size*bits.Len(uint(n))+7)/8, 20; len(o.Encode())-header < want || len(o.Encode())-header > want+most {
			t.Errorf("%d nodes: %d bytes besides the ids, want %d and a header of at most %d", n, len(o.Encode())-header, want, most)
		}
		back, err := DecodeObject(o.Encode())
		if err != nil || !slices.Equal(back.Entries(0), entries) {
			t.Errorf("%d nodes: entries differ after decoding: %v", n, err)
		}
	}
}

func TestObjectAccessors(t *testing.T) {
	ids := []string{"a", "b"}
	entries := []uint16{0, 1, NoOwner, 1, 1, 0}
	o := mustObject(KindJump, 2, ids, entries)
	ids[0], entries[0] = "z", 7 // the object holds copies
	if o.Kind() != KindJump || o.Rows() != 2 || o.Size() != 3 || !slices.Equal(o.Nodes(), []string{"a", "b"}) {
		t.Errorf("got %v %d %d %v", o.Kind(), o.Rows(), o.Size(), o.Nodes())
	}
	if !slices.Equal(o.Entries(0), []uint16{0, 1, NoOwner}) || !slices.Equal(o.Entries(1), []uint16{1, 1, 0}) {
		t.Errorf("rows %v, %v", o.Entries(0), o.Entries(1))
	}
	want := ObjectRef{KindJump, Sum(o.Encode()), uint32(len(o.Encode()))}
	if o.Ref() != want || o.Digest() != want.Digest {
		t.Errorf("ref %v, want %v", o.Ref(), want)
	}
}

func TestNewObjectRefuses(t *testing.T) {
	f := func(kind Kind, rows int, nodes []string, entries []uint16, want string) {
		t.Helper()
		o, err := NewObject(kind, rows, nodes, entries)
		if err == nil || !strings.Contains(err.Error(), want) || o != nil {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ab := []string{"a", "b"}
	f(0, 1, ab, nil, "object kind 0")
	f(maxKind+1, 1, ab, nil, "object kind 6")
	f(KindSlots, 0, ab, nil, "in 0 rows")
	f(KindSlots, -1, ab, nil, "in -1 rows")
	f(KindSlots, MaxRows+1, ab, nil, "in 17 rows")
	f(KindSlots, 2, ab, []uint16{1}, "want 1 to 16 equal rows")
	f(KindSlots, 1, ab, make([]uint16, MaxEntries+1), "at most 8388608 entries")
	f(KindSlots, 1, make([]string, MaxNodes+1), nil, "more than 65534")
	f(KindSlots, 1, []string{"b", "a"}, nil, "strictly ascending")
	f(KindSlots, 1, []string{"a", "a"}, nil, "strictly ascending")
	f(KindSlots, 1, []string{""}, nil, "node id is empty")
	f(KindSlots, 1, ab, []uint16{2}, "entry 0 names node 2 of 2")
}

func TestDecodeObjectRefuses(t *testing.T) {
	good := mustObject(KindSlots, 1, []string{"a", "b"}, []uint16{0, 1, NoOwner}).Encode()
	edit := func(i int, v byte) []byte {
		b := bytes.Clone(good)
		b[i] = v
		return b
	}
	f := func(name string, b []byte, want error) {
		t.Helper()
		if o, err := DecodeObject(b); !errors.Is(err, want) || o != nil {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	// SHO 01 | kind | rows | size | nodes | 1 a | 1 b | entries
	last := len(good) - 1
	f("nothing", nil, ErrCorrupt)
	f("header only", good[:4], ErrCorrupt)
	f("another format", edit(3, 2), ErrCorrupt)
	f("a later kind", edit(4, 9), ErrUnknown)
	f("no rows", edit(5, 0), ErrCorrupt)
	f("too many rows", edit(5, MaxRows+1), ErrCorrupt)
	f("more entries than bytes", edit(6, 100), ErrCorrupt)
	f("fewer entries than bytes", append(bytes.Clone(good), 0), ErrCorrupt)
	f("padding not zero", edit(last, good[last]|0x80), ErrCorrupt)
	f("entry out of range", edit(last, 0x3f), ErrCorrupt)
	f("ids unsorted", edit(9, 'c'), ErrCorrupt)
	f("count of nodes beyond the bytes", edit(7, 0x7f), ErrCorrupt)
	f("cut in the ids", good[:9], ErrCorrupt)
	f("overlong varint", append(append(bytes.Clone(good[:5]), 0x81, 0x00), good[6:]...), ErrCorrupt)
	f("huge size", append([]byte("SHO\x01\x01\x10"), 0xff, 0xff, 0xff, 0x03, 0), ErrCorrupt)
}

func TestKindText(t *testing.T) {
	for k := KindSlots; k <= maxKind; k++ {
		text, _ := k.MarshalText()
		var back Kind
		if err := back.UnmarshalText(text); err != nil || back != k {
			t.Errorf("%s: read back as %v, %v", text, back, err)
		}
	}
	if s := Kind(77).String(); s != "kind(77)" {
		t.Errorf("got %q", s)
	}
	var k Kind
	if err := k.UnmarshalText([]byte("tree")); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}
