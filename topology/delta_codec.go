package topology

import (
	"bytes"
	"fmt"
	"math"
)

var deltaMagic = []byte("SHD\x01")

// Tags of the delta's fields.
const (
	tagDeltaBase = 1 + iota
	tagDeltaTarget
	tagDeltaHistory
	tagDeltaEpoch
	tagDeltaSeq
	tagDeltaParent
	tagDeltaSpec
	tagDeltaRemoved
	tagDeltaPut
	tagDeltaTables
	tagDeltaMapping
	tagDeltaCause
	tagDeltaPositions
	tagDeltaSlotRanges
	tagDeltaTransition
	tagDeltaTenure
)

func (d *delta) encode() []byte {
	w := writer{b: append([]byte(nil), deltaMagic...)}
	w.digestField(tagDeltaBase, d.base)
	w.digestField(tagDeltaTarget, d.target)
	w.fixedField(tagDeltaHistory, uint64(d.history))
	w.intField(tagDeltaEpoch, d.epoch)
	w.intField(tagDeltaSeq, d.seq)
	if d.parent != nil { // zeros, too: the target has no parent
		w.bytesField(tagDeltaParent, d.parent[:])
	}
	if d.spec != nil {
		w.bytesField(tagDeltaSpec, encodeSpec(*d.spec))
	}
	if len(d.removed) > 0 {
		w.bytesField(tagDeltaRemoved, (&writer{}).ascending(d.removed).b)
	}
	w.bytesField(tagDeltaPut, encodeNodes(d.put))
	if d.edited {
		t := &writer{}
		t.uvarint(uint64(len(d.tables)))
		for _, e := range d.tables {
			t.table(e)
		}
		w.bytesField(tagDeltaTables, t.b)
	}
	if d.mapping != nil {
		w.bytesField(tagDeltaMapping, d.mapping[:])
	}
	w.bytesField(tagDeltaCause, encodeCause(d.cause))
	w.bytesField(tagDeltaPositions, encodePositions(d.put))
	w.bytesField(tagDeltaSlotRanges, encodeSlotRanges(d.put))
	w.bytesField(tagDeltaTransition, encodeTransition(d.transition))
	w.bytesField(tagDeltaTenure, encodeTenure(d.tenure))
	return w.b
}

// ascending appends a count and the gaps between ascending numbers, each less
// one; the first number is a gap from -1.
func (w *writer) ascending(numbers []int) *writer {
	w.uvarint(uint64(len(numbers)))
	last := -1
	for _, n := range numbers {
		w.uvarint(uint64(n - last - 1))
		last = n
	}
	return w
}

func (w *writer) table(e tableEdit) *writer {
	w.b = append(w.b, e.how, byte(e.ref.Kind))
	if e.how == tableSame {
		return w
	}
	w.b = append(w.b, e.ref.Digest[:]...)
	w.uvarint(uint64(e.ref.Length))
	if e.how == tableNamed {
		return w
	}
	w.ascending(e.removed)
	w.uvarint(uint64(len(e.added)))
	for _, id := range e.added {
		w.str(id)
	}
	w.uvarint(uint64(len(e.moves)))
	for _, m := range e.moves {
		w.uvarint(uint64(m.owner))
		w.ascending(m.at)
	}
	return w
}

// DecodeDelta reads an encoding back. Bytes that are not exactly what Encode
// writes are refused with ErrCorrupt, a field of a later release with
// ErrUnknown. That it leads to its target only Apply can tell. It never panics.
// O(len(b)).
func DecodeDelta(b []byte) (*Delta, error) {
	rest, ok := bytes.CutPrefix(b, deltaMagic)
	if !ok {
		return nil, fmt.Errorf("%w: no delta header", ErrCorrupt)
	}
	d, err := decodeDelta(rest)
	if err != nil {
		return nil, err
	}
	encoded := d.encode()
	if !bytes.Equal(encoded, b) {
		return nil, fmt.Errorf("%w: delta is not in canonical form", ErrCorrupt)
	}
	return &Delta{d, encoded}, nil
}

var deltaTags = []uint64{tagDeltaBase, tagDeltaTarget, tagDeltaHistory, tagDeltaEpoch, tagDeltaSeq, tagDeltaParent,
	tagDeltaSpec, tagDeltaRemoved, tagDeltaPut, tagDeltaTables, tagDeltaMapping, tagDeltaCause,
	tagDeltaPositions, tagDeltaSlotRanges, tagDeltaTransition, tagDeltaTenure}

func decodeDelta(b []byte) (d delta, err error) {
	r := &reader{b: b}
	r.fields("delta", deltaTags, func(tag uint64, p *reader) {
		switch tag {
		case tagDeltaBase:
			d.base = p.digest()
		case tagDeltaTarget:
			d.target = p.digest()
		case tagDeltaHistory:
			d.history = History(p.fixed())
		case tagDeltaEpoch:
			d.epoch = p.uvarint()
		case tagDeltaSeq:
			d.seq = p.uvarint()
		case tagDeltaParent:
			parent := Digest(p.digest())
			d.parent = &parent
		case tagDeltaSpec:
			spec := decodeSpec(p)
			d.spec = &spec
		case tagDeltaRemoved:
			d.removed = p.ascending(MaxNodes)
		case tagDeltaPut:
			d.put = decodeNodes(p)
			for i := 1; i < len(d.put); i++ {
				if compareIDs(d.put[i-1], d.put[i]) >= 0 {
					p.fail("node %q is not after %q", d.put[i].ID, d.put[i-1].ID)
				}
			}
		case tagDeltaTables:
			d.edited = true
			d.tables = decodeTables(p)
		case tagDeltaMapping:
			mapping := Digest(p.digest())
			d.mapping = &mapping
		case tagDeltaCause:
			d.cause = decodeCause(p)
		case tagDeltaPositions:
			decodePositions(p, d.put)
		case tagDeltaTransition:
			d.transition = decodeTransition(p)
		case tagDeltaTenure:
			d.tenure = decodeTenure(p)
		case tagDeltaSlotRanges:
			decodeSlotRanges(p, d.put)
		}
	})
	return d, r.err
}

// ascending reads what writer.ascending wrote; all numbers are below limit.
func (r *reader) ascending(limit int) []int {
	numbers := make([]int, r.count(1))
	last := -1
	for i := range numbers {
		gap := r.uvarint()
		if r.err == nil && gap >= uint64(limit-last-1) {
			r.fail("position is not below %d", limit)
		}
		if r.err != nil {
			return nil
		}
		last += 1 + int(gap)
		numbers[i] = last
	}
	return numbers
}

func decodeTables(r *reader) []tableEdit {
	tables := make([]tableEdit, r.count(2))
	for i := range tables {
		tables[i] = decodeTable(r)
		if r.err != nil {
			return nil
		}
	}
	return tables
}

func decodeTable(r *reader) (e tableEdit) {
	if b := r.take(2); b != nil {
		e.how, e.ref.Kind = b[0], Kind(b[1])
	}
	if e.how == tableSame || r.err != nil {
		return e
	}
	if e.how > tableEdited {
		r.err = fmt.Errorf("%w: table edit %d", ErrUnknown, e.how)
		return e
	}
	e.ref.Digest = r.digest()
	e.ref.Length = uint32(r.uint(math.MaxUint32, "length"))
	if e.how == tableNamed {
		return e
	}
	e.removed = r.ascending(MaxNodes)
	e.added = make([]string, r.count(1))
	for i := range e.added {
		e.added[i] = r.str()
	}
	e.moves = make([]move, r.count(2))
	for i := range e.moves {
		e.moves[i] = move{int(r.uint(MaxNodes, "owner")), r.ascending(MaxEntries)}
	}
	return e
}
