package topology

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// writer appends the canonical form: fields are (tag, length, payload) with
// ascending tags, a field whose value is zero is left out, integers are
// unsigned varints of least length, fixed-width values are big-endian.
type writer struct{ b []byte }

func (w *writer) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *writer) str(s string) {
	w.uvarint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) fixed(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

func (w *writer) bytesField(tag uint64, p []byte) {
	if len(p) == 0 {
		return
	}
	w.uvarint(tag)
	w.uvarint(uint64(len(p)))
	w.b = append(w.b, p...)
}

func (w *writer) strField(tag uint64, s string) { w.bytesField(tag, []byte(s)) }

func (w *writer) intField(tag, v uint64) {
	if v != 0 {
		w.bytesField(tag, binary.AppendUvarint(nil, v))
	}
}

func (w *writer) fixedField(tag, v uint64) {
	if v != 0 {
		w.bytesField(tag, binary.BigEndian.AppendUint64(nil, v))
	}
}

func (w *writer) digestField(tag uint64, d [16]byte) {
	if d != [16]byte{} {
		w.bytesField(tag, d[:])
	}
}

// reader takes the canonical form apart. The first error stays; what is read
// after it is zero. Whole values are checked for canonicity by encoding them
// again, so the reader itself only guards against running out of bytes.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("number cut short")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)) {
		r.fail("%d bytes wanted, %d left", n, len(r.b))
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) str() string { return string(r.take(r.uvarint())) }

// count reads a number of items that take at least size bytes each, so that a
// forged count cannot make the reader allocate more than the input justifies.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.fail("%d items of %d bytes or more do not fit into %d bytes", n, size, len(r.b))
		return 0
	}
	return int(n)
}

func (r *reader) uint(most uint64, what string) uint64 {
	v := r.uvarint()
	if v > most {
		r.fail("%s %d is more than %d", what, v, most)
		return 0
	}
	return v
}

func (r *reader) fixed() uint64 {
	if p := r.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (r *reader) digest() (d [16]byte) {
	copy(d[:], r.take(16))
	return d
}

// fields calls fn for every field with a reader over its payload. An unknown
// tag is ErrUnknown: it may change the mapping, so it is never skipped.
func (r *reader) fields(what string, known []uint64, fn func(tag uint64, p *reader)) {
	for len(r.b) > 0 && r.err == nil {
		tag := r.uvarint()
		payload := r.take(r.uvarint())
		if r.err != nil {
			return
		}
		if !slices.Contains(known, tag) {
			r.err = fmt.Errorf("%w: field %d of the %s", ErrUnknown, tag, what)
			return
		}
		p := &reader{b: payload}
		fn(tag, p)
		if p.err == nil && len(p.b) > 0 {
			p.fail("%d bytes after field %d of the %s", len(p.b), tag, what)
		}
		r.err = p.err
	}
}
