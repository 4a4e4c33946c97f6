// Package hedge sends a second attempt when the first one is slow, and takes the
// answer that comes first.
//
// The second attempt goes out when the first has taken Delay, or the Quantile of
// recent calls: with Quantile 0.95 one call in twenty is sent twice at most.
// The first success ends the call, and so does a failure that a retry would not
// follow (retry.KindOf says what may be tried again); any other failure waits for
// the attempts that are out or still to come. Attempts that lose are cancelled.
//
// Each attempt after the first is paid by the budget that retries use: when a
// whole service is slow, hedging would double its load for nothing.
//
// Law: at most 1 + MaxHedges attempts; the added load is within the budget; no
// attempt is sent by an inner layer when an outer one retries or hedges (the
// attempt number travels, see package retry), so that a call is retried or
// hedged, not both, as in gRPC A6. The error is that of an attempt that was sent.
//
// Cost: failsafe-go's hedge policy runs the attempts, each in a goroutine: 5 us
// and 32 allocations a call, answered at once or not. That is little against a
// network call of 200 us and much against a map look-up.
//
// Source: J. Dean, L. Barroso, "The Tail at Scale", CACM 56(2) 2013 (hedged
// requests after the 95th percentile: 1,800 ms to 74 ms at p99.9 for 2 % more
// requests); gRPC A6. A6 sends the next attempt at once when one fails; here it
// keeps its delay.
//
// When not to use it: for anything that is not idempotent, since both attempts
// may be done; for calls whose slowness the request causes (a scan), which is
// slow twice; with one node only.
package hedge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/shardd/shardd/resilience/budget"
	"github.com/shardd/shardd/resilience/retry"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("hedge: bad config")

// Defaults of Config.
const (
	DefaultMaxHedges  = 1
	DefaultMinSamples = 100
	// quantileAge is how many calls the moving quantile remembers, about.
	quantileAge = 1000
)

// Config says when a second attempt goes out. Delay or Quantile must be given.
type Config struct {
	// Delay is how long an attempt may take before the next goes out; 0 means
	// Quantile says.
	Delay time.Duration
	// Quantile of the durations of recent successes is the delay, in (0, 1):
	// 0.95 or higher. 0 means Delay says.
	Quantile float64
	// MinSamples is the successes under which Quantile sends nothing; 0 means
	// DefaultMinSamples (100).
	MinSamples int
	// MaxHedges is the attempts after the first; 0 means DefaultMaxHedges (1),
	// at most 4.
	MaxHedges int
	// Budget pays for the attempts after the first: share it with the retry
	// policy. nil means one of this policy's own, with its defaults.
	Budget *budget.Budget
	// Clock gives now for the Budget; nil means the time since New.
	Clock func() time.Duration
	// OnHedge is called when an attempt after the first goes out, with its
	// number from 2; it may be called by several goroutines. nil means nobody is told.
	OnHedge func(attempt int)
}

// Policy hedges calls that return R. It may be used by any number of goroutines.
type Policy[R any] struct {
	c      Config
	policy hedgepolicy.HedgePolicy[R]
}

// errNoBudget is what an attempt returns that nobody pays for.
var errNoBudget = errors.New("hedge: no budget")

// New checks c and fills its defaults. The error wraps ErrConfig.
func New[R any](c Config) (*Policy[R], error) {
	if c.MinSamples == 0 {
		c.MinSamples = DefaultMinSamples
	}
	if c.MaxHedges == 0 {
		c.MaxHedges = DefaultMaxHedges
	}
	switch {
	case (c.Delay > 0) == (c.Quantile != 0) || c.Delay < 0:
		return nil, fmt.Errorf("%w: delay %v, quantile %v: want one of them", ErrConfig, c.Delay, c.Quantile)
	case c.Quantile != 0 && !(c.Quantile > 0 && c.Quantile < 1):
		return nil, fmt.Errorf("%w: quantile %v: want more than 0, less than 1", ErrConfig, c.Quantile)
	case c.MaxHedges < 0 || c.MaxHedges > 4 || c.MinSamples < 0:
		return nil, fmt.Errorf("%w: max hedges %d, min samples %d: want 1 to 4, and 0 or more", ErrConfig, c.MaxHedges, c.MinSamples)
	}
	if c.Budget == nil {
		var err error
		if c.Budget, err = budget.New(budget.Config{}); err != nil {
			return nil, fmt.Errorf("hedge: %w", err)
		}
	}
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() time.Duration { return time.Since(start) }
	}
	return &Policy[R]{c, build[R](c)}, nil
}

func build[R any](c Config) hedgepolicy.HedgePolicy[R] {
	b := hedgepolicy.NewBuilderWithDelay[R](c.Delay)
	if c.Quantile != 0 {
		b = hedgepolicy.NewBuilderWithDelayQuantile[R](c.Quantile, quantileAge, uint(c.MinSamples))
	}
	return b.WithMaxHedges(c.MaxHedges).
		CancelIf(func(_ R, err error) bool { return final(err) }).
		Build()
}

// final reports whether an attempt's outcome ends the call.
func final(err error) bool {
	return err == nil || !errors.Is(err, errNoBudget) && !retry.KindOf(err).Again(retry.Idempotent)
}

// Do runs fn, and once more when it is slow, and returns the first answer. Call
// it for idempotent requests only. fn runs in another goroutine, up to
// 1 + MaxHedges of them at once, and must use the context it is given: it carries
// the attempt's number and is cancelled as soon as the call is over, also for the
// attempt that won, so a body must be read within fn. Do does not wait for
// attempts that lost. A panic of an attempt that ends the call goes on in the
// caller's goroutine.
//
// A nil policy, and a call that belongs to an attempt of an outer layer, runs fn
// once, in the caller's goroutine.
func Do[R any](ctx context.Context, p *Policy[R], fn func(context.Context) (R, error)) (R, error) {
	if p == nil {
		return fn(ctx)
	}
	if _, inner := retry.Attempt(ctx); inner {
		return fn(ctx)
	}
	p.c.Budget.Request(p.c.Clock())
	c := &call[R]{p: p, fn: fn}
	r, err := failsafe.With(p.policy).WithContext(ctx).GetWithExecution(c.attempt)
	var thrown *panicked
	switch {
	case errors.As(err, &thrown):
		panic(thrown.value) //nolint:forbidigo // the caller's own panic goes on, in its own goroutine
	case errors.Is(err, errNoBudget):
		// The attempt that was not sent came last; what counts is the one that was.
		if last := c.last.Load(); last != nil {
			return last.r, last.err
		}
	}
	return r, err
}

// call is one Do under way.
type call[R any] struct {
	p    *Policy[R]
	fn   func(context.Context) (R, error)
	sent atomic.Int32
	last atomic.Pointer[result[R]] // of an attempt that was sent and did not end the call
}

type result[R any] struct {
	r   R
	err error
}

// panicked carries a panic to the caller's goroutine.
type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("hedge: attempt panicked: %v", p.value) }

func (c *call[R]) attempt(exec failsafe.Execution[R]) (r R, err error) {
	if exec.IsHedge() && !c.p.c.Budget.Retry(c.p.c.Clock()) {
		return r, errNoBudget
	}
	n := int(c.sent.Add(1))
	if n > 1 && c.p.c.OnHedge != nil {
		c.p.c.OnHedge(n)
	}
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
		if err != nil {
			c.last.Store(&result[R]{r, err})
		}
	}()
	return c.fn(retry.WithAttempt(exec.Context(), n))
}
