// Package guard puts the gate, breaker, limits and outlier record of one node
// behind one admission with one outcome.
//
// Admit asks, in this order, and frees again what came before a refusal:
//
//	gate      draining nodes take nothing new        package drain
//	breaker   open? only looked at, nothing taken    package breaker
//	throttle  drop in step with refusals             package throttle
//	limit     in flight, by cost                     package limit
//	breaker   admission, a probe slot if half-open
//	rate      tokens, by cost; last, since they cannot be given back
//
// Parts that are not configured cost nothing and refuse nothing.
//
// Law: a refusal leaves everything as it was, a half-open breaker's probe slot
// included; the outcome reaches every part exactly once, however often and by
// whatever copy Done is called.
//
// Cost: the sum of the parts, each about 30 ns: 100 ns for gate, breaker and
// limit together; no lock but the rate limiter's, no allocation.
//
// What it does not do: choose among nodes, retry, or wait. When not to use it:
// with one or two parts, which are cheaper by themselves.
package guard

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/breaker"
	"github.com/shardd/shardd/resilience/drain"
	"github.com/shardd/shardd/resilience/limit"
	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/resilience/ratelimit"
	"github.com/shardd/shardd/resilience/throttle"
)

// Config says which parts a node has; nil is a part it has not. A pointer to a
// zero Config of a part is that part with its defaults; a rate has none.
type Config struct {
	Breaker  *breaker.Config
	Throttle *throttle.Config
	Limit    *limit.Config
	Rate     *ratelimit.Config // token bucket
	// Outlier gets the outcomes of the node; the caller asks its Usable when
	// it chooses among nodes.
	Outlier *outlier.Node
}

// Guard is one node's. Make one with New; it must not be copied. Its methods may
// be called by any number of goroutines. It outlives snapshots of the caller.
type Guard struct {
	gate     drain.Gate
	breaker  *breaker.Breaker
	throttle *throttle.Throttle
	limit    *limit.Limiter
	rate     *ratelimit.Token
	outlier  *outlier.Node
}

// Ticket is one admission. Call Done on every way out of the request, also on
// panic and cancellation. The zero Ticket does nothing. Copies are the same
// admission.
type Ticket struct {
	g        *Guard
	gate     drain.Ticket
	breaker  breaker.Ticket
	throttle throttle.Ticket
	limit    limit.Ticket
}

// New returns a guard. The error wraps that of the part that refuses its Config.
func New(c Config) (*Guard, error) {
	g := &Guard{outlier: c.Outlier}
	var err error
	if c.Breaker != nil {
		if g.breaker, err = breaker.New(*c.Breaker); err != nil {
			return nil, fmt.Errorf("guard: %w", err)
		}
	}
	if c.Throttle != nil {
		if g.throttle, err = throttle.New(*c.Throttle); err != nil {
			return nil, fmt.Errorf("guard: %w", err)
		}
	}
	if c.Limit != nil {
		if g.limit, err = limit.New(*c.Limit); err != nil {
			return nil, fmt.Errorf("guard: %w", err)
		}
	}
	if c.Rate != nil {
		if g.rate, err = ratelimit.NewToken(*c.Rate); err != nil {
			return nil, fmt.Errorf("guard: %w", err)
		}
	}
	return g, nil
}

// Gate returns the gate, to drain the node.
func (g *Guard) Gate() *drain.Gate { return &g.gate }

// Breaker returns the breaker, nil without one.
func (g *Guard) Breaker() *breaker.Breaker { return g.breaker }

// Limiter returns the concurrency limiter, nil without one.
func (g *Guard) Limiter() *limit.Limiter { return g.limit }

// Ready reports whether Admit could admit at now as far as gate and breaker go:
// for a choice among nodes, without taking anything.
func (g *Guard) Ready(now time.Duration) bool {
	return !g.gate.Status(now).Draining && (g.breaker == nil || g.breaker.Ready(now))
}

// Admit asks for one request of the given cost at now. The error is that of the
// part that refused (drain.ErrDraining, breaker.ErrOpen, throttle.ErrDropped,
// limit.ErrLimited, ratelimit.ErrLimited, ...); the ticket is then the zero one.
func (g *Guard) Admit(now time.Duration, cost int) (Ticket, error) {
	gate, err := g.gate.Admit()
	if err != nil {
		return Ticket{}, err
	}
	t := Ticket{g: g, gate: gate}
	if err := g.admit(&t, now, cost); err != nil {
		t.end(now, resilience.Ignored)
		return Ticket{}, err
	}
	return t, nil
}

func (g *Guard) admit(t *Ticket, now time.Duration, cost int) (err error) {
	if g.breaker != nil && !g.breaker.Ready(now) {
		return breaker.ErrOpen
	}
	if g.throttle != nil {
		if t.throttle, err = g.throttle.Admit(now); err != nil {
			return err
		}
	}
	if g.limit != nil {
		if t.limit, err = g.limit.Admit(now, cost); err != nil {
			return err
		}
	}
	if g.breaker != nil {
		if t.breaker, err = g.breaker.Admit(now); err != nil {
			return err
		}
	}
	if g.rate != nil {
		return g.rate.Admit(now, cost)
	}
	return nil
}

// Done ends the admission at now, once.
func (t Ticket) Done(now time.Duration, o resilience.Outcome) {
	if t.end(now, o) && t.g.outlier != nil {
		t.g.outlier.Record(now, o)
	}
}

// end tells the parts. The gate comes last: when it is idle, all is done. A
// part's zero ticket does nothing.
func (t Ticket) end(now time.Duration, o resilience.Outcome) bool {
	t.breaker.Done(now, o)
	t.limit.Done(now, o)
	t.throttle.Done(now, o)
	return t.gate.Done()
}

// Do runs fn under one admission: the outcome is what fn returns, Failure if it
// panics (the panic goes on). clock gives now. The error is that of Admit, in
// which case fn did not run.
func (g *Guard) Do(clock func() time.Duration, cost int, fn func() resilience.Outcome) error {
	t, err := g.Admit(clock(), cost)
	if err != nil {
		return err
	}
	o := resilience.Failure
	defer func() { t.Done(clock(), o) }()
	o = fn()
	return nil
}
