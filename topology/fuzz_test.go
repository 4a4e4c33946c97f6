package topology

import (
	"bytes"
	"errors"
	"testing"
)

// A decoder either refuses with one of the sentinels or returns what encodes
// to the very same bytes.

func decoderError(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrMissingObject) {
		t.Fatalf("error without a sentinel: %v", err)
	}
}

func seeds(f *testing.F) []*Topology {
	f.Helper()
	empty := baseDraft()
	empty.Nodes = nil
	maglev := baseDraft()
	maglev.Spec = Spec{Algorithm: Maglev, TableSize: 13}
	tops := []*Topology{}
	for _, d := range compatDrafts() {
		tops = append(tops, mustTopology(d))
	}
	return append(tops, mustTopology(baseDraft()), mustTopology(slotsDraft()), mustTopology(empty), mustTopology(maglev))
}

func FuzzDecode(f *testing.F) {
	for _, top := range seeds(f) {
		f.Add(top.Encode())
		f.Add(top.Encode()[:len(top.Encode())/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		top, err := Decode(b)
		if err != nil {
			decoderError(t, err)
			return
		}
		if !bytes.Equal(top.Encode(), b) {
			t.Fatalf("encodes to %x", top.Encode())
		}
		if _, err := New(top.Draft()); err != nil {
			t.Fatalf("New refuses what Decode took: %v", err)
		}
	})
}

func FuzzDecodeObject(f *testing.F) {
	for _, top := range seeds(f) {
		for _, o := range top.Objects() {
			f.Add(o.Encode())
		}
	}
	f.Add(mustObject(KindRendezvous, 1, nil, []uint16{NoOwner}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := DecodeObject(b)
		if err != nil {
			decoderError(t, err)
			return
		}
		if !bytes.Equal(o.Encode(), b) {
			t.Fatalf("encodes to %x", o.Encode())
		}
	})
}

func FuzzUnmarshalSaved(f *testing.F) {
	for _, top := range seeds(f) {
		b, err := top.MarshalSaved()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false)
		f.Add(b[:len(b)-16], true)
	}
	// With sum set the digest is made right, so that the fuzzer gets past it.
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		if sum {
			b = resum(bytes.Clone(b))
		}
		top, err := UnmarshalSaved(b)
		if err != nil {
			decoderError(t, err)
			return
		}
		again, err := top.MarshalSaved()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("saves as %x, %v", again, err)
		}
	})
}
