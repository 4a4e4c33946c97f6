// Package throttle drops a share of the calls in step with what the other side
// refuses, at the caller, before they cost anything.
//
//	p(drop) = max(0, (requests - K * accepts) / (requests + 1))
//
// requests are all calls of the last Window, dropped ones included; accepts
// those that ended in Success. While the other side accepts more than one call
// in K nothing is dropped; when it accepts nothing, about K calls in excess of
// none still go through, and one a Force at least, so that its recovery is seen.
//
// Law: 0 <= p < 1; each admission ends once (a second Done counts nothing); the
// load sent to a side that accepts a calls a second tends to K * a.
//
// Cost: Admit + Done about 60 ns (it adds up the window each time); no lock, no
// allocation.
//
// Source: "Site Reliability Engineering", ch. 21, "Client-Side Throttling",
// which has K = 2; the window of 10 s, the five calls that are always let
// through and the forced pass each second are go-zero's breaker.
//
// When not to use it: with few calls (under MinRequests in a Window it does
// nothing), for errors that are not refusals (a request that is wrong fails for
// ever and would throttle the right ones), and together with a breaker on the
// same node: the breaker opens first.
package throttle

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/internal/ticket"
	"github.com/shardd/shardd/resilience/internal/window"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("throttle: bad config")

// ErrDropped says that the call was dropped in the caller's own process: fail,
// or go to another node; do not retry here.
var ErrDropped = errors.New("throttle: dropped, the other side refuses too much")

// Defaults of Config.
const (
	DefaultK           = 2
	DefaultWindow      = 10 * time.Second
	DefaultMinRequests = 5
	DefaultForce       = time.Second
)

// lost is when an admission without Done is forgotten; it was never an accept.
const lost = time.Minute

// Config says how much is dropped. The zero Config is the default.
type Config struct {
	// K is the calls sent for each one accepted, at least 1: a smaller one
	// drops earlier and wastes less of the other side, a larger one sees
	// recovery sooner. 0 means DefaultK (2).
	K float64
	// Window is the time both counts look back; 0 means DefaultWindow (10 s).
	// Dropping begins after about (1 - 1/K) of it when everything fails.
	Window time.Duration
	// MinRequests is taken off the requests, so that few calls are never
	// dropped; 0 means DefaultMinRequests (5), negative means none.
	MinRequests int
	// Force lets one call through when nothing has passed for so long; 0 means
	// DefaultForce (1 s), negative means never.
	Force time.Duration
	// Rand returns chance in [0, 1); nil means rand.Float64 of math/rand/v2.
	Rand func() float64
}

// Throttle is one throttle. Make one with New for each side that can refuse; it
// must not be copied. Its methods may be called by any number of goroutines.
type Throttle struct {
	c      Config
	counts *window.Window // A requests, B accepts
	open   ticket.Ledger
	passed atomic.Int64 // when a call was last let through
}

// Ticket is one admission; see Done. The zero Ticket does nothing.
type Ticket struct {
	th *Throttle
	t  ticket.Ticket
}

// New returns a throttle. The error wraps ErrConfig.
func New(c Config) (*Throttle, error) {
	if c.K == 0 {
		c.K = DefaultK
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.MinRequests == 0 {
		c.MinRequests = DefaultMinRequests
	}
	if c.Force == 0 {
		c.Force = DefaultForce
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if !(c.K >= 1) || math.IsInf(c.K, 0) || c.Window < 0 {
		return nil, fmt.Errorf("%w: k %v, window %v: want k of 1 or more, window of 0 or more", ErrConfig, c.K, c.Window)
	}
	return &Throttle{c: c, counts: window.New(c.Window)}, nil
}

// Admit asks for one call at now; the error is ErrDropped.
func (th *Throttle) Admit(now time.Duration) (Ticket, error) {
	p := th.Drop(now)
	th.counts.Add(now, window.A)
	if p > 0 && th.c.Rand() < p && !th.force(now) {
		return Ticket{}, ErrDropped
	}
	if last := th.passed.Load(); last != int64(now) {
		th.passed.Store(int64(now))
	}
	th.open.Sweep(now, lost)
	return Ticket{th, th.open.Take(now, 1)}, nil
}

// Drop returns the probability at now that Admit drops a call, apart from the
// forced pass.
func (th *Throttle) Drop(now time.Duration) float64 {
	requests, accepts := th.counts.Sums(now)
	excess := float64(requests) - float64(max(0, th.c.MinRequests)) - th.c.K*float64(accepts)
	return max(0, excess/float64(requests+1))
}

// force reports whether this call must go through, for one of all that ask at once.
func (th *Throttle) force(now time.Duration) bool {
	last := th.passed.Load()
	elapsed := now - time.Duration(last)
	return th.c.Force > 0 && (elapsed >= th.c.Force || elapsed <= -th.c.Force) &&
		th.passed.CompareAndSwap(last, int64(now))
}

// Done ends the admission at now, once. Success is an accept; Ignored takes the
// request back; everything else leaves it a request that was not accepted, and
// so does an admission without Done.
func (t Ticket) Done(now time.Duration, o resilience.Outcome) {
	if !t.t.Close() {
		return
	}
	switch o {
	case resilience.Success:
		t.th.counts.Add(now, window.B)
	case resilience.Ignored:
		t.th.counts.Undo(now, window.A)
	}
}
