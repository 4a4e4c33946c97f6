package balance

import (
	"sync/atomic"
	"time"
)

// Picker chooses a node for each request. All policies of this family are
// Pickers; their methods are safe for concurrent use.
type Picker interface {
	// Pick chooses a candidate and counts the request as in flight there until
	// its Ticket is done. now is the time since any fixed origin; seed differs
	// from pick to pick; nodes in exclude are not chosen (nil: none). Errors:
	// ErrNoNode, ErrExcluded, and those the policy names.
	Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error)

	// Next returns a picker of the same policy for another set, which carries on
	// what the policy knows of the nodes that are in both: turns, estimates,
	// weights. The old one may go on picking until it is replaced. A set that the
	// policy cannot serve is refused with ErrInvalid. Next is not for concurrent
	// use with itself on one picker.
	Next(set *Set) (Picker, error)
}

// Observer is told how requests ended, so that a policy can learn.
type Observer interface {
	// Observe is called once for each ticket: i is the candidate's index in its
	// set, start the time of the pick, now the time of Done.
	Observe(i int, start, now time.Duration, o Outcome)
}

// Starter is an Observer that is also told of each ticket's beginning, however
// its candidate was chosen.
type Starter interface {
	Observer
	// Start is called once for each ticket before its Observe.
	Start(i int, now time.Duration)
}

// Result is how a request ended, as far as it says something about the node.
// The numbers are those of package resilience's Outcome.
type Result uint8

const (
	// Ignored says nothing about the node: the caller cancelled, or did not send.
	Ignored Result = iota
	// Success is an answer in time.
	Success
	// Failure is an error of the node or of the way to it.
	Failure
	// Timeout is no answer in time.
	Timeout
	// Overload is the node's own word that it is full.
	Overload
)

// Bad reports whether the result counts against the node.
func (r Result) Bad() bool { return r >= Failure && r <= Overload }

// Outcome is what a policy learns from the end of a request. Only Result is
// needed; each policy says what else it uses. The zero Outcome is Ignored.
type Outcome struct {
	Result Result
	// Attempts is how many attempts this request has made with this one, Left how
	// many it may still make. 0 attempts count as 1. Used by lalb on errors.
	Attempts, Left uint8
	// Timeout is the time that the request was given; 0 is unknown. Policies that
	// punish errors charge at least this much.
	Timeout time.Duration
	// Service is the time the server says it worked on the request, without
	// queueing; 0 is unknown.
	Service time.Duration
	// Queue is the number of requests the server says it held when it answered,
	// waiting or in service, without this one. HasQueue tells 0 from unknown.
	Queue    float64
	HasQueue bool
}

// Ticket is one picked request. It is a small value that may be copied; the
// first Done by any copy counts. The zero Ticket belongs to no node, and its
// Done does nothing.
type Ticket struct {
	c     *candidate
	slot  *atomic.Uint64
	word  uint64
	start time.Duration
}

// Node returns the node to send the request to, nil for the zero Ticket.
func (t Ticket) Node() *Node {
	if t.c == nil {
		return nil
	}
	return t.c.node
}

// Index returns the candidate's index in the set the picker was made of, -1
// for the zero Ticket.
func (t Ticket) Index() int {
	if t.c == nil {
		return -1
	}
	return int(t.c.index)
}

// Start returns the time of the pick.
func (t Ticket) Start() time.Duration { return t.start }

// Done ends the request and tells the policy about it. It reports whether this
// was the first call for this request; a second one, by any copy of the ticket,
// and one that comes after Set.Expire, change nothing. It does not wait, except
// under lalb for another Done of the same node, some 20 ns.
func (t Ticket) Done(now time.Duration, o Outcome) bool {
	c := t.c
	if c == nil {
		return false
	}
	if !c.node.release(t.slot, t.word) {
		c.node.repeated.Add(1)
		return false
	}
	if c.observer != nil {
		c.observer.Observe(int(c.index), t.start, now, o)
	}
	return true
}
