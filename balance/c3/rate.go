package c3

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
)

// Rate configures rate control; the zero value has the authors' settings.
type Rate struct {
	// Interval is the unit of rates; 0 means 20 ms.
	Interval time.Duration
	// Initial is the rate of a new node in requests per Interval, and the burst
	// that a limit allows; 0 means 10.
	Initial float64
	// Beta is the factor of a cut, and the depth of the curve's inflection; 0
	// means 0.2.
	Beta float64
	// Scale is the C of the cubic curve, in requests per Interval and cubed
	// millisecond; 0 means 4e-6.
	Scale float64
	// MaxStep bounds one increase, in requests per Interval; 0 means 10.
	MaxStep float64
	// Hysteresis is the number of Intervals after an increase in which there is no
	// cut; 0 means 2.
	Hysteresis float64
	// ReceiveAlpha is the weight of the newest Interval in the average of the
	// receive rate, 0 to 1; 0 means 0.1 (absim).
	ReceiveAlpha float64
}

// rate is Rate with its defaults filled in.
type rate struct{ Rate }

// leastRate is what cuts stop at, in requests per Interval.
const leastRate = 0.01

func (r Rate) fill() (rate, error) {
	for _, x := range []struct {
		v   *float64
		def float64
	}{{&r.Initial, 10}, {&r.Beta, 0.2}, {&r.Scale, 4e-6}, {&r.MaxStep, 10}, {&r.Hysteresis, 2}, {&r.ReceiveAlpha, 0.1}} {
		if *x.v == 0 {
			*x.v = x.def
		}
		if !(*x.v > 0 && *x.v < 1e9) {
			return rate{}, balance.Invalidf("c3: Rate%+v: settings must be positive and below 1e9; use 0 for the default", r)
		}
	}
	if r.Interval == 0 {
		r.Interval = 20 * time.Millisecond
	}
	if r.Interval < 0 || r.Beta >= 1 || r.ReceiveAlpha > 1 {
		return rate{}, balance.Invalidf("c3: Rate%+v: Interval must be positive, Beta below 1, ReceiveAlpha at most 1", r)
	}
	return rate{r}, nil
}

// limiter is the rate limit of one node: a token bucket in the form of the time
// at which it would be empty (generic cell rate algorithm), moved by
// compare-and-swap, and the control of its rate, moved by who holds mu.
type limiter struct {
	sending atomic.Uint64 // bits of the rate, requests per Interval
	paid    atomic.Int64  // time at which all that was sent is paid for

	mu       sync.Mutex
	received float64       // average rate of answers, per Interval
	count    float64       // answers in the current Interval
	began    time.Duration // of the current Interval
	running  bool          // began holds
	peak     float64       // rate before the last cut
	cut      time.Duration // time of the last cut
	raised   time.Duration // time of the last increase
	wasCut   bool
	wasRaise bool
}

func (l *limiter) init(r rate) {
	l.sending.Store(math.Float64bits(max(leastRate, r.Initial)))
	l.paid.Store(math.MinInt64)
	l.peak = r.Initial
}

func (l *limiter) rate() float64 { return math.Float64frombits(l.sending.Load()) }

// gap returns the time a request takes at the current rate.
func (l *limiter) gap(r rate) float64 { return float64(r.Interval) / l.rate() }

// debt returns how far the bucket is from full, in time, and the times that one
// token and all of them stand for. A clock that went back leaves it empty.
func (l *limiter) debt(now time.Duration, paid int64, r rate) (debt, gap, room float64) {
	gap = l.gap(r)
	room = gap * r.Initial
	return min(room, float64(decay.Elapsed(now, time.Duration(paid)))), gap, room
}

// admit takes a token, if there is one. The bucket holds Initial of them.
func (l *limiter) admit(now time.Duration, r rate) bool {
	for {
		paid := l.paid.Load()
		debt, gap, room := l.debt(now, paid, r)
		if debt+gap > room+0.5 { // half a nanosecond for rounding
			if full := int64(now) + int64(room); paid > full && full > int64(now) {
				l.paid.CompareAndSwap(paid, full) // the clock went back
			}
			return false
		}
		next := int64(now) + int64(debt+gap)
		if next < int64(now) { // past the end of time
			next = math.MaxInt64
		}
		if l.paid.CompareAndSwap(paid, next) {
			return true
		}
	}
}

// wait returns how long it takes until admit can succeed.
func (l *limiter) wait(now time.Duration, r rate) time.Duration {
	debt, gap, room := l.debt(now, l.paid.Load(), r)
	return time.Duration(math.Ceil(max(0, debt+gap-room)))
}

// answered counts an answer and moves the rate. Of two answers at the same
// moment one is counted only.
func (l *limiter) answered(now time.Duration, r rate) {
	if !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	l.roll(now, r)
	l.count++
	l.control(now, r)
}

// roll closes the Intervals that have passed.
func (l *limiter) roll(now time.Duration, r rate) {
	if !l.running || now < l.began {
		l.began, l.running, l.count = now, true, 0
		return
	}
	passed := int64(decay.Elapsed(l.began, now) / r.Interval)
	if passed == 0 {
		return
	}
	l.received = r.ReceiveAlpha*l.count + (1-r.ReceiveAlpha)*l.received
	l.received *= math.Pow(1-r.ReceiveAlpha, float64(passed-1)) // without answers
	l.count = 0
	l.began += time.Duration(passed) * r.Interval
}

// control raises the rate along the curve while answers keep up with it, and
// cuts it when they do not.
func (l *limiter) control(now time.Duration, r rate) {
	sending := l.rate()
	switch {
	case sending < l.received:
		next := sending + min(r.MaxStep, l.curve(now, r)-sending)
		l.raised, l.wasRaise = now, true
		l.sending.Store(math.Float64bits(max(leastRate, next)))
	case l.received == 0:
	case sending > l.received && l.settled(now, r):
		l.peak, l.cut, l.wasCut = sending, now, true
		l.sending.Store(math.Float64bits(max(leastRate, sending*r.Beta)))
	}
}

// settled tells whether the last increase is long enough ago to be judged.
func (l *limiter) settled(now time.Duration, r rate) bool {
	return !l.wasRaise || now < l.raised || float64(now-l.raised) > r.Hysteresis*float64(r.Interval)
}

// curve is C * (dT - cbrt(peak * beta / C))^3 + peak, dT in milliseconds since
// the last cut: quickly up to the rate of the last cut, flat around it, and
// quickly on.
func (l *limiter) curve(now time.Duration, r rate) float64 {
	var cut time.Duration // before the first cut, absim counts from time 0
	if l.wasCut {
		cut = l.cut
	}
	dt := float64(decay.Elapsed(cut, now)) / 1e6
	x := min(dt, 1e5) - math.Cbrt(l.peak*r.Beta/r.Scale)
	return r.Scale*x*x*x + l.peak
}
