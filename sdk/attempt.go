package sdk

import (
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/guard"
)

// attempt is what a Ticket holds beside its load where policies or resilience
// have a say. It comes from a pool; its generation makes a copy of a ticket that
// is done harmless.
type attempt struct {
	gen   atomic.Uint64
	fleet *fleet
	bal   balance.Ticket
	guard guard.Ticket
	queue atomic.Int64 // as reported + 1; 0 = not reported

	order   [2 * orderRoom]int // room for the key's order
	exclude []*balance.Node
}

func (f *fleet) newAttempt() *attempt {
	a, ok := f.attempts.Get().(*attempt)
	if !ok {
		a = new(attempt)
	}
	a.fleet = f
	return a
}

// drop gives back an attempt that no ticket has.
func (f *fleet) drop(a *attempt) {
	a.bal, a.guard = balance.Ticket{}, guard.Ticket{}
	a.queue.Store(0)
	f.attempts.Put(a)
}

func (a *attempt) report(c claim, load int64) {
	if c.of(a.gen.Load()) {
		a.queue.Store(max(0, load) + 1)
	}
}

// done ends the request of claim c at the node of rec.
func (a *attempt) done(rec *record, c claim, o balance.Outcome) bool {
	f := a.fleet
	if gen := a.gen.Load(); !c.of(gen) || !a.gen.CompareAndSwap(gen, gen+1) {
		f.counters.repeated.Add(1)
		return false
	}
	now := f.clock()
	rec.load.Release(c.cost())
	if q := a.queue.Load(); q > 0 && !o.HasQueue {
		o.Queue, o.HasQueue = float64(q-1), true
	}
	a.bal.Done(now, o)
	if a.guard != (guard.Ticket{}) {
		a.guard.Done(now, resilience.Outcome(o.Result))
	}
	f.drop(a)
	return true
}

// now returns the time where somebody asks for it.
func (f *fleet) now() time.Duration {
	if f.balance == nil && f.resil == nil {
		return 0
	}
	return f.clock()
}
