package sdk

import (
	"context"
	"errors"

	"github.com/shardd/shardd/balance/bounded"
)

// MaxCost is the largest cost of one request: 2^32.
const MaxCost = bounded.MaxCost

// Errors of Acquire, besides those of lookups.
var (
	// ErrCost: the cost is not 1 to MaxCost.
	ErrCost = errors.New("sdk: cost is not 1 to 4294967296; give 1 for a request, or its tokens")
	// ErrUnavailable: there are owners, but every node that may take the
	// request refuses it: its breaker is open, its limit is reached, it was
	// tried already. Fail the request, or answer from elsewhere.
	ErrUnavailable = errors.New("sdk: every node that may take the request refuses it")
)

// Acquire admits one request for key and says where it goes: to the first node
// in the key's order of preference whose load is under its cap, by the rule of
// package bounded. Without a factor (topology.Spec.BoundedLoad, or
// WithBoundedLoad) it goes where Route says, and is only counted.
//
// cost is what the request adds to the node's load, 1 to MaxCost: 1 where
// requests are counted, the tokens where prices differ by decades. One request
// dearer than a cap is admitted where the load allows it: a node is over its cap
// by less than one request.
//
// The caller calls Done on every way out:
//
//	t, err := c.Acquire(ctx, key, 1)
//	if err != nil { ... }
//	defer t.Done(sdk.Ignored) // if nothing else was said
//	... send to t.Addr() ...
//	t.Done(sdk.Success)
//
// Acquire does not wait and allocates nothing while fewer than 16 nodes refuse.
// Errors: ctx's, ErrCost, ErrNotReady, ErrNoNodes, ErrClosed, ErrUnavailable.
func (c *Client) Acquire(ctx context.Context, key string, cost int64) (Ticket, error) {
	s := c.snap.Load()
	p := s.plan.Load()
	if p == nil || !p.plain || uint64(cost-1) >= MaxCost || ctx.Err() != nil {
		return c.acquireSlow(ctx, s, key, cost)
	}
	h := s.table.Hash(key)
	i := s.table.Locate(h)
	if !p.set.Admit(i, cost) {
		return c.acquireNext(s, p, h, cost)
	}
	return Ticket{grant: grant{rec: &s.records[i], hash: h, claim: claim(cost)}}, nil
}
