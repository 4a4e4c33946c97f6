// Package ticket makes every admission end exactly once.
//
// A Ticket is a value: a slot of a table and the word written there when it was
// taken. Closing it is one compare-and-swap of that word, so that of all copies
// of a ticket one Close succeeds, whatever the order and the goroutine. A slot
// that nobody closes can be expired by its age; the late Close then fails.
//
// Law: for each Take exactly one of Close and Expire reports it.
//
// Cost: Take and Close are one compare-and-swap each when the table has room,
// without allocation. The table doubles when it is nearly full, so that n
// tickets in flight cost O(log n) allocations for good; it does not shrink
// below its largest page. Expire is O(size).
//
// Compared with a counter alone it costs two compare-and-swaps more; see
// BenchmarkTakeClose, which has both.
package ticket

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// The word in a slot: used bit, sequence of the slot (15 bits), cost (16 bits),
// time taken (32 bits, in units of 2^20 ns, modulo 2^32: 52 days). The sequence
// lets a stale copy fail although a later ticket sits in the same slot with the
// same cost and time; 32,768 uses of one slot within a millisecond would be
// needed to fool it.
const (
	usedBit   = 1 << 63
	seqShift  = 48
	seqMask   = 0x7fff << seqShift
	costShift = 32
	unitShift = 20

	// MaxCost is the largest cost a ticket can carry.
	MaxCost = 1<<16 - 1
	// Unit is the resolution of the age that Expire sees.
	Unit = time.Duration(1 << unitShift)
)

const (
	firstPage = 32 // slots; 256 bytes
	line      = 8  // slots of 8 bytes in a cache line
	lines     = 4  // cache lines tried before a page counts as full
)

// Ticket is one admission. The zero Ticket is closed. Copies are the same ticket.
type Ticket struct {
	slot *atomic.Uint64
	word uint64
}

// Close ends the ticket and reports whether this call was the one that did.
func (t Ticket) Close() bool {
	return t.slot != nil && t.slot.CompareAndSwap(t.word, t.word&seqMask)
}

// Open reports whether the ticket has not ended yet.
func (t Ticket) Open() bool { return t.slot != nil && t.slot.Load() == t.word }

// Cost returns the cost given to Take.
func (t Ticket) Cost() int { return cost(t.word) }

func cost(word uint64) int { return int(word >> costShift & MaxCost) }

// Ledger holds the open tickets. The zero Ledger is ready; it must not be copied.
// All methods may be called by any number of goroutines.
type Ledger struct {
	page  atomic.Pointer[page] // newest and largest; takes go there
	swept atomic.Int64         // when Sweep last looked
	grow  sync.Mutex           // guards growing and trimming only
}

type page struct {
	slots []atomic.Uint64
	older atomic.Pointer[page]
}

// Take opens a ticket of the given cost, 1..MaxCost, at now.
func (l *Ledger) Take(now time.Duration, cost int) Ticket {
	low := uint64(cost)<<costShift | stamp(now)
	if p := l.page.Load(); p != nil {
		return l.takeIn(p, low)
	}
	return l.takeGrowing(low)
}

// takeIn is Take in a page that was the newest a moment ago. One that is not may
// have been dropped as empty before the slot was taken, and nothing would expire
// there.
func (l *Ledger) takeIn(p *page, low uint64) Ticket {
	if t, ok := p.take(low); ok && (l.page.Load() == p || !t.Close()) {
		return t
	}
	return l.takeGrowing(low)
}

// Expire closes the tickets that are at least after old at now, or as far in the
// future because the clock went back (late by less than two Units, at most 26
// days; all of them when after is 0), and returns how many they were and their
// costs together.
func (l *Ledger) Expire(now, after time.Duration) (n, costs int) {
	for p := l.page.Load(); p != nil; p = p.older.Load() {
		pn, pc := p.expire(now, after)
		n, costs = n+pn, costs+pc
	}
	l.trim()
	return n, costs
}

// sweeps is how often Sweep looks in the time after which a ticket is lost.
const sweeps = 4

// Sweep is Expire at most four times in lost, for a call on a hot path: most
// calls are one atomic load. A ticket is expired by a Sweep at latest 5/4 of
// lost after it was taken. A lost of 0 or less never expires anything.
func (l *Ledger) Sweep(now, lost time.Duration) (n, costs int) {
	last := l.swept.Load()
	elapsed, every := now-time.Duration(last), max(1, lost/sweeps)
	if lost <= 0 || -every < elapsed && elapsed < every || !l.swept.CompareAndSwap(last, int64(now)) {
		return 0, 0
	}
	return l.Expire(now, lost)
}

func (l *Ledger) takeGrowing(low uint64) Ticket {
	l.grow.Lock()
	defer l.grow.Unlock()
	size := firstPage
	if p := l.page.Load(); p != nil {
		if t, ok := p.take(low); ok { // somebody grew it meanwhile
			return t
		}
		size = 2 * len(p.slots)
	}
	p := &page{slots: make([]atomic.Uint64, size)}
	p.older.Store(l.page.Load())
	t, _ := p.take(low) // empty and not yet visible: there is room
	l.page.Store(p)
	return t
}

// trim drops older pages in which nothing is open: nothing is taken there any more.
func (l *Ledger) trim() {
	p := l.page.Load()
	if p == nil || p.older.Load() == nil || !l.grow.TryLock() {
		return
	}
	defer l.grow.Unlock()
	for p := l.page.Load(); p != nil; {
		if old := p.older.Load(); old != nil && old.empty() {
			p.older.Store(old.older.Load())
			continue
		}
		p = p.older.Load()
	}
}

// take tries a few cache lines from a random one. Which slot it is has no
// meaning, so the chance used here need not be the caller's.
func (p *page) take(low uint64) (Ticket, bool) {
	mask := uint64(len(p.slots) - 1)
	at := rand.Uint64() & mask &^ (line - 1)
	for range lines {
		for i := at; i < at+line; i++ {
			if t, ok := take(&p.slots[i], low); ok {
				return t, true
			}
		}
		at = (at + line) & mask
	}
	return Ticket{}, false
}

func take(slot *atomic.Uint64, low uint64) (Ticket, bool) {
	old := slot.Load()
	if old&usedBit != 0 {
		return Ticket{}, false
	}
	word := usedBit | (old+1<<seqShift)&seqMask | low
	return Ticket{slot, word}, slot.CompareAndSwap(old, word)
}

func (p *page) expire(now, after time.Duration) (n, costs int) {
	// Both ends are rounded down, so a full unit more is asked: never early,
	// late by less than two units.
	limit := int32(0)
	if after > 0 {
		limit = int32(min((after+Unit-1)>>unitShift, math.MaxInt32-1)) + 1
	}
	for i := range p.slots {
		word := p.slots[i].Load()
		if word&usedBit == 0 {
			continue
		}
		// A clock that has gone back by as much will not come back soon: the
		// ticket would stay open for good.
		age := int32(uint32(stamp(now)) - uint32(word))
		if limit > 0 && -limit < age && age < limit {
			continue
		}
		if (Ticket{&p.slots[i], word}).Close() {
			n, costs = n+1, costs+cost(word)
		}
	}
	return n, costs
}

func (p *page) empty() bool {
	for i := range p.slots {
		if p.slots[i].Load()&usedBit != 0 {
			return false
		}
	}
	return true
}

func stamp(now time.Duration) uint64 { return uint64(uint32(now >> unitShift)) }
