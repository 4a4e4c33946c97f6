package sdk

import (
	"context"
	"time"

	"github.com/shardd/shardd/resilience/breaker"
	"github.com/shardd/shardd/resilience/limit"
	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/resilience/probe"
	"github.com/shardd/shardd/resilience/retry"
	"github.com/shardd/shardd/resilience/slowstart"
	"github.com/shardd/shardd/topology"
)

// Resilience says what Acquire and Do make of nodes that fail, are full, are new
// or leave: the one place to configure it. The zero value is a sane default; each
// part says what it is. Nothing here moves a key: a node that is ejected or
// whose breaker is open is passed over along the key's order, and gets its
// requests back when it is well.
type Resilience struct {
	// Outlier ejects nodes whose requests fail. A zero Limit means 1/3 here,
	// not a tenth, with which fewer than ten nodes would never lose one. Its OnChange is
	// told as OnEject is.
	Outlier outlier.Config
	// Breaker stops calling a node of which half the requests fail, sooner than
	// ejection may where its limit is reached; nil means a rate of 0.5 of at least
	// 20 in 10 s and no row. NoBreaker leaves it out.
	Breaker   *breaker.Config
	NoBreaker bool
	// Limit bounds the requests in flight at each node by what it can take; nil
	// means no limit.
	Limit *limit.Config
	// SlowStart gives a node that has just joined its weight little by little: in
	// the choice of a policy, and in the caps of bounded load; nil means 60 s from a
	// tenth. NoSlowStart leaves it out. What is there at the first topology is not
	// new.
	SlowStart   *slowstart.Config
	NoSlowStart bool
	// Retry is how Do tries again; the zero value is 3 attempts, the next one at
	// another node after up to 10 ms, doubled up to 1 s, within a budget of a fifth
	// of the requests.
	Retry retry.Config
	// Probe looks at a node that is ejected, so that it is taken back when it is
	// well and not only when its time is over; nil means it is not looked at.
	// Probing says how often.
	Probe   func(ctx context.Context, n topology.Node) error
	Probing probe.Config
	// OnEject is told of each ejection and return, in order, in a goroutine of its own:
	// it may take its time. nil means nobody is told.
	OnEject func(outlier.Event)
}

// WithResilience switches on ejection, breakers, slow start, and the retries of
// Do, as r says. Without it Acquire judges no node, and Do makes one attempt.
func WithResilience(r Resilience) Option { return func(o *options) { o.resilience = &r } }

// Grace says how long a node that gives up its keys or has left may finish what
// is in flight; see WithGrace.
type Grace func(n topology.Node) time.Duration

// DefaultGrace is the grace period of a node, unless WithGrace says otherwise.
const DefaultGrace = 30 * time.Second

// WithGrace sets the time that a node which drains or has left is given to finish
// what is in flight, node by node; nil means DefaultGrace for all. g is asked as a
// topology is taken, and must not call the client. 0 cuts at
// once, a negative time never. When it is over Ticket.Cut tells long streams, and
// Hooks.OnDrained everybody else.
func WithGrace(g Grace) Option { return func(o *options) { o.grace = g } }
