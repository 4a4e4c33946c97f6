package bounded

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// MaxCost is the largest cost of one request.
const MaxCost = 1 << 32

// MaxFlight is the cost in flight at which a node takes nothing more, whatever its cap:
// 2^46, sixteen thousand requests of the largest cost.
const MaxFlight = 1 << 46

// mostFlight is more than a node can have in flight, and less than what is left in 47
// bits when a release goes below zero.
const mostFlight = MaxFlight + MaxCost

// Node is the load of one incarnation of one node. Make one with Group.NewNode;
// it outlives the sets that it is in, and must not be copied. A request is
// released at the very Node that it was admitted at.
type Node struct {
	// word is, from the top: picks mod 2^16 | cost in flight (47 bits) |
	// whether the node counts in the group's total (1 bit). One swap changes
	// all three, so that at each moment the total is the sum over exactly
	// the nodes that count, whatever joins or leaves meanwhile.
	word  atomic.Uint64
	rest  atomic.Uint64 // load by others as reported (63 bits) | counts (1 bit)
	group *Group
	spill atomic.Uint32 // share of requests to turn away, in 2^-32
	fresh atomic.Bool   // a report came since the last Fade
	wraps atomic.Uint64 // of picks

	refused atomic.Uint64
	over    atomic.Uint64
	overFor atomic.Int64
	bad     atomic.Uint64
	told    atomic.Uint64 // the most picks that Stats has told
	_       [128 - 10*8]byte
}

const (
	counts    = 1       // the lowest bit of word and rest
	one       = 1 << 48 // one pick
	flightMax = 1<<47 - 1
)

func flight(word uint64) int64 { return int64(word >> 1 & flightMax) }

// InFlight returns the cost in flight of this process at the node; never
// negative.
func (n *Node) InFlight() int64 { return flight(n.word.Load()) }

// Others returns the load of all other processes as last reported, 0 without a
// report.
func (n *Node) Others() int64 { return int64(n.rest.Load() >> 1) }

// admit reserves q if the node's load is under most.
func (n *Node) admit(most uint64, q int64, reported bool) bool {
	for {
		w := n.word.Load()
		load := w >> 1 & flightMax
		if reported {
			load += n.rest.Load() >> 1
		}
		if load >= most {
			return false
		}
		if n.take(w, q) {
			return true
		}
	}
}

// limit returns ceil(reach * (total + q) / 2^48), at most MaxFlight.
func limit(reach uint64, total, q int64) uint64 {
	hi, lo := bits.Mul64(reach, uint64(max(total, 0)+q))
	lo, carry := bits.Add64(lo, 1<<reachBits-1, 0)
	hi += carry
	if hi>>(reachBits-18) != 0 { // 2^46 or more
		return MaxFlight
	}
	return hi<<(64-reachBits) | lo>>reachBits
}

// take reserves q on a node whose word was w, if it is w still.
func (n *Node) take(w uint64, q int64) bool {
	next := w + one + uint64(q)<<1
	if !n.word.CompareAndSwap(w, next) {
		return false
	}
	if next < one { // the count of picks went through 2^16
		n.wraps.Add(1)
	}
	if w&counts != 0 {
		n.group.add(q)
	}
	return true
}

// Force reserves q over the cap, and counts it as that. It returns false only for a
// node that has MaxFlight in flight.
func (n *Node) Force(q int64) bool {
	if !n.Count(q) {
		return false
	}
	n.over.Add(1)
	return true
}

// Count reserves q whatever the cap: for nodes that are chosen by other means. It
// returns false only for a node that has MaxFlight in flight.
func (n *Node) Count(q int64) bool {
	for {
		w := n.word.Load()
		if flight(w) >= MaxFlight {
			return false
		}
		if n.take(w, q) {
			return true
		}
	}
}

// Release ends a request of cost q, and reports whether that could be. Each
// request is released once: a second release takes from another request's share,
// and where it would bring the load below zero it is undone, counted in
// NodeStats.Bad, and Release returns false.
func (n *Node) Release(q int64) bool {
	w := n.word.Add(-(uint64(q) << 1))
	if w>>1&flightMax > mostFlight {
		n.word.Add(uint64(q) << 1)
		n.bad.Add(1)
		return false
	}
	if w&counts != 0 {
		n.group.add(-q)
	}
	return true
}

// Undo takes back an admission of cost q of which nothing came: it is released,
// and was no pick.
func (n *Node) Undo(q int64) {
	for {
		w := n.word.Load()
		if !n.word.CompareAndSwap(w, w-one-uint64(q)<<1) {
			continue
		}
		if w < one { // the count of picks went back through 2^16
			n.wraps.Add(^uint64(0))
		}
		if w&counts != 0 {
			n.group.add(-q)
		}
		return
	}
}

// Report says what load the node had when it answered a request of cost q that
// is not released yet: all that is in flight there, of all clients, without this
// request. From now on the load is that and the own change since.
func (n *Node) Report(load, q int64) {
	others := max(0, load-(n.InFlight()-q))
	n.setOthers(func(int64) int64 { return others })
	if !n.fresh.Load() {
		n.fresh.Store(true)
	}
}

func (n *Node) setOthers(f func(old int64) int64) {
	for {
		w := n.rest.Load()
		old := int64(w >> 1)
		next := min(f(old), MaxFlight)
		if !n.rest.CompareAndSwap(w, uint64(next)<<1|w&counts) {
			continue
		}
		if w&counts != 0 && next != old && n.group.reported {
			n.group.add(next - old)
		}
		return
	}
}

// count lets the node's load enter the total, or leave it.
func (n *Node) count(in bool) {
	bit := uint64(0)
	if in {
		bit = counts
	}
	flip := func(v *atomic.Uint64, load func(uint64) int64, enters bool) {
		for {
			w := v.Load()
			if w&counts == bit {
				return
			}
			if !v.CompareAndSwap(w, w^counts) {
				continue
			}
			if amount := load(w); enters && in {
				n.group.add(amount)
			} else if enters {
				n.group.add(-amount)
			}
			return
		}
	}
	flip(&n.word, flight, true)
	flip(&n.rest, func(w uint64) int64 { return int64(w >> 1) }, n.group.reported)
}

// SetSpill says what share of the requests that come to this node by preference
// is to go to the next in order, 0 to 1.
func (n *Node) SetSpill(share float64) { n.spill.Store(uint32(max(0, min(share, 1)) * (1<<32 - 1))) }

// Spills draws whether a request is to go to the next in order; chance is 32
// random bits.
func (n *Node) Spills(chance uint32) bool { return chance < n.spill.Load() }

// NodeStats are a node's counters, for metrics.
type NodeStats struct {
	Picks    uint64        // requests admitted, forced ones included; never falls
	InFlight int64         // cost in flight of this process
	Others   int64         // cost in flight of others, as last reported
	Refused  uint64        // times the node was asked and over its cap
	Over     uint64        // requests that it took over its cap, because all refused
	OverFor  time.Duration // time over its cap, as sampled by Set.Sample
	Spill    float64       // share turned away
	Bad      uint64        // releases that would have brought the load below zero
}

// Stats returns the counters, each for itself.
func (n *Node) Stats() NodeStats {
	var s NodeStats
	for {
		wraps := n.wraps.Load()
		w := n.word.Load()
		if n.wraps.Load() == wraps {
			s.Picks, s.InFlight = wraps<<16|w>>48, flight(w)
			break
		}
	}
	for { // a pick may be on its way to be undone
		told := n.told.Load()
		if s.Picks <= told {
			s.Picks = told
			break
		}
		if n.told.CompareAndSwap(told, s.Picks) {
			break
		}
	}
	s.Others, s.Refused, s.Over = n.Others(), n.refused.Load(), n.over.Load()
	s.OverFor, s.Bad = time.Duration(n.overFor.Load()), n.bad.Load()
	s.Spill = float64(n.spill.Load()) / (1<<32 - 1)
	return s
}
