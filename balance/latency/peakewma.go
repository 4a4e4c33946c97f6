package latency

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
)

// PeakConfig configures PeakEWMA; the zero value is Finagle's, with its cold
// start.
type PeakConfig struct {
	// Decay is the time in which a peak fades by e; 0 means 10 s, as in Finagle
	// and linkerd2-proxy.
	Decay time.Duration
	// Default is the latency assumed of a node that has not answered yet
	// (linkerd2-proxy: 30 ms). 0 is Finagle's cold start: an unknown node costs
	// next to nothing while it is idle and nearly everything while it is busy, so
	// that it gets one probe and no flood.
	Default time.Duration
	// ErrorCap, if above 0, charges a bad outcome the largest of its latency, its
	// time-out and twice the estimate, but at most this much (brpc: 30 s). 0
	// charges what it took, as tower and Finagle do: a node that fails fast looks
	// fast.
	ErrorCap time.Duration
	// ByWeight divides the cost by the weight, as brpc's p2c does, besides the
	// draws by weight.
	ByWeight bool
	// Errors lets recent errors count as requests in flight; the zero value is off.
	Errors balance.ErrorLoad
}

// PeakEWMA is the cost
//
//	latency * (requests in flight + 1)
//
// with a latency that follows peaks at once and forgets them with time: an
// observation r above the estimate replaces it; one below moves it to
// estimate * k + r * (1 - k), k = e^(-dt/Decay), dt the time since the last
// observation or comparison. A comparison counts as an observation of 0.
//
// An outcome that is Ignored moves the estimate only if it already took longer.
// An estimate that has faded below 1 ns is unknown again. Source: tower
// load/peak_ewma.rs 0.4.13 (values agree to 1e-9), Finagle PeakEwma.scala, brpc
// p2c_ewma.
//
// It reacts to a slow node within one answer and returns to it only as its peak
// fades: a node that never answers gets a share of about Decay's choosing. The
// comparison's observation of 0 makes estimates sink below the truth between
// peaks; do not read them as averages.
type PeakEWMA struct {
	cfg   PeakConfig
	set   *balance.Set
	state []*rtt
}

// rtt is a node's estimate in nanoseconds, on a line of its own.
type rtt struct {
	decay.Value
	_ [64 - 16]byte
}

// unknownBusy is the latency of an unknown node that is being probed, in
// nanoseconds: Finagle's penalty, some 39 hours.
const unknownBusy = math.MaxInt64 >> 16

// NewPeakEWMA returns the cost; give it to balance.NewP2C. Negative times are
// refused with balance.ErrInvalid.
func NewPeakEWMA(cfg PeakConfig) (*PeakEWMA, error) {
	if cfg.Decay < 0 || cfg.Default < 0 || cfg.ErrorCap < 0 || !(cfg.Errors.Each >= 0) || cfg.Errors.Decay < 0 {
		return nil, balance.Invalidf("latency: PeakConfig%+v has a negative setting; use 0 for off or the default", cfg)
	}
	if cfg.Decay == 0 {
		cfg.Decay = 10 * time.Second
	}
	return &PeakEWMA{cfg: cfg}, nil
}

// Bind returns the cost for set; nodes that stay keep their estimates.
func (p *PeakEWMA) Bind(set *balance.Set, from []int) balance.Cost {
	n := &PeakEWMA{cfg: p.cfg, set: set, state: make([]*rtt, set.Len())}
	for i := range n.state {
		if from != nil && from[i] >= 0 {
			n.state[i] = p.state[from[i]]
			continue
		}
		n.state[i] = new(rtt)
		n.state[i].Init(float64(p.cfg.Default))
	}
	return n
}

// Cost returns estimate * (in flight + 1) in nanoseconds.
func (p *PeakEWMA) Cost(i int, now time.Duration) float64 {
	pending := p.cfg.Errors.Of(p.set.Node(i), now)
	estimate := p.state[i].Touch(now, p.cfg.Decay)
	if estimate < 1 {
		estimate = 1
		if pending > 0 {
			estimate = unknownBusy
		}
	}
	cost := estimate * (pending + 1)
	if p.cfg.ByWeight {
		cost /= p.set.Member(i).Weight
	}
	return cost
}

// Observe takes the latency of a request.
func (p *PeakEWMA) Observe(i int, start, now time.Duration, o balance.Outcome) {
	p.cfg.Errors.Note(p.set.Node(i), now, o)
	took := float64(decay.Elapsed(start, now))
	state := p.state[i]
	switch {
	case o.Result == balance.Ignored && took <= state.Raw():
		return
	case o.Result.Bad() && p.cfg.ErrorCap > 0:
		took = min(max(took, float64(o.Timeout), 2*state.Raw()), float64(p.cfg.ErrorCap))
	}
	state.Peak(now, p.cfg.Decay, took)
}

// Estimate returns the latency estimate of candidate i as it stands, 0 if
// nothing is known.
func (p *PeakEWMA) Estimate(i int) time.Duration { return time.Duration(p.state[i].Raw()) }
