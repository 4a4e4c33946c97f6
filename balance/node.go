package balance

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/shardd/shardd/balance/internal/decay"
)

// cacheLine is the distance that keeps two nodes from sharing what the
// processor fetches together: a line of 64 bytes and its neighbour.
const cacheLine = 128

// Node is the load state of one incarnation of one node: the counters that
// outlive the pickers built over them. All pickers of a client that serve the
// same node share its Node, so that each sees all requests in flight.
//
// A Node is made by a Pool or by NewNode, is safe for concurrent use and must
// not be copied. What a pick and its Done write (the count, the first slots of
// open requests) is in one cache line of its own.
type Node struct {
	flight atomic.Int64  // requests in flight, never negative
	errs   decay.Value   // recent errors
	slots                // open requests
	_      [nodePad]byte // what follows is seldom written

	id          string
	incarnation uint64
	expired     atomic.Uint64
	repeated    atomic.Uint64
	_           [cacheLine/2 - 16 - 3*8]byte
}

// nodePad fills the first line.
const nodePad = cacheLine/2 - 8 - unsafe.Sizeof(decay.Value{}) - unsafe.Sizeof(slots{})

// NewNode returns the state of a node that has just appeared: nothing in
// flight, no errors. The id is for people and for Pool; it need not be unique.
func NewNode(id string, incarnation uint64) *Node {
	return &Node{id: id, incarnation: incarnation}
}

// ID returns the node's identity.
func (n *Node) ID() string { return n.id }

// Incarnation returns the number that tells this stay of the node from others.
func (n *Node) Incarnation() uint64 { return n.incarnation }

// InFlight returns the number of requests that were picked and are not done;
// never negative.
func (n *Node) InFlight() int { return int(n.flight.Load()) }

// Errors returns the number of recent bad outcomes, each fading by e in tau. It
// counts for pickers with ErrorLoad switched on.
func (n *Node) Errors(now, tau time.Duration) float64 { return n.errs.Read(now, tau) }

// Oldest returns the age of the oldest request in flight, 0 if there is none,
// to about a millisecond. It walks all requests in flight.
func (n *Node) Oldest(now time.Duration) time.Duration {
	var oldest time.Duration
	n.each(func(_ *atomic.Uint64, w uint64) { oldest = max(oldest, age(w, now)) })
	return oldest
}

// OlderThan returns how many requests have been in flight for longer than limit
// and their mean age, both to about a millisecond. It walks all requests in
// flight.
func (n *Node) OlderThan(now, limit time.Duration) (count int, mean time.Duration) {
	var sum time.Duration
	n.each(func(_ *atomic.Uint64, w uint64) {
		if a := age(w, now); a > limit {
			count++
			sum += a
		}
	})
	if count > 0 {
		mean = sum / time.Duration(count)
	}
	return count, mean
}

// Stats are a node's counters for metrics.
type Stats struct {
	InFlight int    // requests picked and not done
	Expired  uint64 // closed by Set.Expire because their Done did not come
	Repeated uint64 // calls of Done that came second, or after the expiry
}

// Stats returns the counters at one moment, each for itself.
func (n *Node) Stats() Stats {
	return Stats{InFlight: n.InFlight(), Expired: n.expired.Load(), Repeated: n.repeated.Load()}
}

// expire closes requests older than limit, or as far in the future, and calls f
// with the start of each, to about a millisecond.
func (n *Node) expire(now, limit time.Duration, f func(start time.Duration)) int {
	count := 0
	n.each(func(s *atomic.Uint64, w uint64) {
		if a := since(w, now); (a > limit || a < -limit) && n.release(s, w) {
			n.expired.Add(1)
			count++
			// The middle of the step of time in which it started, so that errors of
			// many add up to nothing.
			f(now>>tickShift<<tickShift - a + 1<<(tickShift-1))
		}
	})
	return count
}

// release closes the request that holds word w in slot s. It reports false,
// and changes nothing, if that request is closed already.
func (n *Node) release(s *atomic.Uint64, w uint64) bool {
	if !s.CompareAndSwap(w, freed(w)) {
		return false
	}
	n.flight.Add(-1)
	return true
}
