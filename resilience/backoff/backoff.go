// Package backoff computes how long to wait before the next try.
//
// The ceiling of wait k (0 for the first) is t_k = min(Max, Base * Factor^k).
// The wait drawn under it:
//
//	Full          U(0, t_k)
//	Equal         t_k/2 + U(0, t_k/2)
//	Decorrelated  min(Max, U(Base, 3 * previous)), previous = Base at first; Factor has no part in it
//	None          t_k
//
// Law: 0 <= wait <= Max for any k and any chance; the mean of Full is half of
// Equal's ceiling, so Full sends the same load with half the waiting.
//
// Cost: a few float operations; Policy is a value without state; no allocation.
//
// Source: "Exponential Backoff And Jitter", AWS Architecture Blog (2015), which
// names the three. None is for tests and for waits that something else spreads.
//
// When not to use it: a lone client that polls (a fixed interval is clearer),
// and as the only guard against a storm: it spreads the retries of an outage, it
// does not make them fewer. That is a budget's work.
package backoff

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("backoff: bad config")

// Jitter is how chance enters a wait. The zero value is Full.
type Jitter uint8

// The jitters of the package comment.
const (
	Full Jitter = iota
	Equal
	Decorrelated
	None
)

// Defaults of Config.
const (
	DefaultBase   = 100 * time.Millisecond
	DefaultMax    = 10 * time.Second
	DefaultFactor = 2
)

// Config says how waits grow.
type Config struct {
	// Base is the ceiling of the first wait; 0 means DefaultBase (100 ms), or
	// Max if that is smaller.
	Base time.Duration
	// Max bounds every wait; 0 means DefaultMax (10 s). At least Base.
	Max time.Duration
	// Factor is the growth from wait to wait, at least 1; 0 means DefaultFactor (2).
	Factor float64
	// Jitter is how chance enters; the zero value is Full.
	Jitter Jitter
	// Rand returns chance in [0, 1) and is called by all users of the Policy at
	// once; nil means rand.Float64 of math/rand/v2.
	Rand func() float64
}

// Policy is a checked Config. It has no state and may be used by any number of
// goroutines, as far as Rand may. The zero Policy waits 0; make one with New.
type Policy struct {
	c Config
}

// New checks c and fills its defaults. The error wraps ErrConfig.
func New(c Config) (Policy, error) {
	if c.Base == 0 {
		c.Base = DefaultBase
		if c.Max > 0 {
			c.Base = min(c.Base, c.Max)
		}
	}
	if c.Max == 0 {
		c.Max = max(DefaultMax, c.Base)
	}
	if c.Factor == 0 {
		c.Factor = DefaultFactor
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	switch {
	case c.Base < 0 || c.Max < c.Base:
		return Policy{}, fmt.Errorf("%w: base %v and max %v: want 0 <= base <= max", ErrConfig, c.Base, c.Max)
	case !(c.Factor >= 1) || math.IsInf(c.Factor, 0):
		return Policy{}, fmt.Errorf("%w: factor %v: want 1 or more", ErrConfig, c.Factor)
	case c.Jitter > None:
		return Policy{}, fmt.Errorf("%w: jitter %d: want Full, Equal, Decorrelated or None", ErrConfig, c.Jitter)
	}
	return Policy{c}, nil
}

// Next returns wait k, 0 for the first one; previous is the wait before it,
// which only Decorrelated looks at. A negative k counts as 0.
func (p Policy) Next(k int, previous time.Duration) time.Duration {
	if p.c.Max == 0 {
		return 0
	}
	t := p.ceiling(k)
	switch p.c.Jitter {
	case Full:
		return p.between(0, t)
	case Equal:
		return p.between(t/2, t)
	case Decorrelated:
		return p.between(p.c.Base, max(p.c.Base, 3*min(previous, math.MaxInt64/3)))
	}
	return t
}

func (p Policy) ceiling(k int) time.Duration {
	t := float64(p.c.Base) * math.Pow(p.c.Factor, float64(max(0, k)))
	if t >= float64(p.c.Max) { // +Inf for a large k
		return p.c.Max
	}
	return time.Duration(t)
}

// between draws from [lo, hi], cut at Max.
func (p Policy) between(lo, hi time.Duration) time.Duration {
	u := p.c.Rand()
	if !(u >= 0 && u < 1) { // a broken source must not break the bound
		u = 0
	}
	return min(p.c.Max, lo+time.Duration(u*float64(hi-lo)))
}
