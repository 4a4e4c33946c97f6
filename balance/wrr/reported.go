package wrr

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
)

// ReportedConfig configures Reported; the zero value has gRPC's defaults.
type ReportedConfig struct {
	// Blackout is how long after its first report a node's weight is not yet
	// used, so that a node that warms up is not judged by it; 0 means 10 s, below
	// 0 none.
	Blackout time.Duration
	// Expiration is the age at which a report is no longer used; 0 means 3 min.
	Expiration time.Duration
	// Update is how often weights are made; 0 means 1 s, and less than 100 ms
	// means 100 ms.
	Update time.Duration
	// ErrorPenalty multiplies the error ratio that is added to the utilisation; 0
	// means 1, below 0 none.
	ErrorPenalty float64
}

func (c *ReportedConfig) fill() {
	c.Blackout = orDefault(c.Blackout, 10*time.Second)
	c.Expiration = orDefault(c.Expiration, 3*time.Minute)
	c.Update = max(orDefault(c.Update, time.Second), 100*time.Millisecond)
	c.ErrorPenalty = max(0, orDefault(c.ErrorPenalty, 1))
}

func orDefault[T int64 | float64 | time.Duration](x, def T) T {
	if x == 0 {
		return def
	}
	return x
}

// Load is what a server reports of itself, as in ORCA (gRPC A51).
type Load struct {
	QPS         float64 // requests per second
	EPS         float64 // errors per second
	Utilization float64 // of the application, else of the processor; 1 is full
}

// Reported is gRPC's weighted_round_robin: static stride with weights made from
// what servers report of themselves,
//
//	qps / (utilisation + eps / qps * penalty)
//
// A report without qps or utilisation is ignored. A node without a usable weight
// (no report yet, in its blackout, expired) gets the mean of the others; with
// fewer than two usable weights all nodes get the same. O(largest / mean
// weight); every Update the pick that finds the weights old makes new ones, O(n).
// The set's weights other than 0 do not matter.
//
// It does not herd: weights are rates, and all clients may have the same. A node
// that hangs keeps its last weight until Expiration, and its mean share after.
// Source: gRPC A58 and grpc-go balancer/weightedroundrobin.
type Reported struct {
	set     *balance.Set
	cfg     ReportedConfig
	reports []*report // of the members
	due     atomic.Int64
	plan    atomic.Pointer[stride]
}

// report is what is known of a node; it outlives pickers. Both sides take it by
// TryLock: of two reports at once one is dropped, and weights that cannot be
// read keep their last value.
type report struct {
	mu       sync.Mutex
	weight   float64
	updated  time.Duration
	since    time.Duration // of the first report after none
	known    bool          // weight and updated hold
	nonEmpty bool          // since holds
	last     atomic.Uint64 // bits of the weight that was read last
}

// NewReported returns a picker over set with weights from reports, starting at
// turn start; use a random number unless the order matters.
func NewReported(set *balance.Set, cfg ReportedConfig, start uint32) *Reported {
	cfg.fill()
	r := newReported(set, cfg)
	for i := range r.reports {
		r.reports[i] = new(report)
	}
	plan := newStride(equalWeights(set.Live()), start)
	r.plan.Store(&plan)
	return r
}

func newReported(set *balance.Set, cfg ReportedConfig) *Reported {
	r := &Reported{set: set.Observed(nil), cfg: cfg, reports: make([]*report, set.Len())}
	r.due.Store(unknown)
	return r
}

func equalWeights(n int) []float64 {
	w := make([]float64, n)
	for k := range w {
		w[k] = 1
	}
	return w
}

// Report takes what member i reported at now. It does not wait.
func (r *Reported) Report(i int, now time.Duration, l Load) {
	if !(l.QPS > 0 && l.Utilization > 0 && l.EPS >= 0) {
		return
	}
	w := l.QPS / (l.Utilization + l.EPS/l.QPS*r.cfg.ErrorPenalty)
	p := r.reports[i]
	if !(w > 0 && w <= balance.MaxWeight) || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	p.weight, p.updated, p.known = w, now, true
	if !p.nonEmpty {
		p.since, p.nonEmpty = now, true
	}
}

// usable returns the weight that counts at now, 0 if there is none.
func (p *report) usable(now time.Duration, cfg *ReportedConfig) float64 {
	if !p.mu.TryLock() {
		return math.Float64frombits(p.last.Load())
	}
	defer p.mu.Unlock()
	w := 0.0
	switch {
	case !p.known:
	case decay.Elapsed(p.updated, now) >= cfg.Expiration:
		p.nonEmpty = false
	case cfg.Blackout > 0 && (!p.nonEmpty || decay.Elapsed(p.since, now) < cfg.Blackout):
	default:
		w = p.weight
	}
	p.last.Store(math.Float64bits(w))
	return w
}

// Weights returns what the live members would be given at now, in the order of
// the set: usable weights, and the mean for the others.
func (r *Reported) Weights(now time.Duration) []float64 {
	weights := make([]float64, r.set.Live())
	sum, used := 0.0, 0
	for k := range weights {
		if weights[k] = r.reports[r.set.LiveIndex(k)].usable(now, &r.cfg); weights[k] > 0 {
			sum += weights[k]
			used++
		}
	}
	if used < 2 {
		return equalWeights(len(weights))
	}
	for k, w := range weights {
		if w == 0 {
			weights[k] = sum / float64(used)
		}
	}
	return weights
}

// refresh makes a new plan if it is time; one pick does it, the others go on
// with the old one. A clock that went back makes it time, too.
func (r *Reported) refresh(now time.Duration) {
	due := r.due.Load()
	if int64(now) < due && decay.Elapsed(now, time.Duration(due)) <= r.cfg.Update {
		return
	}
	if !r.due.CompareAndSwap(due, int64(now+r.cfg.Update)) {
		return
	}
	plan := r.plan.Load().carry(r.Weights(now), samePlaces(r.set.Live()))
	r.plan.Store(&plan)
}

func samePlaces(n int) []int {
	from := make([]int, n)
	for k := range from {
		from[k] = k
	}
	return from
}

func (r *Reported) index() int { return r.set.LiveIndex(r.plan.Load().next()) }

// Pick returns the node whose turn it is.
func (r *Reported) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if r.set.Live() == 0 {
		return balance.Ticket{}, balance.ErrNoNode
	}
	r.refresh(now)
	if len(exclude) == 0 {
		return r.set.Take(r.index(), now), nil
	}
	return turns(r.set, r.index, now, seed, exclude)
}

// Next returns a picker over set that keeps the reports of the nodes that stay,
// and their place in the turns; it cannot fail.
func (r *Reported) Next(set *balance.Set) (balance.Picker, error) {
	n := newReported(set, r.cfg)
	for i, j := range set.From(r.set) {
		if j >= 0 {
			n.reports[i] = r.reports[j]
		} else {
			n.reports[i] = new(report)
		}
	}
	plan := r.plan.Load().carry(equalWeights(set.Live()), liveFrom(set, r.set))
	n.plan.Store(&plan)
	return n, nil
}

// Set returns the set the picker was made of.
func (r *Reported) Set() *balance.Set { return r.set }
