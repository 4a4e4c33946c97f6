package wrr

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
)

// EDF is earliest-deadline-first scheduling: a node's next turn is at now + 1/w,
// a pick takes the earliest (ties: in the order of the set) and moves now there.
// O(log n).
//
// Shares are exact and weights may be any numbers from 2^-64 (smaller ones count
// as that), but it is not as smooth as Smooth: 5:1:1 is a a a a a b c. Envoy builds
// it only where weights differ and starts at a random place; this one starts at the beginning, as
// grpc-go's does. Source: grpc-go internal/wrr/edf.go, Envoy's EdfScheduler;
// float64 deadlines as there.
type EDF struct {
	set  *balance.Set
	gaps []float64 // 1 / weight of the live members
	run  atomic.Pointer[edfRun]
}

// NewEDF returns an EDF picker over set.
func NewEDF(set *balance.Set) *EDF {
	e := newEDF(set)
	h := make(deadlines, len(e.gaps))
	for k := range h {
		h[k] = deadline{at: e.gaps[k], node: int32(k)}
	}
	h.init()
	e.run.Store(e.build(h))
	return e
}

func newEDF(set *balance.Set) *EDF {
	gaps := liveWeights(set)
	for k, w := range gaps {
		gaps[k] = 1 / max(w, leastWeight)
	}
	return &EDF{set: set.Observed(nil), gaps: gaps}
}

// edfRun is a sequence of picks computed ahead.
type edfRun struct {
	_      [64]byte
	cursor atomic.Uint64
	_      [56]byte

	picks      []int32   // places among the live members
	start, end deadlines // before and after the run
}

// build computes a run from h.
func (e *EDF) build(h deadlines) *edfRun {
	r := &edfRun{start: h, end: slices.Clone(h)}
	if len(h) == 0 {
		return r
	}
	// Long enough that copying the heap is a small part of a pick.
	r.picks = make([]int32, min(max(256, len(h)), 4096))
	for i := range r.picks {
		r.picks[i] = e.advance(r.end)
	}
	return r
}

// advance takes one turn.
func (e *EDF) advance(h deadlines) int32 {
	k := h[0].node
	h[0].at += e.gaps[k]
	h.down(0)
	return k
}

// Pick returns the node with the earliest deadline.
func (e *EDF) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if len(exclude) != 0 || e.set.Live() == 0 {
		return turns(e.set, e.next, now, seed, exclude)
	}
	return e.set.Take(e.next(), now), nil
}

// next takes turns from the current run. Whoever finds it used up computes the
// next one, and the first to publish wins; after a few defeats the turn is the
// first of his own.
func (e *EDF) next() int {
	for range maxTurns {
		r := e.run.Load()
		if at := r.cursor.Add(1) - 1; at < uint64(len(r.picks)) {
			return e.set.LiveIndex(int(r.picks[at]))
		}
		e.run.CompareAndSwap(r, e.build(r.end))
	}
	return e.set.LiveIndex(int(e.run.Load().picks[0]))
}

// Next returns an EDF picker over set. Nodes that stay keep the part of their
// turn that has passed, whatever their new weight: one that was to wait for a
// hundred turns at a small weight waits for ten of them at ten times that.
func (e *EDF) Next(set *balance.Set) (balance.Picker, error) {
	n := newEDF(set)
	h := e.state()
	now := 0.0 // of the last turn: the latest at which a node's waiting began
	for _, d := range h {
		now = max(now, d.at-e.gaps[d.node])
	}
	left := make([]float64, len(e.gaps)) // of a turn, 0..1
	for _, d := range h {
		left[d.node] = min(1, max(0, (d.at-now)/e.gaps[d.node]))
	}
	list := make(deadlines, len(n.gaps))
	for k, j := range liveFrom(set, e.set) {
		list[k] = deadline{at: n.gaps[k], node: int32(k)}
		if j >= 0 {
			list[k].at *= left[j]
		}
	}
	list.init()
	n.run.Store(n.build(list))
	return n, nil
}

// state returns the deadlines before the next turn.
func (e *EDF) state() deadlines {
	r := e.run.Load()
	h := slices.Clone(r.start)
	for range min(r.cursor.Load(), uint64(len(r.picks))) {
		e.advance(h)
	}
	return h
}

// Set returns the set the picker was made of.
func (e *EDF) Set() *balance.Set { return e.set }
