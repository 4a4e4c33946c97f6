// Package slowstart gives a new node its weight little by little.
//
//	factor(t) = max(Min, (t/Window)^(1/Aggression)),  1 from t = Window on
//
// t is the time the node has been ramping. The weight to balance with is the
// node's own weight times the factor: Aggression 1 is a line, above 1 the node
// gets more early, below 1 more late.
//
// Law: the factor is in [Min, 1] and never falls during a ramp, whatever the
// clock does; it is exactly 1 after it, so that the node has its own weight back
// and no other. A ramp belongs to one node: starting one touches no other. A
// weight above 0 never becomes 0, and a weight of 0 stays 0.
//
// The clock: one Tick moves t by at most MaxStep, so that a jump forward (a
// machine that slept) does not end the warm-up at once; a jump back moves it by
// nothing. Tick at least every MaxStep, else the ramp takes longer. A now that is
// behind by up to MaxStep is one read a little earlier, not a jump.
//
// Cost: Factor is one atomic load, 1 ns. Tick is one power, 20 ns. No lock, no
// allocation.
//
// Source: Envoy's slow start (applySlowStartFactor), with its defaults for Min
// and Aggression. There it is only for round robin and least request, and starts
// at max(1 ms, t).
//
// When not to use it: for placement by hash, where the weight decides which keys
// a node owns and every step would move some (ramp the keys that move instead);
// and with schedulers that keep an old deadline when a weight changes: at Min a
// node's next turn may lie after the end of the ramp (envoyproxy/envoy#19526).
// Rescale what is left of the turn by old weight over new.
package slowstart

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("slowstart: bad config")

// Defaults of Config.
const (
	DefaultWindow     = 60 * time.Second
	DefaultMin        = 0.1
	DefaultAggression = 1
	// Steps is the number of MaxSteps in a Window by default.
	Steps = 60
)

// Config is the shape of the ramp.
type Config struct {
	// Window is how long a node ramps; 0 means DefaultWindow (60 s).
	Window time.Duration
	// Min is the factor at first, in (0, 1]; 0 means DefaultMin (0.1).
	Min float64
	// Aggression bends the ramp, more than 0; 0 means DefaultAggression (1).
	Aggression float64
	// MaxStep is the most that one Tick moves a ramp; 0 means Window/60.
	MaxStep time.Duration
}

// Policy is a checked Config. It may be used by any number of goroutines.
type Policy struct {
	c Config
}

// New checks c and fills its defaults. The error wraps ErrConfig.
func New(c Config) (*Policy, error) {
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Min == 0 {
		c.Min = DefaultMin
	}
	if c.Aggression == 0 {
		c.Aggression = DefaultAggression
	}
	if c.MaxStep == 0 {
		c.MaxStep = max(1, c.Window/Steps)
	}
	switch {
	case c.Window < 0 || c.MaxStep < 0:
		return nil, fmt.Errorf("%w: window %v, max step %v: want 0 or more", ErrConfig, c.Window, c.MaxStep)
	case !(c.Min > 0 && c.Min <= 1):
		return nil, fmt.Errorf("%w: min %v: want more than 0, at most 1", ErrConfig, c.Min)
	case !(c.Aggression > 0) || math.IsInf(c.Aggression, 0):
		return nil, fmt.Errorf("%w: aggression %v: want more than 0", ErrConfig, c.Aggression)
	}
	return &Policy{c}, nil
}

// Factor is the formula of the package comment for a node that has been ramping
// for t.
func (p *Policy) Factor(t time.Duration) float64 {
	if t >= p.c.Window {
		return 1
	}
	return max(p.c.Min, math.Pow(max(0, t.Seconds())/p.c.Window.Seconds(), 1/p.c.Aggression))
}

// Ramp is one node's ramp. Keep it in the node's own record, which outlives
// snapshots; it must not be copied. Its methods may be called by any number of
// goroutines.
type Ramp struct {
	p      *Policy
	last   atomic.Int64  // now of the last Tick
	age    atomic.Int64  // t, as far as it has been counted
	factor atomic.Uint64 // float64 bits
}

// Start returns a ramp that begins at now.
func (p *Policy) Start(now time.Duration) *Ramp {
	r := &Ramp{p: p}
	r.Restart(now)
	return r
}

// Full returns a ramp that is over, for a node that was there before.
func (p *Policy) Full() *Ramp {
	r := &Ramp{p: p}
	r.Finish()
	return r
}

// Restart begins the ramp again at now, as for a node that left and came back
// cold. One that was away for a moment need not be restarted.
func (r *Ramp) Restart(now time.Duration) {
	r.age.Store(0)
	r.last.Store(int64(now))
	r.factor.Store(math.Float64bits(r.p.Factor(0)))
}

// Finish gives the node its whole weight now.
func (r *Ramp) Finish() {
	r.age.Store(int64(r.p.c.Window))
	r.factor.Store(math.Float64bits(1))
}

// Tick moves the ramp to now and returns the factor. Calls from several
// goroutines count each stretch of time once.
func (r *Ramp) Tick(now time.Duration) float64 {
	age := r.age.Load()
	if age >= int64(r.p.c.Window) {
		return r.Factor()
	}
	last := r.last.Load()
	step := now - time.Duration(last)
	if step <= 0 && step >= -r.p.c.MaxStep { // the same clock, read a little earlier
		return r.Factor()
	}
	if !r.last.CompareAndSwap(last, int64(now)) {
		return r.Factor()
	}
	age = r.age.Add(int64(max(0, min(step, r.p.c.MaxStep))))
	r.raise(r.p.Factor(time.Duration(age)))
	return r.Factor()
}

// raise sets the factor unless it is higher already.
func (r *Ramp) raise(f float64) {
	for {
		old := r.factor.Load()
		if math.Float64frombits(old) >= f || r.factor.CompareAndSwap(old, math.Float64bits(f)) {
			return
		}
	}
}

// Factor returns the factor as of the last Tick, in [Min, 1].
func (r *Ramp) Factor() float64 { return math.Float64frombits(r.factor.Load()) }

// Done reports whether the ramp is over.
func (r *Ramp) Done() bool { return r.age.Load() >= int64(r.p.c.Window) }

// Weight returns weight * scale * factor, rounded, for schedulers with integer
// weights: give all nodes the same scale, 100 or more, so that a small factor
// is not lost. At least 1, at most the largest uint32; 0 if weight is 0.
func (r *Ramp) Weight(weight, scale uint32) uint32 {
	if weight == 0 || scale == 0 {
		return 0
	}
	w := math.Round(float64(weight) * float64(scale) * r.Factor())
	return uint32(min(math.MaxUint32, max(1, w)))
}
