package sdk

import (
	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/resilience"
)

// Outcome is how a request ended, as far as it says something about the node.
type Outcome = resilience.Outcome

// The outcomes that Ticket.Done takes.
const (
	Ignored  = resilience.Ignored  // says nothing: cancelled by the caller, or not sent
	Success  = resilience.Success  // an answer in time, also "no such key"
	Failure  = resilience.Failure  // an error of the node or of the way to it
	Timeout  = resilience.Timeout  // no answer in time
	Overload = resilience.Overload // the node's own word that it is full
)

// Ticket is one request that Client.Acquire has admitted: where it goes, and
// what it holds there until Done. It is a value, without closure and allocation;
// the zero Ticket belongs to no node and its methods do nothing.
//
// Keep it in one variable, or hand on a pointer to that. Done empties the
// variable, so a second Done does nothing. A copy would be a second variable
// with the same claim: go vet (copylocks) reports every copy of a Ticket, and if
// one is made all the same, a second release is taken back where it would bring
// the node's load below zero, and counted in LoadStats.Repeated. (Copies that are
// harmless by a slot and a generation, as in package balance, cost 12 ns more
// a request.) One goroutine at a time may call the methods of one variable.
//
// A Ticket whose Done is never called stays in the node's load for as long as
// the node's incarnation lives; NodeStats shows it in InFlight. Nothing expires it: a
// counter alone is what a request costs, and to know the old from the new each would
// have to be remembered with its time, which is what [WithResilience] and policies pay
// for. So call Done in a defer, or use [Client.Do], and watch for an InFlight that does
// not come back to zero at night.
type Ticket struct {
	_ noCopy
	grant
}

// grant is what a Ticket is a claim to. It is four words: a larger struct goes
// through memory, and that alone doubles the cost of Acquire.
type grant struct {
	rec   *record
	hash  uint64
	claim claim    // 0 once it is done
	more  *attempt // what policies and resilience hold; nil without them
}

// claim is the cost of a request (33 bits) | the generation of its attempt (31).
type claim uint64

const costBits = 33

func newClaim(cost int64, gen uint64) claim { return claim(uint64(cost) | gen<<costBits) }

func (c claim) cost() int64 { return int64(c & (1<<costBits - 1)) }

// of reports whether the claim is one to the attempt at this generation.
func (c claim) of(gen uint64) bool { return uint64(c)>>costBits == gen&(1<<(64-costBits)-1) }

// noCopy makes go vet report copies of what contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Route returns where the request goes; also after Done.
func (t *Ticket) Route() Route { return Route{t.rec, t.hash} }

// ID returns the id of the node that the request goes to.
func (t *Ticket) ID() string { return t.Route().ID() }

// Addr returns the address of the node that the request goes to.
func (t *Ticket) Addr() string { return t.Route().Addr() }

// Cost returns what the request holds at its node, 0 when it is done and for the
// zero Ticket.
func (t *Ticket) Cost() int64 { return t.claim.cost() }

// Done ends the request and says how. It reports whether this was the first
// call on this variable; the others do nothing. It does not wait.
func (t *Ticket) Done(o Outcome) bool {
	c := t.claim
	t.claim = 0
	switch {
	case c == 0:
		return false
	case t.more == nil:
		return t.rec.load.Release(c.cost())
	}
	return t.more.done(t.rec, c, balance.Outcome{Result: balance.Result(o)})
}

// DoneWith is Done with more about the request, for policies that learn from it:
// the time the node worked, the length of its queue, what attempt it was.
func (t *Ticket) DoneWith(o balance.Outcome) bool {
	c := t.claim
	t.claim = 0
	switch {
	case c == 0:
		return false
	case t.more == nil:
		return t.rec.load.Release(c.cost())
	}
	return t.more.done(t.rec, c, o)
}

// Report passes on what the node said of itself in its answer: the cost in
// flight there, of all clients, without this request. Call it before Done; with
// the view ReportedLoad it is what the node's load is estimated from, and policies
// that ask for a queue (C3) see it as such. After Done it does nothing.
func (t *Ticket) Report(load int64) {
	if t.claim == 0 {
		return
	}
	t.rec.load.Report(load, t.claim.cost())
	if t.more != nil {
		t.more.report(t.claim, load)
	}
}
