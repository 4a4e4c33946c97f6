package balance

import (
	"math"
	"time"
)

// Cost is what a chooser compares: it says what one more request on a candidate
// costs. A chooser binds the Cost it is given to its set; the cost is then
// called with indices of that set, concurrently.
type Cost interface {
	// Cost returns the cost of giving candidate i one more request at now; the
	// smallest wins. It is never NaN.
	Cost(i int, now time.Duration) float64

	Observer

	// Bind returns the cost for another set. Candidate i of set goes on as
	// candidate from[i] of the set that the receiver is bound to; -1, or a nil
	// from, is a node that nothing is known of.
	Bind(set *Set, from []int) Cost
}

// ErrorLoad lets recent errors count as load: a bad outcome weighs as much as
// Each requests in flight, and fades by e in Decay. It keeps a node that fails
// fast, and therefore never has requests in flight, from drawing all of them
// (Site Reliability Engineering, 2016, chapter 20: sinkholing). Errors that have
// faded to less than half a request together count no more. The zero value is
// off.
type ErrorLoad struct {
	// Each is the number of requests an error counts as, at first; 0 is off.
	Each float64
	// Decay is the time in which an error fades by e; 0 means 10 s.
	Decay time.Duration
}

func (e ErrorLoad) decay() time.Duration {
	if e.Decay == 0 {
		return 10 * time.Second
	}
	return e.Decay
}

// Of returns the load of a node: its requests in flight and its recent errors.
func (e ErrorLoad) Of(n *Node, now time.Duration) float64 {
	load := float64(n.flight.Load())
	if e.Each > 0 {
		if extra := e.Each * n.errs.Read(now, e.decay()); extra >= 0.5 {
			load += extra
		}
	}
	return load
}

// Note counts the outcome of a request on n.
func (e ErrorLoad) Note(n *Node, now time.Duration, o Outcome) {
	if e.Each > 0 && o.Result.Bad() {
		n.errs.Add(now, e.decay(), 1)
	}
}

func (e ErrorLoad) valid() error {
	if !(e.Each >= 0) || e.Decay < 0 {
		return Invalidf("balance: ErrorLoad{%v, %v} is negative; use 0 for off", e.Each, e.Decay)
	}
	return nil
}

// InFlight is the cost (requests in flight + recent errors) / weight. It is what
// choosers use when they are given no cost.
type InFlight struct {
	// Errors lets recent errors count; the zero value is off.
	Errors ErrorLoad
	set    *Set
}

// Cost returns the load of candidate i by its weight, +Inf for weight 0.
func (f *InFlight) Cost(i int, now time.Duration) float64 {
	c := &f.set.all[i]
	if c.weight == 0 {
		return math.Inf(1)
	}
	return f.Errors.Of(c.node, now) / c.weight
}

// Observe counts errors, if they are to be counted.
func (f *InFlight) Observe(i int, _, now time.Duration, o Outcome) {
	f.Errors.Note(f.set.all[i].node, now, o)
}

// Bind returns the cost for set; all of its state is in the nodes.
func (f *InFlight) Bind(set *Set, _ []int) Cost { return &InFlight{Errors: f.Errors, set: set} }

// chooser is what the pickers over a cost share.
type chooser struct {
	set  *Set
	cost Cost // bound; nil: requests in flight alone
}

func newChooser(set *Set, cost Cost, from []int) (chooser, error) {
	if f, ok := cost.(*InFlight); ok {
		if err := f.Errors.valid(); err != nil {
			return chooser{}, err
		}
		if f.Errors.Each == 0 {
			cost = nil
		}
	}
	if cost == nil {
		return chooser{set: set.Observed(nil)}, nil
	}
	cost = cost.Bind(set, from)
	return chooser{set: set.Observed(cost), cost: cost}, nil
}

func (c *chooser) next(set *Set) (chooser, error) {
	return newChooser(set, c.cost, set.From(c.set))
}

// of returns the cost of a candidate.
func (c *chooser) of(k *candidate, now time.Duration) float64 {
	if c.cost != nil {
		return c.cost.Cost(int(k.index), now)
	}
	return float64(k.node.flight.Load()) / k.weight
}

// Set returns the set the picker was made of.
func (c *chooser) Set() *Set { return c.set }
