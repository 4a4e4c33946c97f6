// Package retry tries a failed request again: only where asked, only what surely
// failed before work began, only at the outermost layer, within a budget, and
// not at once.
//
//   - Asked: Do with a Policy; a nil Policy makes one attempt.
//   - Safe: the table at Kind.Again. Time-outs and broken connections only for
//     requests marked Idempotent.
//   - Outermost: the first Do on the way stamps each attempt with its number
//     (Attempt, Inject, Extract); a Do that finds one makes one attempt. Three
//     nested layers of three attempts would send 27 requests for one.
//   - Budget: each attempt after the first is paid by package budget. Shared
//     by everything one client sends to one service, it holds the load under
//     1 + share while all fails.
//   - Wait: package backoff, at least the other side's pushback; no attempt that
//     could not begin before the deadline.
//
// Law: attempts <= Attempts; a request that was plain is never sent twice unless
// the first attempt's kind says that no work began; the error is that of the
// last attempt, as it was.
//
// Cost: a first attempt that succeeds 90 ns and one allocation (the context
// that carries the number). Only after a failure does failsafe-go's retry policy
// run the rest: it has the loop, the timer and the cancellation, for 14
// allocations, which waiting 50 ms does not notice.
//
// Source: "Site Reliability Engineering", ch. 22 ("Addressing Cascading
// Failures": retry at one layer only, budgets); gRPC A6 (retryable codes,
// pushback, previous attempts).
//
// When not to use it: where the next node is at hand, asking it is routing, not
// a retry; for the work of a queue, which
// tries again by itself.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/shardd/shardd/resilience/backoff"
	"github.com/shardd/shardd/resilience/budget"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("retry: bad config")

// DefaultAttempts is Config.Attempts when 0.
const DefaultAttempts = 3

// Config says how often and when. The zero Config is the default.
type Config struct {
	// Attempts is the most attempts for one request, the first included, 1 to
	// MaxAttempt; 0 means DefaultAttempts (3).
	Attempts int
	// AttemptTimeout bounds each attempt; 0 means only ctx does. Without it a
	// time-out of the caller's deadline ends the request, whatever its mark.
	AttemptTimeout time.Duration
	// Backoff is the wait between attempts; the zero value means full jitter
	// from 100 ms, doubled up to 10 s.
	Backoff backoff.Config
	// Budget pays for the attempts after the first; nil means one of this
	// policy's own, with its defaults (0.2 of the requests of 10 s, at least 3).
	Budget *budget.Budget
	// Clock gives now for the Budget; nil means the time since New.
	Clock func() time.Duration
	// OnFailure is called after each failed attempt of an outermost Do, by its
	// goroutine; nil means nobody is told.
	OnFailure func(Event)
}

// Event is one failed attempt and what was decided.
type Event struct {
	Attempt int // 1 for the first
	Kind    Kind
	Err     error
	Then    Decision
	Delay   time.Duration // before the next attempt, with Then = Retry
}

// Decision is what follows a failed attempt.
type Decision uint8

// The decisions. All but Retry end the request.
const (
	Retry      Decision = iota // another attempt after Delay
	NotSafe                    // the table says no
	Exhausted                  // Attempts are used up
	NoBudget                   // the budget is
	PushedBack                 // the other side wants no further attempt
	NoTime                     // ctx ends before the next attempt could begin
)

// String returns the decision in lower case and kebab case.
func (d Decision) String() string {
	names := [...]string{"retry", "not-safe", "exhausted", "no-budget", "pushed-back", "no-time"}
	if int(d) < len(names) {
		return names[d]
	}
	return "unknown"
}

// Policy is a checked Config. It may be used by any number of goroutines.
type Policy struct {
	c       Config
	backoff backoff.Policy
}

// New checks c and fills its defaults. The error wraps ErrConfig or
// backoff.ErrConfig.
func New(c Config) (*Policy, error) {
	if c.Attempts == 0 {
		c.Attempts = DefaultAttempts
	}
	if c.Attempts < 1 || c.Attempts > MaxAttempt || c.AttemptTimeout < 0 {
		return nil, fmt.Errorf("%w: attempts %d, attempt timeout %v: want 1 to %d, and 0 or more",
			ErrConfig, c.Attempts, c.AttemptTimeout, MaxAttempt)
	}
	wait, err := backoff.New(c.Backoff)
	if err != nil {
		return nil, fmt.Errorf("retry: %w", err)
	}
	if c.Budget == nil {
		if c.Budget, err = budget.New(budget.Config{}); err != nil {
			return nil, fmt.Errorf("retry: %w", err)
		}
	}
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() time.Duration { return time.Since(start) }
	}
	return &Policy{c, wait}, nil
}

// Do runs fn, and again as the policy allows, and returns what the last attempt
// returned. fn must use the context it is given, which carries the attempt's
// number and ends with AttemptTimeout; adapters turn answers such as a 503 into
// an error (As, Error). A panic of fn goes through.
//
// The error is that of the last attempt. If ctx ends while Do waits it is both:
// errors.Is finds ctx's and the last attempt's.
func Do[R any](ctx context.Context, p *Policy, m Mark, fn func(context.Context) (R, error)) (R, error) {
	if p == nil {
		return fn(ctx)
	}
	if _, inner := Attempt(ctx); inner || p.c.Attempts == 1 {
		return try(ctx, p, fn)
	}
	p.c.Budget.Request(p.c.Clock())
	r, err := try(WithAttempt(ctx, 1), p, fn)
	if err == nil {
		return r, nil
	}
	d := &doing{ctx: ctx, p: p, mark: m, attempt: 1}
	if !d.another(err) {
		return r, err
	}
	return rest(d, r, err, fn)
}

func try[R any](ctx context.Context, p *Policy, fn func(context.Context) (R, error)) (R, error) {
	if p.c.AttemptTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.c.AttemptTimeout)
		defer cancel()
	}
	return fn(ctx)
}

// rest makes the attempts after the first, whose outcome is r and err.
func rest[R any](d *doing, r R, err error, fn func(context.Context) (R, error)) (R, error) {
	policy := retrypolicy.NewBuilder[R]().
		HandleIf(func(_ R, err error) bool { return d.next(err) }).
		WithDelayFunc(func(failsafe.ExecutionAttempt[R]) time.Duration { return d.delay }).
		WithMaxRetries(-1). // d counts
		ReturnLastFailure().
		Build()
	_, _ = failsafe.With(policy).WithContext(d.ctx).Get(func() (R, error) {
		if !d.begun { // failsafe's first execution is the attempt that was made
			d.begun = true
			return r, err
		}
		d.attempt, d.waiting = d.attempt+1, false
		r, err = try(WithAttempt(d.ctx, d.attempt), d.p, fn)
		return r, err
	})
	// Not what Get returns: if ctx ends during an attempt it is ctx's error,
	// even when the attempt succeeded.
	if d.waiting { // ctx ended before the attempt that was paid for
		d.p.c.Budget.Refund(d.p.c.Clock())
		return r, fmt.Errorf("retry: while waiting for attempt %d: %w, after: %w", d.attempt+1, d.ctx.Err(), err)
	}
	return r, err
}

// doing is one request under way.
type doing struct {
	ctx     context.Context
	p       *Policy
	mark    Mark
	attempt int  // the last one made
	begun   bool // rest has taken over
	waiting bool // another attempt is paid for and has not begun
	delay   time.Duration
}

// next is another for failsafe-go, which asks again about the first attempt.
func (d *doing) next(err error) bool {
	if d.waiting && d.attempt == 1 {
		return true
	}
	return err != nil && d.another(err)
}

// another decides about the attempt after the one that failed with err, pays for
// it and tells.
func (d *doing) another(err error) bool {
	then := d.decide(err)
	if d.p.c.OnFailure != nil {
		e := Event{Attempt: d.attempt, Kind: KindOf(err), Err: err, Then: then}
		if then == Retry {
			e.Delay = d.delay
		}
		d.p.c.OnFailure(e)
	}
	d.waiting = then == Retry
	return d.waiting
}

func (d *doing) decide(err error) Decision {
	back := pushback(err)
	switch {
	case !KindOf(err).Again(d.mark):
		return NotSafe
	case d.attempt >= d.p.c.Attempts:
		return Exhausted
	case back < 0:
		return PushedBack
	case d.ctx.Err() != nil:
		return NoTime
	}
	d.delay = max(back, d.p.backoff.Next(d.attempt-1, d.delay))
	if deadline, ok := d.ctx.Deadline(); ok && time.Until(deadline) <= d.delay {
		return NoTime
	}
	if !d.p.c.Budget.Retry(d.p.c.Clock()) {
		return NoBudget
	}
	return Retry
}
