package sdk

import (
	"context"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/retry"
)

// Call is one request through Do.
type Call struct {
	// Key is routed by; with Any there is none.
	Key string
	Any bool // by the policy of WithBalance, as AcquireAny
	// Cost is as for Acquire; 0 means 1.
	Cost int64
	// Mark says whether the request may be made twice where nobody knows what
	// became of the first; see retry.Kind.Again. The zero value is retry.Plain: it
	// may not, and is tried again only where it certainly did nothing.
	Mark retry.Mark
}

// Do acquires a node for the call, runs fn with its ticket, and ends the ticket
// by what fn returned: nil is a Success, and an error what retry.KindOf makes of
// it (wrap it by retry.As to say so yourself). With WithResilience a request that
// failed before work began, or is marked idempotent, is made again at another
// node, as its Retry says; without it there is one attempt.
//
// fn must use its context, which carries the number of the attempt, and may call
// t.Report; it must not keep t. If it calls t.Done itself, that counts. A panic of
// fn goes through and is a Failure.
//
// The error is that of Acquire, or fn's last.
func (c *Client) Do(ctx context.Context, call Call, fn func(ctx context.Context, t *Ticket) error) error {
	if call.Cost == 0 {
		call.Cost = 1
	}
	var tried []string
	_, err := retry.Do(ctx, c.fleet.retry, call.Mark, func(ctx context.Context) (struct{}, error) {
		g, err := c.acquireFor(ctx, call, tried)
		if err != nil {
			return struct{}{}, retry.As(retry.Local, err)
		}
		t := Ticket{grant: g}
		tried = append(tried, t.ID())
		return struct{}{}, run(ctx, &t, fn)
	})
	return err
}

// run makes one attempt.
func run(ctx context.Context, t *Ticket, fn func(context.Context, *Ticket) error) error {
	outcome := Failure // of a panic
	defer func() { t.Done(outcome) }()
	err := fn(ctx, t)
	outcome = OutcomeOf(err)
	return err
}

// OutcomeOf returns what an error says about the node that it came from, as
// retry.KindOf sees it: nil is Success; Canceled and Local say nothing.
func OutcomeOf(err error) Outcome {
	switch retry.KindOf(err) {
	case retry.None:
		return resilience.Success
	case retry.Canceled, retry.Local:
		return resilience.Ignored
	case retry.Timeout:
		return resilience.Timeout
	case retry.Overload:
		return resilience.Overload
	}
	return resilience.Failure
}

// acquireFor is Acquire for one attempt of a call: at a node that has not been
// tried, if there is one.
func (c *Client) acquireFor(ctx context.Context, call Call, tried []string) (grant, error) {
	s := c.snap.Load()
	p, err := c.admissible(ctx, s, call.Cost)
	if err != nil {
		return grant{}, err
	}
	r := request{f: c.fleet, s: s, p: p, cost: call.Cost}
	ask := r.any
	if !call.Any {
		r.hash = s.table.Hash(call.Key)
		ask = r.acquire
	}
	g, err := ask(tried)
	if err != nil && len(tried) > 0 {
		g, err = ask(nil)
	}
	if err != nil {
		c.fleet.counters.unavailable.Add(1)
	}
	return g, err
}
