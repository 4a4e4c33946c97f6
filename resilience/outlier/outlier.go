// Package outlier takes the worst nodes out for a while, and never too many.
//
// A node is ejected at once after Consecutive bad outcomes in a row, and once an
// Interval when its share of successes is far under the others' (Stdev) or its
// share of failures is at least FailureShare. It stays out for Base times the
// number of its ejections of late, at most Max; each interval it is not out at all takes
// one off that number.
//
// Law:
//
//	ejected + down <= floor(Limit * n) after every ejection,
//	ejected <= max(0, floor(Limit * n) - down) at all times
//
// n counts the nodes that are meant to serve: Up and Down, not Out (drained,
// weight 0). The limit is checked with the ejection included, never "at least
// one"; when n falls or others go down, those that have been out longest are
// taken back at once. So with one node, or nine and the default limit of a
// tenth, nothing is ever ejected.
//
// Panic mode: when fewer than Panic * n nodes are left, or none, Usable is true
// for every node but those Out: when everything looks bad, the looking is more
// likely wrong, and the rest would not stand the load. While n > 0 some node is
// usable.
//
// Cost: Record 5 to 10 ns and Usable 2 ns, in atomics, without lock or
// allocation; a bad outcome that completes a row takes the mutex once. Sweep is
// O(n), 0.1 us a node. Ejecting and returning take the mutex.
//
// Source: Envoy's outlier detection and gRPC A50, with two differences: Envoy's
// max_ejection_percent always allows one node and is tested before the ejection
// (envoyproxy/envoy#26877, #27066), and nodes down for other reasons are not
// counted there.
//
// What it does not do: it does not probe (an ejected node comes back when its
// time is over; package probe can take it back sooner through Return), and it
// changes no ownership: it is an overlay on it.
//
// When not to use it: with one or two nodes; for errors that requests cause
// themselves; together with a breaker a node, unless the breaker opens later
// than a row of Consecutive: two judges of one thing make each other hard to read.
package outlier

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/resilience"
)

// State is what is known of a node from elsewhere.
type State uint8

const (
	// Up is a node that is meant to serve and that nobody else calls bad.
	Up State = iota
	// Down is a node that is meant to serve and fails by another judgement, as
	// active health checks. It counts against the limit, and panic uses it.
	Down
	// Out is a node that is not meant to serve: drained, weight 0. It counts
	// nowhere and is never used.
	Out
)

// Detector watches a set of nodes. Make one with New; it must not be copied. Its
// methods and those of its nodes may be called by any number of goroutines.
type Detector struct {
	c       Config
	alarmed atomic.Bool // panic mode

	mu      sync.Mutex // guards the rest and every change of a node's status
	nodes   []*Node
	up      int // state Up, ejected included
	down    int
	ejected int
	judged  time.Duration // when the last interval ended
	started bool
	events  []Event // to be told when mu is free
}

// Node is one node's record. It outlives snapshots of the caller: keep the
// pointer in them.
type Node struct {
	d     *Detector
	label string

	status atomic.Uint32 // State, and ejectedBit
	inARow atomic.Int64  // bad outcomes since the last success
	good   atomic.Int64  // outcomes of this interval
	bad    atomic.Int64

	// Guarded by d.mu.
	index int // in d.nodes, -1 when removed
	since time.Duration
	until time.Duration // how long after since
	times int           // ejections of late
	fresh bool          // was out during this interval
}

const ejectedBit = 1 << 8

// New returns a detector without nodes. The error wraps ErrConfig.
func New(c Config) (*Detector, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	return &Detector{c: c}, nil
}

// Add takes a node in at now; the label is for the caller's logs. O(1).
func (d *Detector) Add(label string, s State, now time.Duration) *Node {
	d.lock()
	defer d.unlock()
	n := &Node{d: d, label: label, index: len(d.nodes)}
	n.status.Store(uint32(s))
	d.nodes = append(d.nodes, n)
	d.tally(s, 1)
	d.settle(now)
	return n
}

// Remove lets a node go at now; it counts nowhere any more, and its methods do
// nothing that matters. A second Remove does nothing. O(1), or O(n) when an
// ejected node must come back.
func (d *Detector) Remove(n *Node, now time.Duration) {
	d.lock()
	defer d.unlock()
	if n.d != d || n.index < 0 {
		return
	}
	d.restore(n, now, WentDown)
	last := d.nodes[len(d.nodes)-1]
	d.nodes[n.index], last.index = last, n.index
	d.nodes = d.nodes[:len(d.nodes)-1]
	n.index = -1
	d.tally(n.state(), -1)
	d.settle(now)
}

// Label returns the label given to Add.
func (n *Node) Label() string { return n.label }

// Set says at now what is known of the node from elsewhere. A node that is not Up
// is not ejected: it is out already. Others may be taken back to make room.
func (n *Node) Set(s State, now time.Duration) {
	n.d.lock()
	defer n.d.unlock()
	if n.index < 0 || n.state() == s {
		return
	}
	n.d.restore(n, now, WentDown)
	n.d.tally(n.state(), -1)
	n.d.tally(s, 1)
	if s == Up {
		n.status.Store(uint32(s)) // usable before a panic ends,
		n.d.settle(now)
		return
	}
	n.d.settle(now) // or panic on before it is not: some node always is
	n.status.Store(uint32(s))
}

// Return takes an ejected node back at now, before its time is over, because
// something else (a probe) found it well. It reports whether it was ejected.
func (n *Node) Return(now time.Duration) bool {
	n.d.lock()
	defer n.d.unlock()
	was := n.Ejected()
	n.d.restore(n, now, Returned)
	return was
}

// Record counts one outcome of the node. Ignored is not counted.
func (n *Node) Record(now time.Duration, o resilience.Outcome) {
	switch {
	case o == resilience.Success:
		n.good.Add(1)
		if n.inARow.Load() != 0 {
			n.inARow.Store(0)
		}
	case o.Bad():
		n.bad.Add(1)
		// Only the one that completes the row takes the mutex; if the limit
		// forbids it then, Sweep tries again.
		if row := n.inARow.Add(1); n.d.c.Consecutive > 0 && row == int64(n.d.c.Consecutive) {
			n.d.lock()
			defer n.d.unlock()
			n.d.eject(n, now, Consecutive)
		}
	}
}

// Ejected reports whether the node is ejected now, panic or not.
func (n *Node) Ejected() bool { return n.status.Load()&ejectedBit != 0 }

// Usable reports whether requests may go to the node: it is Up and not ejected,
// or the detector panics and it is not Out.
func (n *Node) Usable() bool {
	s := n.status.Load()
	return s == uint32(Up) || State(s) != Out && n.d.alarmed.Load()
}

// Panic reports whether so few nodes are left that all are used.
func (d *Detector) Panic() bool { return d.alarmed.Load() }

func (n *Node) state() State { return State(n.status.Load()) }

// Stats is a detector at one time.
type Stats struct {
	Nodes   int  // n of the law: Up and Down
	Down    int  // Down
	Ejected int  // ejected
	Limit   int  // floor(Config.Limit * n)
	Panic   bool // all nodes are used
}

// Stats returns the counts of one instant.
func (d *Detector) Stats() Stats {
	d.lock()
	defer d.unlock()
	return Stats{d.up + d.down, d.down, d.ejected, d.limit(), d.alarmed.Load()}
}
