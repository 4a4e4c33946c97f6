package topology

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var cmpEmpty = cmpopts.EquateEmpty()

func TestSavedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := mustTopology(genDraft(t))
		b, err := top.MarshalSaved()
		if err != nil {
			t.Fatalf("MarshalSaved: %v", err)
		}
		if !IsSaved(b) {
			t.Fatalf("IsSaved is false")
		}
		back, err := UnmarshalSaved(b)
		if err != nil {
			t.Fatalf("UnmarshalSaved: %v", err)
		}
		sameTopology(t, back, top)
	})
}

// TestSavedDetectsDamage: no cut and no changed bit goes unnoticed.
func TestSavedDetectsDamage(t *testing.T) {
	good, err := mustTopology(slotsDraft()).MarshalSaved()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(b []byte, what string, i int) {
		if top, err := UnmarshalSaved(b); !errors.Is(err, ErrCorrupt) || top != nil {
			t.Fatalf("%s %d: got %v, %v", what, i, top, err)
		}
	}
	for i := range good {
		refused(good[:i], "cut to", i)
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			refused(b, "changed byte", i)
		}
	}
	refused(append(bytes.Clone(good), 0), "one byte more", 0)
}

// resum closes a hand-made saved file with the digest that its contents have.
func resum(body []byte) []byte {
	sum := Sum(body)
	return append(body, sum[:]...)
}

// TestSavedRefuses: files with a right digest and wrong contents.
func TestSavedRefuses(t *testing.T) {
	top := mustTopology(slotsDraft())
	file := func(encoded []byte, objects ...[]byte) []byte {
		w := writer{b: bytes.Clone(savedMagic)}
		w.uvarint(uint64(len(encoded)))
		w.b = append(w.b, encoded...)
		w.uvarint(uint64(len(objects)))
		for _, o := range objects {
			w.uvarint(uint64(len(o)))
			w.b = append(w.b, o...)
		}
		return resum(w.b)
	}
	slots, jump := top.Object(KindSlots).Encode(), top.Object(KindJump).Encode()
	stranger := mustObject(KindMaglev, 1, []string{"x"}, []uint16{0}).Encode()
	f := func(name string, b []byte, want error) {
		t.Helper()
		if top, err := UnmarshalSaved(b); !errors.Is(err, want) || top != nil {
			t.Errorf("%s: got %v, %v, want %v", name, top, err, want)
		}
	}
	if _, err := UnmarshalSaved(file(top.Encode(), slots, jump)); err != nil {
		t.Fatalf("the hand-made good file: %v", err)
	}
	f("an object missing", file(top.Encode(), slots), ErrMissingObject)
	f("objects swapped", file(top.Encode(), jump, slots), ErrCorrupt)
	f("an object that nothing refers to", file(top.Encode(), slots, jump, stranger), ErrCorrupt)
	f("another object", file(top.Encode(), slots, stranger), ErrMissingObject)
	f("not a topology", file([]byte("hello"), slots, jump), ErrCorrupt)
	f("not an object", file(top.Encode(), slots, []byte("hello")), ErrCorrupt)
	f("a number cut short", resum(append(bytes.Clone(savedMagic), 0xff)), ErrCorrupt)
	f("forged count", resum(binary.AppendUvarint(append(bytes.Clone(savedMagic), 0), 1<<50)), ErrCorrupt)
	f("bytes after the last object", resum(append(bytes.Clone(savedMagic), 0, 0, 0)), ErrCorrupt)
}

func TestMarshalSavedIncomplete(t *testing.T) {
	bare, err := Decode(mustTopology(slotsDraft()).Encode())
	if err != nil {
		t.Fatal(err)
	}
	if bare.Complete() {
		t.Error("Complete() without its tables")
	}
	if _, err := bare.MarshalSaved(); !errors.Is(err, ErrMissingObject) {
		t.Errorf("got %v", err)
	}
}
