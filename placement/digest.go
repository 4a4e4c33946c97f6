package placement

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/topology"
)

// mappingMagic begins what the mapping digest covers.
const mappingMagic = "shardd-mapping\x01"

// probes is how many hashes are looked up for the digest where the mapping is
// computed and not read: they catch an implementation that computes otherwise.
const probes = 64

// probeSeed is the seed of the probes.
const probeSeed = 0x70726f6265

// mappingDigest is the SHA-256, cut to 128 bits, of: the magic; the algorithm;
// the key hash, the hash tag and the hashes of a few keys; replicas and the zone
// rule; the owners' ids in order, each with its zone if the rule counts; and
// what Locate reads, owners numbered from 0:
//
//	ring        place (8 bytes) and owner (2) of every point
//	maglev      owner of every entry
//	slots       owner of every entry, row by row
//	jump        variant, owner of every bucket, 64 probes
//	rendezvous  weight (4 bytes) of every owner, then 64 probes, or with a table
//	            the owner of every entry
//	compat      instead of key hash and tag the engine's name and the hash's; then
//	            as ring or slots, or the owner of every entry or bucket, or the
//	            owners with the texts that are hashed and weights, and 64 probes
//
// Texts have their length in 4 bytes before them, numbers are big-endian, 0xffff
// is nobody. Every field has one length or states it, so no two mappings write
// the same bytes.
func (t *Table) mappingDigest() topology.Digest {
	w := digestWriter{h: sha256.New(), number: t.numberOwners()}
	w.text(mappingMagic)
	spec := t.topo.Spec()
	w.text(string(spec.Algorithm))
	if t.compat() {
		w.text(foreignEngines[t.kind])
		w.text(t.hash.String())
	} else {
		w.text(string(spec.KeyHash))
		w.text(spec.HashTag)
	}
	for _, key := range []string{"", "a", "{b}c", "d{e}f", "0123456789abcdef", "key:000000000001 of the shardd mapping digest"} {
		w.u64(t.hash.Sum(key))
	}
	w.u32(spec.Replicas)
	zones := spec.ZoneAware && spec.Replicas > 1
	w.flag(zones)
	w.u32(uint32(w.owners()))
	for _, n := range t.topo.Nodes() {
		if spec.OwnerWeight(n) == 0 {
			continue
		}
		w.text(n.ID)
		if zones {
			w.text(n.Zone)
		}
	}
	t.digestEngine(&w)
	w.flush()
	return topology.Digest(w.h.Sum(nil)[:16])
}

// numberOwners numbers the owners from 0; -1 for a node that owns nothing.
func (t *Table) numberOwners() []int {
	number := make([]int, t.topo.Len())
	next := 0
	for i, n := range t.topo.Nodes() {
		number[i] = -1
		if t.topo.Spec().OwnerWeight(n) > 0 {
			number[i] = next
			next++
		}
	}
	return number
}

func (t *Table) digestEngine(w *digestWriter) {
	switch t.kind {
	case kindRing:
		n := t.ring.NumPoints()
		w.u32(uint32(n))
		for i := range n {
			place, owner := t.ring.Point(i)
			w.u64(place)
			w.owner(owner)
		}
	case kindMaglev:
		t.digestEntries(w)
	case kindHRWTable:
		t.digestWeights(w) // the replicas of a slot follow from them
		t.digestEntries(w)
	case kindSlots:
		o := t.topo.Object(topology.KindSlots)
		w.u32(uint32(o.Size()))
		for row := range o.Rows() {
			for _, owner := range t.ownersIn(o, row) { // a row a replica, under redis-slots one
				w.owner(owner)
			}
		}
	case kindJump:
		w.text(string(t.topo.Spec().JumpVariant))
		buckets := t.ownersIn(t.topo.Object(topology.KindJump), 0)
		w.u32(uint32(len(buckets)))
		for _, owner := range buckets {
			w.owner(owner)
		}
		t.probe(w)
	case kindHRW:
		t.digestWeights(w)
		t.probe(w)
	default:
		t.digestForeign(w)
	}
}

// digestEntries writes the owner of every entry of a table.
func (t *Table) digestEntries(w *digestWriter) {
	n := t.slotCount()
	w.u32(uint32(n))
	for i := range n {
		w.owner(t.Locate(slotPieces(n).end(i)))
	}
}

// digestWeights writes the weight of every owner.
func (t *Table) digestWeights(w *digestWriter) {
	for _, n := range t.topo.Nodes() {
		if n.OwnerWeight() > 0 {
			w.u32(n.OwnerWeight())
		}
	}
}

// probe writes the owners of a fixed set of hashes.
func (t *Table) probe(w *digestWriter) {
	draw := splitmix.Source(probeSeed)
	for range probes {
		w.owner(t.Locate(draw.Next()))
	}
}

// digestWriter gathers small writes: a hash takes long blocks much faster.
type digestWriter struct {
	h      hash.Hash
	buf    []byte
	number []int
}

// owners is how many nodes have a number: all that own keys by their weight.
func (w *digestWriter) owners() int {
	n := 0
	for _, x := range w.number {
		n = max(n, x+1)
	}
	return n
}

func (w *digestWriter) flush() {
	w.h.Write(w.buf) // never fails
	w.buf = w.buf[:0]
}

func (w *digestWriter) full() {
	if len(w.buf) >= 8192 {
		w.flush()
	}
}

func (w *digestWriter) text(s string) {
	w.u32(uint32(len(s)))
	w.buf = append(w.buf, s...)
	w.full()
}

func (w *digestWriter) u64(v uint64) {
	w.buf = binary.BigEndian.AppendUint64(w.buf, v)
	w.full()
}

func (w *digestWriter) u32(v uint32) { w.buf = binary.BigEndian.AppendUint32(w.buf, v) }

func (w *digestWriter) flag(v bool) {
	if v {
		w.u32(1)
	} else {
		w.u32(0)
	}
}

// owner writes the number of the owner at this node index, 0xffff for none.
func (w *digestWriter) owner(index int) {
	number := uint16(topology.NoOwner)
	if index >= 0 {
		number = uint16(w.number[index])
	}
	w.buf = binary.BigEndian.AppendUint16(w.buf, number)
	w.full()
}
