// Package decay holds numbers that fade exponentially with time and that any
// number of goroutines update without a lock.
//
// # Law
//
// A Value is a pair (v, at): at time now it is worth v * e^(-(now-at)/tau).
// Whoever moves at forward by compare-and-swap owns the interval he moved it
// over, and he alone multiplies v by that interval's factor. Multiplications
// commute, so concurrent updates decay the value exactly once for every
// nanosecond, in whatever order they land. For one goroutine the arithmetic is
// that of the plain formula. Between the two steps a reader may see the new at
// with the old v: too large by at most the factor of one interval.
//
// A value is never NaN and keeps its sign: factors lie in [0, 1]. A clock that
// jumps back moves at back without decay; a clock that jumps forward decays to
// 0 at worst.
//
// Cost: one or two compare-and-swaps and one math.Exp an update.
package decay

import (
	"math"
	"sync/atomic"
	"time"
)

// never marks a Value whose clock has not started: the first update sets the
// time without decay.
const never = math.MinInt64

// Value is a decaying number. Use Init before sharing it; the zero Value is 0
// with its clock at time 0. It must not be copied.
type Value struct {
	v  atomic.Uint64 // bits of a float64
	at atomic.Int64  // nanoseconds
}

// Init sets the value to x; its clock starts with the first update.
func (d *Value) Init(x float64) {
	d.v.Store(math.Float64bits(x))
	d.at.Store(never)
}

// Raw returns the number as it stands, without decay since the last update.
func (d *Value) Raw() float64 { return math.Float64frombits(d.v.Load()) }

// At returns the time of the last update; ok is false before the first.
func (d *Value) At() (at time.Duration, ok bool) {
	t := d.at.Load()
	return time.Duration(t), t != never
}

// Read returns the decayed value at now and changes nothing, but for a clock
// that stands in the future: it is set back, so that a jump does not freeze
// the value.
func (d *Value) Read(now, tau time.Duration) float64 {
	v := d.Raw()
	if v == 0 {
		return 0
	}
	at := d.at.Load()
	if at == never {
		return v
	}
	if int64(now) < at {
		d.at.CompareAndSwap(at, int64(now))
		return v
	}
	return v * Factor(time.Duration(at), now, tau)
}

// Set makes the value x at now. Of two at once either may win.
func (d *Value) Set(now time.Duration, x float64) {
	d.at.Store(int64(now))
	d.v.Store(math.Float64bits(x))
}

// Touch decays the value to now and returns it.
func (d *Value) Touch(now, tau time.Duration) float64 {
	if k := d.claim(now, tau); k != 1 {
		return d.scale(k, 0)
	}
	return d.Raw()
}

// Add decays the value to now, adds x >= 0 and returns it.
func (d *Value) Add(now, tau time.Duration, x float64) float64 {
	return d.scale(d.claim(now, tau), x)
}

// Mean moves the value towards x >= 0 by 1 - e^(-dt/tau), dt the time since the
// last update: an average in which a sample weighs as long as it held.
func (d *Value) Mean(now, tau time.Duration, x float64) float64 {
	k := d.claim(now, tau)
	return d.scale(k, x*(1-k))
}

// Peak is Mean, but a sample above the value replaces it at once.
func (d *Value) Peak(now, tau time.Duration, x float64) float64 {
	k := d.claim(now, tau)
	for {
		old := d.v.Load()
		v := math.Float64frombits(old)
		if x > v {
			v = x
		} else {
			v = v*k + x*(1-k)
		}
		if d.v.CompareAndSwap(old, math.Float64bits(v)) {
			return v
		}
	}
}

// scale makes the value v * k + x and returns it.
func (d *Value) scale(k, x float64) float64 {
	for {
		old := d.v.Load()
		v := math.Float64frombits(old)*k + x
		if d.v.CompareAndSwap(old, math.Float64bits(v)) {
			return v
		}
	}
}

// claim moves the clock to now and returns the factor of the interval passed;
// 1 if it is empty, runs backwards, or belongs to somebody else.
func (d *Value) claim(now, tau time.Duration) float64 {
	at := d.at.Load()
	if int64(now) == at || !d.at.CompareAndSwap(at, int64(now)) || at == never {
		return 1
	}
	return Factor(time.Duration(at), now, tau)
}

// Factor returns e^(-(to-from)/tau), in [0, 1]; 1 if to is before from. A tau
// of 0 or less forgets at once.
func Factor(from, to, tau time.Duration) float64 {
	dt := Elapsed(from, to)
	if dt == 0 {
		return 1
	}
	if tau <= 0 {
		return 0
	}
	return exp(float64(dt) / float64(tau))
}

// exp returns e^-x for x >= 0. Intervals between updates are short against tau:
// there the series is exact to the last bit, and takes 2 ns where math.Exp takes
// 13 ns (BenchmarkFactor).
func exp(x float64) float64 {
	if x < 1./1024 {
		return 1 - x*(1-x*(1./2-x*(1./6-x*(1./24))))
	}
	return math.Exp(-x)
}

// Elapsed returns to - from without overflow: 0 if to is before from.
func Elapsed(from, to time.Duration) time.Duration {
	if to <= from {
		return 0
	}
	if dt := to - from; dt > 0 {
		return dt
	}
	return math.MaxInt64
}
