package topology

import (
	"bytes"
	"fmt"
	"slices"
)

var savedMagic = []byte("shardd-topology\n\x01")

// MarshalSaved returns a self-contained file: the topology, the objects it
// refers to, and a digest over all of it. The topology must be Complete.
func (t *Topology) MarshalSaved() ([]byte, error) {
	if !t.Complete() {
		return nil, fmt.Errorf("%w: %d of %d attached; attach all before saving version %s", ErrMissingObject, len(t.Objects()), len(t.Refs()), t.d.Version)
	}
	w := writer{b: slices.Clone(savedMagic)}
	w.uvarint(uint64(len(t.encoded)))
	w.b = append(w.b, t.encoded...)
	objects := t.Objects()
	w.uvarint(uint64(len(objects)))
	for _, o := range objects {
		w.uvarint(uint64(len(o.encoded)))
		w.b = append(w.b, o.encoded...)
	}
	sum := Sum(w.b)
	return append(w.b, sum[:]...), nil
}

// IsSaved reports whether b begins as a file written by MarshalSaved does.
func IsSaved(b []byte) bool { return bytes.HasPrefix(b, savedMagic) }

// UnmarshalSaved reads a file written by MarshalSaved. A file that is cut
// short or changed is refused with ErrCorrupt.
func UnmarshalSaved(b []byte) (*Topology, error) {
	rest, ok := bytes.CutPrefix(b, savedMagic)
	if !ok || len(rest) < 16 {
		return nil, fmt.Errorf("%w: not a saved topology", ErrCorrupt)
	}
	body := b[:len(b)-16]
	if want, got := Digest(b[len(b)-16:]), Sum(body); got != want {
		return nil, fmt.Errorf("%w: saved topology has digest %s, its contents have %s; save it again", ErrCorrupt, want, got)
	}
	r := &reader{b: rest[:len(rest)-16]}
	encoded := r.take(r.uvarint())
	parts := make([][]byte, r.count(8))
	for i := range parts {
		parts[i] = r.take(r.uvarint())
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes after the last object", len(r.b))
	}
	if r.err != nil {
		return nil, r.err
	}
	t, err := assemble(encoded, parts)
	if err != nil {
		return nil, err
	}
	if again, err := t.MarshalSaved(); err != nil || !bytes.Equal(again, b) {
		return nil, fmt.Errorf("%w: saved topology is not in canonical form", ErrCorrupt)
	}
	return t, nil
}

func assemble(encoded []byte, parts [][]byte) (*Topology, error) {
	t, err := Decode(encoded)
	if err != nil {
		return nil, err
	}
	objects := make([]*Object, len(parts))
	for i, p := range parts {
		if objects[i], err = DecodeObject(p); err != nil {
			return nil, err
		}
	}
	return t.Attach(objects...)
}
