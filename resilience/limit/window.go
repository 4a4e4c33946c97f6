package limit

import (
	"math"
	"sync/atomic"
	"time"
)

// samples is what a window has seen so far, in atomics: no Done waits for another.
type samples struct {
	since    atomic.Int64 // when the window began; 0 before the first
	count    atomic.Int64
	sum      atomic.Int64 // ns
	least    atomic.Int64 // ns
	most     atomic.Int64 // in flight
	dropped  atomic.Bool
	stepping atomic.Bool // one goroutine runs the algorithm
}

func (s *samples) reset() {
	s.count.Store(0)
	s.sum.Store(0)
	s.least.Store(math.MaxInt64)
	s.most.Store(0)
	s.dropped.Store(false)
}

// see notes how much was in flight; most calls are one load.
func (s *samples) see(inflight int64) {
	for m := s.most.Load(); inflight > m; m = s.most.Load() {
		if s.most.CompareAndSwap(m, inflight) {
			return
		}
	}
}

// add takes one latency; at least 1 ns, whatever the clock does.
func (s *samples) add(latency time.Duration) {
	d := max(1, int64(latency))
	s.sum.Add(d)
	s.count.Add(1)
	for l := s.least.Load(); d < l; l = s.least.Load() {
		if s.least.CompareAndSwap(l, d) {
			return
		}
	}
}

// step ends the window if it is over and moves the limit.
func (l *Limiter) step(now time.Duration) {
	s := &l.samples
	since := s.since.Load()
	if since == 0 { // the first window begins with the first outcome
		s.since.CompareAndSwap(0, max(1, int64(now)))
		return
	}
	elapsed := now - time.Duration(since)
	if -l.c.Window < elapsed && elapsed < l.c.Window {
		return
	}
	if !s.dropped.Load() && s.count.Load() < int64(l.c.MinSamples) {
		return
	}
	// Who gets stepping runs the algorithm; the others go on. A latency that
	// comes in between the reading and the reset is lost, which is one of many.
	if !s.stepping.CompareAndSwap(false, true) {
		return
	}
	defer s.stepping.Store(false)
	if s.since.Load() != since {
		return
	}
	sample := s.sample()
	s.reset()
	s.see(l.inflight.Load())
	s.since.Store(int64(now))
	l.set(l.c.Algorithm.Update(l.exact, sample))
}

func (s *samples) sample() Sample {
	n := s.count.Load()
	out := Sample{Count: int(n), InFlight: int(s.most.Load()), Dropped: s.dropped.Load()}
	if n > 0 {
		out.Latency = time.Duration(s.sum.Load() / n)
		out.Least = time.Duration(s.least.Load())
	}
	return out
}

// set takes the algorithm's word within the bounds; what is no number changes nothing.
func (l *Limiter) set(limit float64) {
	if math.IsNaN(limit) {
		return
	}
	l.exact = min(float64(l.c.Max), max(float64(l.c.Min), limit))
	l.limit.Store(int64(l.exact))
}
