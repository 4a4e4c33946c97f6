// Package limit bounds how much is in flight at once: by a fixed number, or by
// one that an algorithm finds from latencies and drops (AIMD, Vegas, Gradient).
//
//	admitted iff inflight + cost <= limit, or nothing is in flight
//
// Cost counts in the caller's unit, 1 everywhere for requests. A cost above the
// limit is admitted alone, so that a limit that has fallen starves nobody.
//
// Law: inflight is the cost of the admissions without outcome: never negative,
// never above max(limit, one cost) at an admission, and zero when all have
// ended. Each admission ends once: a second Done does nothing, and one whose
// Done never comes is given up after Lost and counts as a drop. An adaptive
// limit stays in [Min, Max] and changes at most once a Window.
//
// Cost: Admit + Done about 25 ns with a fixed limit, 30 ns with an adaptive one;
// no lock, no allocation. The algorithm runs once a Window, in the Done that
// ends it.
//
// Source: TCP's congestion control, taken to requests by Netflix'
// concurrency-limits (AIMDLimit, VegasLimit, Gradient2Limit, WindowedLimit),
// whose rules and defaults the algorithms have; a fixed limit is Envoy's
// max_requests and Hystrix' semaphore.
//
// When not to use it: adaptive limits need latencies that depend on load; with a
// few slow calls among many quick ones (scans beside gets) they cut at random:
// give each kind its own limiter, or fix the limit. They measure what the caller
// sees, and with many callers of one node each finds its own share only.
package limit

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/internal/ticket"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("limit: bad config")

// ErrLimited says that as much as allowed is in flight: drop, or go to another node.
var ErrLimited = errors.New("limit: too much in flight")

// ErrCost says that a cost is not in 1..65535.
var ErrCost = errors.New("limit: cost out of range")

// Defaults of Config.
const (
	DefaultInitial    = 20
	DefaultMin        = 1
	DefaultMax        = 1000
	DefaultWindow     = time.Second
	DefaultMinSamples = 10
	DefaultLost       = time.Minute
)

// Config says how much may be in flight.
type Config struct {
	// Initial is the limit at first, and for good without an Algorithm; in
	// cost. 0 means DefaultInitial (20).
	Initial int
	// Min and Max bound an adaptive limit; 0 means DefaultMin (1) and
	// DefaultMax (1000, or Initial if that is more).
	Min, Max int
	// Algorithm moves the limit once a Window; nil keeps it fixed. A value
	// belongs to one Limiter.
	Algorithm Algorithm
	// Window is how long samples are gathered for one step; 0 means
	// DefaultWindow (1 s).
	Window time.Duration
	// MinSamples is the number of latencies under which a window makes no
	// step and goes on gathering, unless something was dropped; 0 means
	// DefaultMinSamples (10).
	MinSamples int
	// Lost is how long an admission may go without Done before it is given up
	// and its room freed; 0 means DefaultLost (1 min), negative means never,
	// for streams that stay open.
	Lost time.Duration
}

// Limiter bounds what is in flight. Make one a node with New; it must not be
// copied. Its methods may be called by any number of goroutines.
type Limiter struct {
	c        Config
	limit    atomic.Int64
	inflight atomic.Int64
	open     ticket.Ledger
	samples  samples
	exact    float64 // the limit as the algorithm has it; guarded by samples.stepping
}

// Ticket is one admission; see Done. The zero Ticket does nothing.
type Ticket struct {
	l     *Limiter
	t     ticket.Ticket
	start time.Duration
}

// New returns a limiter. The error wraps ErrConfig.
func New(c Config) (*Limiter, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	l := &Limiter{c: c, exact: float64(c.Initial)}
	l.limit.Store(int64(c.Initial))
	l.samples.reset()
	return l, nil
}

func (c *Config) fill() error {
	if c.Initial == 0 {
		c.Initial = DefaultInitial
		if c.Max > 0 {
			c.Initial = min(c.Initial, c.Max)
		}
		c.Initial = max(c.Initial, c.Min)
	}
	if c.Min == 0 {
		c.Min = DefaultMin
	}
	if c.Max == 0 {
		c.Max = max(DefaultMax, c.Initial)
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.MinSamples == 0 {
		c.MinSamples = DefaultMinSamples
	}
	if c.Lost == 0 {
		c.Lost = DefaultLost
	}
	if c.Min < 1 || c.Initial < c.Min || c.Max < c.Initial || c.Max > math.MaxInt32 {
		return fmt.Errorf("%w: min %d, initial %d, max %d: want 1 <= min <= initial <= max", ErrConfig, c.Min, c.Initial, c.Max)
	}
	if c.Window < 0 || c.MinSamples < 0 {
		return fmt.Errorf("%w: window %v, min samples %d: want 0 or more", ErrConfig, c.Window, c.MinSamples)
	}
	return nil
}

// Admit asks for cost, 1..65535, at now. The error is ErrLimited or ErrCost; the
// ticket is then the zero one.
func (l *Limiter) Admit(now time.Duration, cost int) (Ticket, error) {
	if cost < 1 || cost > ticket.MaxCost {
		return Ticket{}, fmt.Errorf("%w: %d not in 1..%d", ErrCost, cost, ticket.MaxCost)
	}
	l.sweepLost(now)
	for {
		n := l.inflight.Load()
		next := n + int64(cost)
		if n > 0 && next > l.limit.Load() {
			return Ticket{}, ErrLimited
		}
		if l.inflight.CompareAndSwap(n, next) {
			if l.c.Algorithm != nil {
				l.samples.see(next)
			}
			return Ticket{l, l.open.Take(now, cost), now}, nil
		}
	}
}

// Done ends the admission at now, once. A Success is a sample of the latency
// since Admit, a Timeout or Overload is a drop; a Failure says nothing about
// load (an error is often quicker than an answer), and neither does Ignored.
func (t Ticket) Done(now time.Duration, o resilience.Outcome) {
	if !t.t.Close() {
		return
	}
	t.l.inflight.Add(-int64(t.t.Cost()))
	if t.l.c.Algorithm == nil {
		return
	}
	switch o {
	case resilience.Success:
		t.l.samples.add(now - t.start)
	case resilience.Timeout, resilience.Overload:
		t.l.samples.dropped.Store(true)
	default:
		return
	}
	t.l.step(now)
}

// Limit returns the limit now in force, in cost.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// InFlight returns the cost of the admissions without outcome.
func (l *Limiter) InFlight() int { return int(l.inflight.Load()) }

// sweepLost gives up admissions without outcome, now and then.
func (l *Limiter) sweepLost(now time.Duration) {
	if n, costs := l.open.Sweep(now, l.c.Lost); n > 0 {
		l.inflight.Add(-int64(costs))
		l.samples.dropped.Store(true)
	}
}
