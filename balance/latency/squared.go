package latency

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
)

// SquaredConfig configures SquaredEWMA.
type SquaredConfig struct {
	// Alpha is the weight of each new sample, above 0 to 1; 0 means 0.3.
	Alpha float64
	// Default is the latency assumed before the first answer while the node is
	// busy; 0 means 30 ms. While it is idle it is sent a request next.
	Default time.Duration
	// Errors lets recent errors count as requests in flight; the zero value is off.
	Errors balance.ErrorLoad
}

// SquaredEWMA is the cost
//
//	average * (requests in flight + 1)^2
//
// with average = alpha * sample + (1 - alpha) * average per answer. Articles show
// it under the name P2C with EWMA; no system is known to run it.
//
// The average moves per answer and not with time: a node that gets no requests
// keeps its last value for ever, a fast one forgets within milliseconds. The
// articles start it at 0, which makes every new node win all comparisons until
// its first answer; here it gets one request until then. Prefer PeakEWMA.
type SquaredEWMA struct {
	cfg   SquaredConfig
	set   *balance.Set
	state []*average
}

type average struct {
	ns atomic.Uint64 // bits of a float64
	_  [64 - 8]byte
}

// NewSquaredEWMA returns the cost; give it to balance.NewP2C. Settings out of
// range are refused with balance.ErrInvalid.
func NewSquaredEWMA(cfg SquaredConfig) (*SquaredEWMA, error) {
	if cfg.Alpha == 0 {
		cfg.Alpha = 0.3
	}
	if cfg.Default == 0 {
		cfg.Default = 30 * time.Millisecond
	}
	if !(cfg.Alpha > 0 && cfg.Alpha <= 1) || cfg.Default < 0 || !(cfg.Errors.Each >= 0) || cfg.Errors.Decay < 0 {
		return nil, balance.Invalidf("latency: SquaredConfig%+v: alpha must be in (0, 1] and nothing negative", cfg)
	}
	return &SquaredEWMA{cfg: cfg}, nil
}

// Bind returns the cost for set; nodes that stay keep their averages.
func (s *SquaredEWMA) Bind(set *balance.Set, from []int) balance.Cost {
	n := &SquaredEWMA{cfg: s.cfg, set: set, state: make([]*average, set.Len())}
	for i := range n.state {
		if from != nil && from[i] >= 0 {
			n.state[i] = s.state[from[i]]
			continue
		}
		n.state[i] = new(average)
	}
	return n
}

// Cost returns average * (in flight + 1)^2 in nanoseconds.
func (s *SquaredEWMA) Cost(i int, now time.Duration) float64 {
	load := s.cfg.Errors.Of(s.set.Node(i), now) + 1
	mean := math.Float64frombits(s.state[i].ns.Load())
	if mean == 0 {
		if load == 1 {
			return 1
		}
		mean = float64(s.cfg.Default)
	}
	return mean * load * load
}

// Observe takes the latency of a request; Ignored ones are passed over.
func (s *SquaredEWMA) Observe(i int, start, now time.Duration, o balance.Outcome) {
	s.cfg.Errors.Note(s.set.Node(i), now, o)
	if o.Result == balance.Ignored {
		return
	}
	sample := max(1, float64(decay.Elapsed(start, now))) // a cost of 0 would win everything
	for {
		old := s.state[i].ns.Load()
		next := sample
		if old != 0 {
			next = s.cfg.Alpha*sample + (1-s.cfg.Alpha)*math.Float64frombits(old)
		}
		if s.state[i].ns.CompareAndSwap(old, math.Float64bits(next)) {
			return
		}
	}
}
