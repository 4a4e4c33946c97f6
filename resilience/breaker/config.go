package breaker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("breaker: bad config")

// Defaults of Config.
const (
	DefaultWindow       = 10 * time.Second
	DefaultMinRequests  = 20
	DefaultFailureRate  = 0.5
	DefaultConsecutive  = 5
	DefaultOpenFor      = 5 * time.Second
	DefaultProbes       = 1
	DefaultProbeTimeout = 5 * time.Second
	DefaultCloseAfter   = 1
	DefaultLost         = time.Minute
	// MaxProbes is the largest Probes.
	MaxProbes = 64
)

// Config says when a breaker opens and closes. The zero Config is the default.
type Config struct {
	// Window is the time over which the failure rate is taken; 0 means
	// DefaultWindow (10 s, Hystrix).
	Window time.Duration
	// MinRequests is the number of outcomes in Window under which the rate
	// says nothing; 0 means DefaultMinRequests (20, Hystrix).
	MinRequests int
	// FailureRate opens the breaker when failures/outcomes reaches it, in
	// (0, 1]; 0 means DefaultFailureRate (0.5), negative switches the rate off.
	FailureRate float64
	// Consecutive opens the breaker after so many bad outcomes without a
	// success between; 0 means DefaultConsecutive (5), negative switches it off.
	Consecutive int
	// OpenFor is how long nothing is admitted after a trip; 0 means
	// DefaultOpenFor (5 s, Hystrix).
	OpenFor time.Duration
	// Jitter shortens each OpenFor by a random part up to this share of it, in
	// [0, 1), so that a thousand clients do not probe at the same instant.
	// 0 means none.
	Jitter float64
	// Probes is the number of requests in flight at once while half-open,
	// 1..MaxProbes; 0 means DefaultProbes (1).
	Probes int
	// ProbeTimeout is how long a probe may go without Done before it counts as
	// timed out and frees its slot; 0 means DefaultProbeTimeout (5 s).
	ProbeTimeout time.Duration
	// CloseAfter is the number of probes that must succeed; 0 means
	// DefaultCloseAfter (1).
	CloseAfter int
	// Lost is how long an admission of the closed state may go without Done
	// before it counts as timed out; 0 means DefaultLost (1 min), negative
	// means never, for streams that stay open.
	Lost time.Duration
	// Rand returns chance in [0, 1) for Jitter; nil means rand.Float64 of math/rand/v2.
	Rand func() float64
	// OnChange is called after each change of state by the goroutine that made
	// it; it must be quick. Two of them may come out of order: Generation
	// orders them. nil means nobody is told.
	OnChange func(Change)
}

// Change is one change of state.
type Change struct {
	From, To   State
	Generation uint64        // of To; grows by one with each change
	At         time.Duration // the now of the call that made it
}

func (c *Config) fill() error {
	def(&c.Window, DefaultWindow)
	def(&c.MinRequests, DefaultMinRequests)
	def(&c.FailureRate, DefaultFailureRate)
	def(&c.Consecutive, DefaultConsecutive)
	def(&c.OpenFor, DefaultOpenFor)
	def(&c.Probes, DefaultProbes)
	def(&c.ProbeTimeout, DefaultProbeTimeout)
	def(&c.CloseAfter, DefaultCloseAfter)
	def(&c.Lost, DefaultLost)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	switch {
	case c.Window < 0 || c.OpenFor < 0 || c.ProbeTimeout < 0:
		return fmt.Errorf("%w: window %v, open for %v, probe timeout %v: want 0 or more", ErrConfig, c.Window, c.OpenFor, c.ProbeTimeout)
	case c.MinRequests < 0 || c.CloseAfter < 0:
		return fmt.Errorf("%w: min requests %d, close after %d: want 0 or more", ErrConfig, c.MinRequests, c.CloseAfter)
	case !(c.FailureRate <= 1):
		return fmt.Errorf("%w: failure rate %v: want at most 1, negative for off", ErrConfig, c.FailureRate)
	case !(c.Jitter >= 0 && c.Jitter < 1):
		return fmt.Errorf("%w: jitter %v: want 0 <= jitter < 1", ErrConfig, c.Jitter)
	case c.Probes < 0 || c.Probes > MaxProbes:
		return fmt.Errorf("%w: probes %d: want 1 to %d", ErrConfig, c.Probes, MaxProbes)
	case c.FailureRate < 0 && c.Consecutive < 0:
		return fmt.Errorf("%w: failure rate and consecutive are both off: leave the breaker out", ErrConfig)
	}
	return nil
}

// def gives a field its default when it is 0.
func def[T comparable](field *T, value T) {
	if zero := *new(T); *field == zero {
		*field = value
	}
}
