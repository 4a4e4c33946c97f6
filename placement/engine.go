package placement

import (
	"fmt"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/slots"
)

// kind says which of an engine's algorithms is set.
type kind uint8

const (
	kindRing kind = iota
	kindMaglev
	kindSlots
	kindJump
	kindHRW
	kindHRWTable
	// Those that only foreign mappings have; others of them are rings and slots.
	kindModulo
	kindList
	kindScore
	kindKeyed
	kindSteps // two mappings, while owners change in steps
)

// engine is the algorithm of a table: one pointer is set, and kind says which.
// A switch over concrete types lets the compiler inline the lookups; through an
// interface a maglev lookup costs half as much again.
type engine struct {
	kind     kind
	ring     *ring.Ring
	maglev   *maglev.Table
	slots    *slots.Table
	jump     *jump.Table
	hrw      *rendezvous.HRW
	hrwTable *rendezvous.Table
	foreign  *compat.Mapping
	steps    *steps
}

func (e *engine) locate(h uint64) int {
	switch e.kind {
	case kindRing:
		return e.ring.Locate(h)
	case kindMaglev:
		return e.maglev.Locate(h)
	case kindSlots:
		return e.slots.Locate(h)
	case kindJump:
		return e.jump.Locate(h)
	case kindHRW:
		return e.hrw.Locate(h)
	case kindHRWTable:
		return e.hrwTable.Locate(h)
	}
	return e.locateForeign(h)
}

// locateForeign is a function of its own so that the native cases stay few.
func (e *engine) locateForeign(h uint64) int {
	switch e.kind {
	case kindModulo:
		return e.foreign.Modulo.Locate(h)
	case kindList:
		return e.foreign.Jump.Locate(h)
	case kindScore:
		return e.foreign.Score.Locate(h)
	case kindSteps:
		return e.steps.side(h).locate(h)
	}
	return e.foreign.Keyed.LocateKey(keyText(h))
}

// keyText is the key that stands for hash h where keys, not hashes, are mapped.
func keyText(h uint64) string { return fmt.Sprintf("%016x", h) }

// prefer is the algorithm's own preference order; not for kindSteps, whose sides
// have one each (Table.AppendReplicas).
func (e *engine) prefer(dst []int, h uint64, n int) []int {
	switch e.kind {
	case kindRing:
		return e.ring.AppendReplicas(dst, h, n)
	case kindMaglev:
		return e.maglev.AppendReplicas(dst, h, n)
	case kindSlots:
		return e.slots.AppendReplicas(dst, h, n)
	case kindJump:
		return e.jump.AppendReplicas(dst, h, n)
	case kindHRW:
		return e.hrw.AppendReplicas(dst, h, n)
	case kindHRWTable:
		return e.hrwTable.AppendReplicas(dst, h, n)
	case kindModulo:
		return e.foreign.Modulo.AppendReplicas(dst, h, n)
	case kindList:
		return e.foreign.Jump.AppendReplicas(dst, h, n)
	case kindScore:
		return e.foreign.Score.AppendReplicas(dst, h, n)
	}
	return e.foreign.Keyed.AppendKey(dst, keyText(h), n)
}

// slotCount is the size of the table that the mapping consists of, 0 for none.
func (e *engine) slotCount() int {
	switch e.kind {
	case kindMaglev:
		return e.maglev.Size()
	case kindSlots:
		return e.slots.Size()
	case kindHRWTable:
		return e.hrwTable.Slots()
	}
	return 0
}

// pieces cuts the key space into runs of one preference order; nil if the
// algorithm decides key by key.
func (e *engine) pieces() pieces {
	if e.kind == kindRing {
		return ringPieces{e.ring}
	}
	if n := e.slotCount(); n > 0 {
		return slotPieces(n)
	}
	return nil
}
