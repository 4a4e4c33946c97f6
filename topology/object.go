package topology

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
)

// NoOwner marks an entry of an Object that has no owner.
const NoOwner = 0xffff

// Limits of an Object.
const (
	MaxRows    = MaxReplicas
	MaxEntries = 1 << 23 // rows x size
)

// Kind says how the entries of an Object are read.
type Kind uint8

// The kinds of table objects.
const (
	KindSlots      Kind = 1 // row r, entry s: the r-th owner of slot s
	KindMaglev     Kind = 2 // one row of TableSize entries
	KindJump       Kind = 3 // row 0: owner of each bucket or none; row 1: who held it last
	KindRendezvous Kind = 4 // reserved
	KindSince      Kind = 5 // beside slots, maglev or jump: since which version; see NewSince
	maxKind        Kind = KindSince
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case KindSlots:
		return "slots"
	case KindMaglev:
		return "maglev"
	case KindJump:
		return "jump"
	case KindRendezvous:
		return "rendezvous"
	case KindSince:
		return "since"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(b []byte) error {
	for v := KindSlots; v <= maxKind; v++ {
		if v.String() == string(b) {
			*k = v
			return nil
		}
	}
	return fmt.Errorf("%w: object kind %q", ErrUnknown, b)
}

// Object is an immutable table of owners, addressed by the digest of its
// encoding. Entries index Nodes, the object's own sorted list of node ids, so
// renumbering the nodes of a topology changes no table. All methods are safe
// for concurrent use; slices that they return must not be changed.
type Object struct {
	kind    Kind
	rows    int
	size    int
	nodes   []string
	entries []uint16
	encoded []byte
	digest  Digest
}

// ObjectRef names an Object: its kind, the digest of its encoding and the
// encoding's length in bytes.
type ObjectRef struct {
	Kind   Kind   `json:"kind"`
	Digest Digest `json:"digest"`
	Length uint32 `json:"length"`
}

// NewObject makes an object of len(entries)/rows entries a row, rows one after
// another. nodes must be strictly ascending legal ids, at most MaxNodes; each
// entry is an index into nodes or NoOwner. The slices are copied.
// O(len(entries)).
func NewObject(kind Kind, rows int, nodes []string, entries []uint16) (*Object, error) {
	if kind < 1 || kind > maxKind {
		return nil, fmt.Errorf("%w: object kind %d", ErrUnknown, kind)
	}
	if rows < 1 || rows > MaxRows || len(entries)%rows != 0 || len(entries) > MaxEntries {
		return nil, fmt.Errorf("topology: object of %d entries in %d rows: want 1 to %d equal rows and at most %d entries", len(entries), rows, MaxRows, MaxEntries)
	}
	if len(nodes) > MaxNodes {
		return nil, fmt.Errorf("topology: object names %d nodes, more than %d", len(nodes), MaxNodes)
	}
	for i, id := range nodes {
		if err := ValidateNodeID(id); err != nil {
			return nil, fmt.Errorf("topology: object: %w", err)
		}
		if i > 0 && nodes[i-1] >= id {
			return nil, fmt.Errorf("topology: object: node %q is not after %q; list ids strictly ascending", id, nodes[i-1])
		}
	}
	for i, e := range entries {
		if int(e) >= len(nodes) && e != NoOwner {
			return nil, fmt.Errorf("topology: object: entry %d names node %d of %d", i, e, len(nodes))
		}
	}
	o := &Object{kind: kind, rows: rows, size: len(entries) / rows, nodes: slices.Clone(nodes), entries: slices.Clone(entries)}
	o.encoded = o.encode()
	o.digest = Sum(o.encoded)
	return o, nil
}

// Kind returns how the entries are read.
func (o *Object) Kind() Kind { return o.kind }

// Rows returns the number of rows.
func (o *Object) Rows() int { return o.rows }

// Size returns the number of entries in each row.
func (o *Object) Size() int { return o.size }

// Nodes returns the sorted ids that entries index. Read only.
func (o *Object) Nodes() []string { return o.nodes }

// Entries returns row r. Read only.
func (o *Object) Entries(r int) []uint16 { return o.entries[r*o.size : (r+1)*o.size] }

// Digest returns the digest of the encoding.
func (o *Object) Digest() Digest { return o.digest }

// Encode returns the canonical encoding. Read only.
func (o *Object) Encode() []byte { return o.encoded }

// Ref returns the reference by which a topology names this object.
func (o *Object) Ref() ObjectRef {
	return ObjectRef{Kind: o.kind, Digest: o.digest, Length: uint32(len(o.encoded))}
}

var objectMagic = []byte("SHO\x01")

// encode writes: magic, kind, rows, size, node count, node ids, then the
// entries, each in as many bits as len(nodes) takes (len(nodes) = no owner),
// least significant bit first, the last byte filled up with zeros.
func (o *Object) encode() []byte {
	w := writer{b: slices.Clone(objectMagic)}
	w.b = append(w.b, byte(o.kind))
	w.uvarint(uint64(o.rows))
	w.uvarint(uint64(o.size))
	w.uvarint(uint64(len(o.nodes)))
	for _, id := range o.nodes {
		w.str(id)
	}
	width := bits.Len(uint(len(o.nodes)))
	var acc uint64
	var have int
	for _, e := range o.entries {
		v := uint64(e)
		if e == NoOwner {
			v = uint64(len(o.nodes))
		}
		acc |= v << have
		for have += width; have >= 8; have -= 8 {
			w.b = append(w.b, byte(acc))
			acc >>= 8
		}
	}
	if have > 0 {
		w.b = append(w.b, byte(acc))
	}
	return w.b
}

// DecodeObject reads an encoding back. Bytes that are not exactly what Encode
// writes are refused with ErrCorrupt. O(len(b)).
func DecodeObject(b []byte) (*Object, error) {
	rest, ok := bytes.CutPrefix(b, objectMagic)
	if !ok {
		return nil, fmt.Errorf("%w: no object header", ErrCorrupt)
	}
	r := &reader{b: rest}
	kind := Kind(0)
	if k := r.take(1); k != nil {
		kind = Kind(k[0])
	}
	rows := int(r.uint(MaxRows, "rows"))
	size := int(r.uint(MaxEntries, "size"))
	nodes := make([]string, r.count(2))
	for i := range nodes {
		nodes[i] = r.str()
	}
	if r.err != nil {
		return nil, r.err
	}
	entries, err := unpack(r.b, rows*size, len(nodes))
	if err != nil {
		return nil, err
	}
	o, err := NewObject(kind, rows, nodes, entries)
	if err != nil {
		return nil, corrupt(err)
	}
	if !bytes.Equal(o.encoded, b) {
		return nil, fmt.Errorf("%w: object is not in canonical form", ErrCorrupt)
	}
	return o, nil
}

func unpack(b []byte, n, nodes int) ([]uint16, error) {
	width := bits.Len(uint(nodes))
	if n > MaxEntries || (n*width+7)/8 != len(b) {
		return nil, fmt.Errorf("%w: %d bytes for %d entries of %d bits", ErrCorrupt, len(b), n, width)
	}
	entries := make([]uint16, n)
	var acc uint64
	var have int
	for i := range entries {
		for have < width {
			acc |= uint64(b[0]) << have
			b = b[1:]
			have += 8
		}
		v := acc & (1<<width - 1)
		acc >>= width
		have -= width
		switch {
		case v < uint64(nodes):
			entries[i] = uint16(v)
		case v == uint64(nodes):
			entries[i] = NoOwner
		default:
			return nil, fmt.Errorf("%w: entry %d names node %d of %d", ErrCorrupt, i, v, nodes)
		}
	}
	return entries, nil
}
