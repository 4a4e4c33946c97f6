// Package window counts two kinds of events over the last span of time.
//
// The span is cut into slots; a slot holds the number of its epoch (now divided
// by the slot's width) beside its two counts, so that an old slot is recognised
// and started afresh by the first event that needs it: there is no timer and no
// rotation. The sums cover between span minus one slot and span.
//
// Law: counts are never negative; an event is in the sums until its slot is
// older than the span; a clock that goes back by less than the span loses
// nothing, one that goes back further starts afresh.
//
// Cost: Add is one load and one atomic add (a compare-and-swap for the first
// event of a slot); Sums loads every slot. No lock, no allocation.
package window

import (
	"sync/atomic"
	"time"
)

// Slots is the number of slots of a window: the sums are exact to a tenth of the span.
const Slots = 10

// Kind names one of the two counts.
type Kind uint8

// The two counts.
const (
	A Kind = iota
	B
)

// Window holds the counts. Make one with New; it must not be copied.
// All methods may be called by any number of goroutines.
type Window struct {
	width time.Duration
	slots [2][Slots]atomic.Uint64 // epoch<<32 | count
}

// New returns a window over span; a span under Slots nanoseconds counts as that.
func New(span time.Duration) *Window {
	return &Window{width: max(1, span/Slots)}
}

// Add counts one event of kind k at now.
func (w *Window) Add(now time.Duration, k Kind) {
	e := w.epoch(now)
	s := w.slot(k, e)
	for {
		v := s.Load()
		if live(v, e) {
			// The slot may be started afresh between the load and the add;
			// the event then counts in the newer slot, which is as well.
			s.Add(1)
			return
		}
		if s.CompareAndSwap(v, uint64(e)<<32|1) {
			return
		}
	}
}

// TryAdd counts one event of kind k at now if the sum of that kind stays at or
// under limit, and reports whether it did. Goroutines in the same slot never
// exceed the limit together; two that meet at the border of two slots may, by
// one each.
func (w *Window) TryAdd(now time.Duration, k Kind, limit uint64) bool {
	e := w.epoch(now)
	s := w.slot(k, e)
	for {
		v := s.Load()
		next := v + 1
		if !live(v, e) {
			next = uint64(e)<<32 | 1
		}
		if w.sumBut(k, e)+(next&0xffffffff) > limit {
			return false
		}
		if s.CompareAndSwap(v, next) {
			return true
		}
	}
}

// Undo takes one event of kind k back that was counted at now or before, if its
// slot still holds one: a count never falls below zero.
func (w *Window) Undo(now time.Duration, k Kind) {
	e := w.epoch(now)
	for i := range uint32(Slots) {
		s := w.slot(k, e-i)
		for v := s.Load(); live(v, e) && v&0xffffffff != 0; v = s.Load() {
			if s.CompareAndSwap(v, v-1) {
				return
			}
		}
	}
}

// Sums returns the two counts at now.
func (w *Window) Sums(now time.Duration) (a, b uint64) {
	e := w.epoch(now)
	return w.sum(A, e), w.sum(B, e)
}

func (w *Window) sum(k Kind, e uint32) (sum uint64) {
	for i := range w.slots[k] {
		if v := w.slots[k][i].Load(); live(v, e) {
			sum += v & 0xffffffff
		}
	}
	return sum
}

// sumBut is the sum without the slot of epoch e itself.
func (w *Window) sumBut(k Kind, e uint32) (sum uint64) {
	for i := range w.slots[k] {
		if uint32(i) == e%Slots {
			continue
		}
		if v := w.slots[k][i].Load(); live(v, e) {
			sum += v & 0xffffffff
		}
	}
	return sum
}

func (w *Window) epoch(now time.Duration) uint32 { return uint32(max(0, now)/w.width) + Slots }

func (w *Window) slot(k Kind, e uint32) *atomic.Uint64 { return &w.slots[k][e%Slots] }

// live reports whether the slot's epoch is within the span of epoch e. A slot
// from the near future belongs to a goroutine with a later now and counts.
func live(v uint64, e uint32) bool {
	d := int32(e - uint32(v>>32))
	return -Slots < d && d < Slots
}
