// Package breaker stops calling a node that fails and lets few requests probe it.
//
//	Closed    every request is admitted and its outcome counted
//	Open      nothing is admitted until OpenFor has passed
//	HalfOpen  at most Probes requests at once; CloseAfter successes close the
//	          breaker, one bad outcome opens it again
//
// Closed opens when Consecutive bad outcomes come without a success between, or
// when a Window holds at least MinRequests outcomes of which FailureRate were bad.
// Bad is what resilience.Outcome.Bad says; Ignored frees the admission and is
// not counted.
//
// Law:
//   - Each admission ends in exactly one outcome. The first Done counts; another
//     Done by any copy of the ticket does nothing; an admission without Done
//     counts as timed out after ProbeTimeout (half-open) or Lost (closed).
//   - A probe that is lost frees its slot: after a trip the next probe is
//     admitted within OpenFor + ProbeTimeout, whatever became of the last one.
//   - At most Probes probes hold a slot at once, those of earlier half-open
//     times included.
//   - An outcome of an admission from before the last change of state changes
//     nothing: each state is an object of its own (a generation), and a ticket
//     points to the one that admitted it.
//
// Cost: Admit + Done while closed about 30 ns without allocation or lock: two
// compare-and-swaps for the ticket, one atomic add for the count. A bad outcome
// also adds up the window. Changes of state and probes allocate.
//
// Source: M. Nygard, "Release It!" (2007), ch. 5; defaults of Hystrix (rate,
// volume, sleep window) and of sony/gobreaker (consecutive failures). The faults
// elsewhere that the law answers are in docs/algorithms/resilience.md.
//
// When not to use it: for a node that is only full (a concurrency limit or a
// throttle adapts, a breaker cuts), in front of many nodes as one (a single bad
// node would cut all: use one breaker a node, or outlier ejection), and where
// failures come from the request itself.
package breaker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/internal/ticket"
	"github.com/shardd/shardd/resilience/internal/window"
)

// ErrOpen says that the breaker admits nothing now: go to another node or fail;
// do not wait for it in a loop.
var ErrOpen = errors.New("breaker: open")

// ErrProbing says that the breaker is half-open and all its probes are in
// flight. It is an ErrOpen.
var ErrProbing = fmt.Errorf("%w: half-open and all probes in flight", ErrOpen)

// errMoved says that the state changed while Admit looked at it.
var errMoved = errors.New("breaker: state changed")

// State is what a breaker does with requests.
type State uint8

// The states of the package comment.
const (
	Closed State = iota
	Open
	HalfOpen
)

// String returns the state's name in lower case.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return "unknown"
}

// Breaker is one breaker. Make one a node with New; it must not be copied. Its
// methods may be called by any number of goroutines.
type Breaker struct {
	c   Config
	cur atomic.Pointer[generation]
	// Probe slots outlive generations, so that a probe of an earlier half-open
	// time still counts against the limit until it ends or is lost.
	slots []atomic.Pointer[probe]
}

// generation is one stay in one state. Its counters die with it.
type generation struct {
	b      *Breaker
	state  State
	number uint64

	since, wait time.Duration // Open: a probe may go when wait has passed since

	outcomes *window.Window // Closed: A successes, B bad outcomes
	inARow   atomic.Int64   // Closed: bad outcomes since the last success
	open     ticket.Ledger  // Closed: admissions without outcome

	successes atomic.Int64 // HalfOpen
}

type probe struct {
	g    *generation
	at   time.Duration
	slot int
}

// Ticket is one admission. Call Done once on every way out of the request, also
// on panic and cancellation. The zero Ticket does nothing. Copies are the same
// admission.
type Ticket struct {
	g *generation
	t ticket.Ticket // Closed
	p *probe        // HalfOpen
}

// New returns a closed breaker. The error wraps ErrConfig.
func New(c Config) (*Breaker, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	b := &Breaker{c: c, slots: make([]atomic.Pointer[probe], c.Probes)}
	b.cur.Store(b.closed(0))
	return b, nil
}

// Admit asks for one request at now. The error is ErrOpen or ErrProbing; the
// ticket is then the zero one.
func (b *Breaker) Admit(now time.Duration) (Ticket, error) {
	for {
		g := b.cur.Load()
		switch {
		case g.state == Closed:
			g.sweepLost(now)
			return Ticket{g: g, t: g.open.Take(now, 1)}, nil
		case g.state == Open && !passed(g.since, now, g.wait):
			return Ticket{}, ErrOpen
		case g.state == Open:
			b.change(g, &generation{b: b, state: HalfOpen}, now)
		default:
			if t, err := g.admitProbe(now); !errors.Is(err, errMoved) {
				return t, err
			}
		}
	}
}

// Ready reports whether Admit could admit at now. It changes nothing, not even
// the state of a breaker whose OpenFor has passed: for a choice among nodes
// before one of them is asked. With Jitter it may be late by that.
func (b *Breaker) Ready(now time.Duration) bool {
	switch g := b.cur.Load(); g.state {
	case Open:
		return passed(g.since, now, g.wait)
	case HalfOpen:
		return g.couldProbe(now)
	}
	return true
}

// State returns the state and its generation. A breaker whose OpenFor has
// passed stays Open until the next Admit.
func (b *Breaker) State() (State, uint64) {
	g := b.cur.Load()
	return g.state, g.number
}

// Trip opens the breaker at now for OpenFor, whatever its state.
func (b *Breaker) Trip(now time.Duration) { b.force(now, b.tripped) }

// Reset closes the breaker at now with empty counts, whatever its state.
func (b *Breaker) Reset(now time.Duration) { b.force(now, b.closed) }

func (b *Breaker) force(now time.Duration, next func(time.Duration) *generation) {
	for !b.change(b.cur.Load(), next(now), now) {
	}
}

// change makes next the state after g and reports whether this call did it:
// of all goroutines that see a reason to leave g, one wins.
func (b *Breaker) change(g, next *generation, now time.Duration) bool {
	next.number = g.number + 1
	if !b.cur.CompareAndSwap(g, next) {
		return false
	}
	if b.c.OnChange != nil {
		b.c.OnChange(Change{g.state, next.state, next.number, now})
	}
	return true
}

func (b *Breaker) closed(time.Duration) *generation {
	return &generation{b: b, state: Closed, outcomes: window.New(b.c.Window)}
}

// tripped is the open state that begins at now.
func (b *Breaker) tripped(now time.Duration) *generation {
	wait := b.c.OpenFor
	if b.c.Jitter > 0 {
		wait -= time.Duration(b.c.Jitter * b.c.Rand() * float64(wait))
	}
	return &generation{b: b, state: Open, since: now, wait: wait}
}

// passed reports whether d has passed since then. A clock that went back by d or
// more has passed too: better a probe too early than a breaker that waits for
// the clock to come back.
func passed(then, now, d time.Duration) bool {
	elapsed := now - then
	return elapsed >= d || elapsed <= -d
}

// Do runs fn under one admission: the outcome is what fn returns, Failure if it
// panics (the panic goes on). clock gives now at the end. The error is that of
// Admit, in which case fn did not run.
func (b *Breaker) Do(clock func() time.Duration, fn func() resilience.Outcome) error {
	t, err := b.Admit(clock())
	if err != nil {
		return err
	}
	o := resilience.Failure
	defer func() { t.Done(clock(), o) }()
	o = fn()
	return nil
}
