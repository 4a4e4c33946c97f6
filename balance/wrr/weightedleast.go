package wrr

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// WeightedLeastConfig configures WeightedLeast.
type WeightedLeastConfig struct {
	// Bias is how strongly requests in flight lower a weight; nil means 1, and 0
	// turns it into plain EDF.
	Bias *float64
	// Choices is the number of draws where all weights are equal; 0 means 2.
	Choices int
	// Errors lets recent errors count as requests in flight; the zero value is off.
	Errors balance.ErrorLoad
}

// WeightedLeast is Envoy's LEAST_REQUEST. Where weights differ it is EDF with the
// weight made anew at each pick,
//
//	w / (active + 1)^bias
//
// active being the requests in flight on the picked node before this one. Where
// all weights are equal it is balance.LeastRequest with replacement. O(log n).
//
// The schedule is shared state. A pick that finds somebody else moving it draws
// two nodes at random by weight and takes the one with the larger w / (active +
// 1)^bias instead of waiting. A node that hangs keeps a share of about w /
// (hanging requests), more than under P2C: the turns come round whatever the
// others do. Source: Envoy least_request_lb.cc 1.31.
type WeightedLeast struct {
	set      *balance.Set
	bias     float64
	weights  []float64 // of the live members
	schedule *schedule
	equal    *balance.LeastRequest // where all weights are equal
	cfg      WeightedLeastConfig
}

// schedule is the heap, moved by TryLock only.
type schedule struct {
	mu   sync.Mutex
	heap deadlines
	gaps []float64 // of each live member's current turn
	now  float64
}

// NewWeightedLeast returns a weighted least request picker over set. A bias that
// is negative or not finite is refused with ErrInvalid.
func NewWeightedLeast(set *balance.Set, cfg WeightedLeastConfig) (*WeightedLeast, error) {
	bias := 1.0
	if cfg.Bias != nil {
		bias = *cfg.Bias
	}
	if !(bias >= 0 && bias <= math.MaxFloat64) {
		return nil, balance.Invalidf("wrr: bias %v; give a finite number of 0 or more", bias)
	}
	load := &balance.InFlight{Errors: cfg.Errors}
	equal, err := balance.NewLeastRequest(set, balance.Choices{D: cfg.Choices, Replace: true, Cost: load})
	if err != nil {
		return nil, err
	}
	w := &WeightedLeast{bias: bias, weights: liveWeights(set), cfg: cfg}
	for k := range w.weights {
		w.weights[k] = max(w.weights[k], leastWeight)
	}
	w.set = set.Observed(load.Bind(set, nil))
	if set.Equal() && bias > 0 {
		w.equal = equal
	}
	w.schedule = w.newSchedule()
	return w, nil
}

// newSchedule starts everybody's turn at time 0.
func (w *WeightedLeast) newSchedule() *schedule {
	s := &schedule{heap: make(deadlines, len(w.weights)), gaps: make([]float64, len(w.weights))}
	for k := range s.heap {
		s.gaps[k] = 1 / w.weights[k]
		s.heap[k] = deadline{at: s.gaps[k], node: int32(k)}
	}
	s.heap.init()
	return s
}

// gap returns the length of member i's turn under its load: 1 over its weight.
func (w *WeightedLeast) gap(i int, now time.Duration) float64 {
	m := w.set.Member(i)
	load := w.cfg.Errors.Of(m.Node, now) + 1
	if w.bias != 1 {
		load = math.Pow(load, w.bias)
	}
	return min(load, mostLoad) / max(m.Weight, leastWeight)
}

// Pick returns the node with the earliest deadline.
func (w *WeightedLeast) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if w.equal != nil {
		return w.equal.Pick(now, seed, exclude)
	}
	if w.set.Live() == 0 {
		return balance.Ticket{}, balance.ErrNoNode
	}
	if w.schedule.mu.TryLock() {
		k := w.advance(now, exclude)
		w.schedule.mu.Unlock()
		if k >= 0 {
			return w.set.Take(w.set.LiveIndex(k), now), nil
		}
	}
	return w.draw(now, seed, exclude)
}

// advance takes turns until somebody is not excluded, at most maxTurns; -1 if
// all are. The caller holds the schedule.
func (w *WeightedLeast) advance(now time.Duration, exclude []*balance.Node) int {
	s := w.schedule
	for range maxTurns {
		top := &s.heap[0]
		k := int(top.node)
		s.now = top.at
		s.gaps[k] = w.gap(w.set.LiveIndex(k), now)
		top.at += s.gaps[k]
		s.heap.down(0)
		if len(exclude) == 0 || !slices.Contains(exclude, w.set.Node(w.set.LiveIndex(k))) {
			return k
		}
	}
	return -1
}

// draw takes the better one of two draws by weight.
func (w *WeightedLeast) draw(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	dice := splitmix.Source(seed)
	i, err := w.set.Draw(&dice, exclude)
	if err != nil {
		return balance.Ticket{}, err
	}
	if j, err := w.set.Draw(&dice, exclude); err == nil && w.gap(j, now) < w.gap(i, now) {
		i = j
	}
	return w.set.Take(i, now), nil
}

// Next returns a weighted least request picker over set. Nodes that stay keep
// the part of their turn that has passed.
func (w *WeightedLeast) Next(set *balance.Set) (balance.Picker, error) {
	n, err := NewWeightedLeast(set, w.cfg)
	if err != nil {
		return nil, err
	}
	w.schedule.mu.Lock()
	defer w.schedule.mu.Unlock()
	left := make([]float64, len(w.weights)) // of a turn, 0..1
	for _, d := range w.schedule.heap {
		left[d.node] = min(1, max(0, (d.at-w.schedule.now)/w.schedule.gaps[d.node]))
	}
	from := liveFrom(set, w.set)
	for i := range n.schedule.heap {
		d := &n.schedule.heap[i]
		if j := from[d.node]; j >= 0 {
			d.at = left[j] * w.schedule.gaps[j] * w.weights[j] / n.weights[d.node]
			n.schedule.gaps[d.node] = w.schedule.gaps[j] * w.weights[j] / n.weights[d.node]
		}
	}
	n.schedule.heap.init()
	return n, nil
}

// Set returns the set the picker was made of.
func (w *WeightedLeast) Set() *balance.Set { return w.set }
