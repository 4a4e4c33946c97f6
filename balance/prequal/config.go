package prequal

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance"
)

// MaxPool is the largest pool.
const MaxPool = 64

// Config configures a Picker; the zero value has the paper's settings.
type Config struct {
	// Pool is the most answers kept, 2 to MaxPool; 0 means 16.
	Pool int
	// Probes is the number of probes a query, fractions allowed; 0 means 3.
	Probes float64
	// Remove is the number of answers removed a query, besides those that are old
	// or used up; 0 means 1, below 0 none.
	Remove float64
	// Delta is how much faster the pool should fill than it is used; 0 means 1.
	Delta float64
	// MaxAge is the age at which an answer is dropped; 0 means 1 s.
	MaxAge time.Duration
	// Quantile of the recent RIFs above which a node is hot, 0 to 1; 0 means
	// 2^-0.25 = 0.84. A small one looks at RIF alone, 1 at latency alone.
	Quantile float64
	// RIFOnly looks at RIF alone: everything is hot.
	RIFOnly bool
	// Linear replaces the hot-cold rule by a weighted sum; nil is off. It is here
	// to be compared with: the paper finds the sum worse at any mix.
	Linear *Linear
	// Errors lets recent errors count as requests in flight; the zero value is off.
	Errors balance.ErrorLoad
}

// Linear picks the least (1 - Mix) * latency + Mix * PerRIF * RIF.
type Linear struct {
	// Mix is the part of RIF, 0 (latency alone) to 1 (RIF alone).
	Mix float64
	// PerRIF is the latency that one request in flight stands for; above 0.
	PerRIF time.Duration
}

// score is what the rule compares, in nanoseconds.
func (l *Linear) score(a *answer) float64 {
	return (1-l.Mix)*float64(a.latency) + l.Mix*float64(l.PerRIF)*float64(a.rif.Load())
}

func (c *Config) fill() error {
	def := func(x *float64, d float64) {
		if *x == 0 {
			*x = d
		}
	}
	if c.Pool == 0 {
		c.Pool = 16
	}
	if c.MaxAge == 0 {
		c.MaxAge = time.Second
	}
	def(&c.Probes, 3)
	def(&c.Remove, 1)
	def(&c.Delta, 1)
	def(&c.Quantile, math.Pow(2, -0.25))
	c.Remove = max(0, c.Remove)
	switch {
	case c.Pool < 2 || c.Pool > MaxPool:
		return balance.Invalidf("prequal: a pool of %d; give 2 to %d", c.Pool, MaxPool)
	case !(c.Probes > 0 && c.Probes <= MaxPool) || !(c.Remove <= MaxPool):
		return balance.Invalidf("prequal: %v probes and %v removals a query; give 0 to %d", c.Probes, c.Remove, MaxPool)
	case !(c.Quantile > 0 && c.Quantile <= 1) || !(c.Delta > 0 && c.Delta < 1e6) || c.MaxAge < 0:
		return balance.Invalidf("prequal: Config%+v: Quantile must be in (0, 1], Delta and MaxAge positive", *c)
	case c.Linear != nil && (!(c.Linear.Mix >= 0 && c.Linear.Mix <= 1) || c.Linear.PerRIF <= 0):
		return balance.Invalidf("prequal: Linear%+v: Mix must be in [0, 1], PerRIF positive", *c.Linear)
	case !(c.Errors.Each >= 0) || c.Errors.Decay < 0:
		return balance.Invalidf("prequal: ErrorLoad%v is negative; use 0 for off", c.Errors)
	}
	return nil
}

// reuse returns how often an answer may be used with n nodes; 0 is without
// limit: probes do not keep up with removals.
func (c *Config) reuse(n int) float64 {
	fill := (1-min(1, float64(c.Pool)/float64(n)))*c.Probes - c.Remove
	if fill <= 0 {
		return 0
	}
	return max(1, (1+c.Delta)/fill)
}

// spread returns how many of a fractional number per call fall to call k, so
// that k calls get floor(k * x) together.
func spread(k uint64, x float64) int {
	return int(math.Floor(float64(k+1)*x) - math.Floor(float64(k)*x))
}
