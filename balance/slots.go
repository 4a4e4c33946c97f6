package balance

import (
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// slots gives every open request of a node a word of its own. A Ticket holds
// the word's address and value; closing the request is a compare-and-swap from
// that value, so the first Done wins and any copy's second one fails. A word is
//
//	start, in steps of 2^20 ns (40 bits) | busy (1 bit) | generation (23 bits)
//
// and the generation grows with every release, so that a late copy does not
// close the next request in the same slot: it would have to sleep through
// 2^23 requests of that slot and find the same step of time.
//
// The first four slots lie beside the count of requests in flight. With more
// requests than that, further ones go to a table that is at most half full, so
// a free slot is found in two probes on average; it doubles when needed and is
// kept, 16 bytes at most for each request of the highest tide.
//
// The price, Pick and Done together with n = 100: 22 ns with tickets, against 10 ns
// for the choice and a count that is raised and lowered (BenchmarkP2C,
// BenchmarkBareCount); half of the difference is the words, half the ticket.
type slots struct {
	near [4]atomic.Uint64
	far  atomic.Pointer[table]
}

type table struct {
	slots []atomic.Uint64
	older *table // smaller ones, drained as their requests end
}

const (
	genBits   = 23
	genMask   = 1<<genBits - 1
	busy      = 1 << genBits
	tickShift = 20 // 2^20 ns: 1.05 ms
	tickBits  = 64 - genBits - 1
	minTable  = 32
)

// taken returns the word of a free slot with value w, taken at start.
func taken(w uint64, start time.Duration) uint64 {
	return uint64(start>>tickShift)<<(genBits+1) | busy | w&genMask
}

// freed returns the word that follows w when its request ends.
func freed(w uint64) uint64 { return (w + 1) & genMask }

// age returns how long the request with word w is open; 0 if it starts in the
// future.
func age(w uint64, now time.Duration) time.Duration { return max(0, since(w, now)) }

// since is age, negative for a start in the future: the clock went back.
func since(w uint64, now time.Duration) time.Duration {
	ticks := int64(uint64(now>>tickShift)-w>>(genBits+1)) << (64 - tickBits) >> (64 - tickBits)
	return time.Duration(ticks) << tickShift
}

// occupy takes a slot; open is the number of requests in flight with this one.
func (s *slots) occupy(open int64, start time.Duration) (*atomic.Uint64, uint64) {
	for i := range int64(len(s.near)) {
		slot := &s.near[uint64(open+i)%uint64(len(s.near))]
		if w, ok := takeSlot(slot, start); ok {
			return slot, w
		}
	}
	return s.occupyFar(open, start)
}

func takeSlot(slot *atomic.Uint64, start time.Duration) (uint64, bool) {
	w := slot.Load()
	if w&busy != 0 {
		return 0, false
	}
	next := taken(w, start)
	return next, slot.CompareAndSwap(w, next)
}

func (s *slots) occupyFar(open int64, start time.Duration) (*atomic.Uint64, uint64) {
	for {
		t := s.far.Load()
		if slot, w := t.take(open, start); slot != nil {
			return slot, w
		}
		size := minTable
		if t != nil {
			size = 2 * len(t.slots)
		}
		bigger := &table{slots: make([]atomic.Uint64, size), older: t}
		if s.far.CompareAndSwap(t, bigger) {
			slot, w := bigger.take(0, start)
			if slot != nil {
				return slot, w
			}
		}
	}
}

// take looks for a free slot from a place that differs from call to call; nil
// if the table should grow: more than half of it may be in use.
func (t *table) take(open int64, start time.Duration) (*atomic.Uint64, uint64) {
	if t == nil || open > int64(len(t.slots)/2) {
		return nil, 0
	}
	at := splitmix.Mix(uint64(open)*splitmix.Golden + uint64(start))
	for i := range t.slots {
		slot := &t.slots[(at+uint64(i))&uint64(len(t.slots)-1)]
		if w, ok := takeSlot(slot, start); ok {
			return slot, w
		}
	}
	return nil, 0
}

// each calls f for every open request.
func (s *slots) each(f func(slot *atomic.Uint64, w uint64)) {
	visit := func(list []atomic.Uint64) {
		for i := range list {
			if w := list[i].Load(); w&busy != 0 {
				f(&list[i], w)
			}
		}
	}
	visit(s.near[:])
	for t := s.far.Load(); t != nil; t = t.older {
		visit(t.slots)
	}
}
