package limit

import (
	"math"
	"math/rand/v2"
	"time"
)

// Sample is what one window saw.
type Sample struct {
	Latency  time.Duration // mean of the successes; 0 when Count is 0
	Least    time.Duration // smallest of them
	Count    int           // successes
	InFlight int           // most in flight, in cost
	Dropped  bool          // a time-out, an overload or a lost admission
}

// Algorithm moves a limit. Update gets the limit so far and the window's sample
// and returns the new limit, which the Limiter cuts to [Min, Max]. It is called
// by one goroutine at a time; a value belongs to one Limiter.
type Algorithm interface {
	Update(limit float64, s Sample) float64
}

// used reports whether the limit was in use: a limit that nobody reaches says
// nothing and must not grow.
func used(limit float64, s Sample) bool { return 2*float64(s.InFlight) >= limit }

// AIMD adds 1 when a window was in use and nothing was dropped, and multiplies by
// Backoff when something was, or when the latency was above Timeout:
//
//	drop:  limit = min(limit - 1, Backoff * limit)
//	else:  limit = limit + 1, if 2 * inflight >= limit
//
// It needs drops to know the end: use it where the other side refuses when full.
type AIMD struct {
	// Backoff is in [0.5, 1); 0 or anything outside means 0.9.
	Backoff float64
	// Timeout is the latency that counts as a drop; 0 means 5 s.
	Timeout time.Duration
}

// Update is the rule of the type.
func (a *AIMD) Update(limit float64, s Sample) float64 {
	backoff, timeout := a.Backoff, a.Timeout
	if !(backoff >= 0.5 && backoff < 1) {
		backoff = 0.9
	}
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	switch {
	case s.Dropped || s.Latency > timeout:
		return min(limit-1, math.Floor(limit*backoff))
	case used(limit, s):
		return limit + 1
	}
	return limit
}

// Vegas estimates the queue from how much the latency is above the least one
// known and keeps it between alpha and beta:
//
//	queue = ceil(limit * (1 - noload/latency))
//	a = 3 * log10(limit), b = 6 * log10(limit), t = log10(limit)   (log10 at least 1)
//	drop:            limit -= t
//	not in use:      as it is
//	queue <= t:      limit += b
//	queue < a:       limit += t
//	queue > b:       limit -= t
//
// The least latency is taken afresh every Probe*limit windows or so (with chance
// between half of that and all of it), since a fleet's best latency changes.
// Source: L. Brakmo, S. O'Malley, L. Peterson, "TCP Vegas", SIGCOMM 1994, as in
// Netflix' VegasLimit.
type Vegas struct {
	// Probe times the limit is the windows between two fresh starts of the
	// least latency; 0 means 30.
	Probe int
	// Rand returns chance in [0, 1); nil means rand.Float64 of math/rand/v2.
	Rand func() float64

	noload time.Duration
	since  int
	jitter float64
}

// Update is the rule of the type.
func (v *Vegas) Update(limit float64, s Sample) float64 {
	t := math.Max(1, math.Floor(math.Log10(limit)))
	if s.Dropped {
		return limit - t
	}
	if s.Count == 0 || v.fresh(limit, s.Latency) {
		return limit
	}
	if !used(limit, s) {
		return limit
	}
	queue := math.Ceil(limit * (1 - float64(v.noload)/float64(s.Latency)))
	switch {
	case queue <= t:
		return limit + 6*t
	case queue < 3*t:
		return limit + t
	case queue > 6*t:
		return limit - t
	}
	return limit
}

// fresh takes the least latency and reports whether this window did nothing else.
func (v *Vegas) fresh(limit float64, latency time.Duration) bool {
	probe, random := v.Probe, v.Rand
	if probe <= 0 {
		probe = 30
	}
	if random == nil {
		random = rand.Float64
	}
	if v.jitter == 0 {
		v.jitter = 0.5 + random()/2
	}
	v.since++
	if float64(v.since) >= v.jitter*float64(probe)*limit {
		v.jitter, v.since, v.noload = 0, 0, latency
		return true
	}
	if v.noload == 0 || latency < v.noload {
		v.noload = latency
		return true
	}
	return false
}

// Gradient follows the ratio of the long-term latency to this window's, with room
// for a queue:
//
//	long     = moving average of the windows' latencies over about 600 of them
//	gradient = min(1, max(0.5, Tolerance * long/latency))
//	limit    = (1 - Smoothing) * limit + Smoothing * (gradient * limit + Queue)
//	drop:      gradient = 0.5
//
// While long is more than twice the latency it shrinks by 5 % a window, so that
// it forgets a long overload. Unlike Vegas it has no least latency that one
// lucky window can set for good. Source: Netflix' Gradient2Limit, which knows no
// drops; the drop rule is ours.
type Gradient struct {
	// Tolerance is how far above the long-term latency counts as none; at
	// least 1, 0 means 1.5.
	Tolerance float64
	// Queue is the growth a window while latencies are low; 0 means 4.
	Queue float64
	// Smoothing is the part of the new estimate that is taken, in (0, 1];
	// 0 means 0.2.
	Smoothing float64

	long    float64 // ns
	windows int
}

// longWindows and warmUp shape the moving average: a plain mean of the first ten.
const (
	longWindows = 600
	warmUp      = 10
)

// Update is the rule of the type.
func (g *Gradient) Update(limit float64, s Sample) float64 {
	gradient := 0.5
	if !s.Dropped {
		if s.Count == 0 {
			return limit
		}
		latency := float64(s.Latency)
		long := g.average(latency)
		if !used(limit, s) {
			return limit
		}
		gradient = min(1, max(0.5, or(g.Tolerance, 1.5)*long/latency))
	}
	smooth := min(1, or(g.Smoothing, 0.2))
	return limit*(1-smooth) + smooth*(gradient*limit+or(g.Queue, 4))
}

func (g *Gradient) average(latency float64) float64 {
	g.windows++
	if g.windows <= warmUp {
		g.long += (latency - g.long) / float64(g.windows)
	} else {
		g.long += (latency - g.long) * 2 / (longWindows + 1)
	}
	long := g.long
	if g.long > 2*latency {
		g.long *= 0.95
	}
	return long
}

// or is v, or the default when v is not positive.
func or(v, def float64) float64 {
	if v > 0 {
		return v
	}
	return def
}
