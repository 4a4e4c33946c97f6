package latency

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
)

// QueueConfig configures ServerQueue.
type QueueConfig struct {
	// Decay is the time in which a report fades by e towards the mean of all
	// reports; 0 means 1 s. A few service times are right: a report says little
	// about a queue that has turned over since.
	Decay time.Duration
	// Errors lets recent errors count as requests in flight; the zero value is off.
	Errors balance.ErrorLoad
}

// ServerQueue is the cost
//
//	load of others (faded towards the mean) + own requests in flight
//
// by weight. Servers put the number of requests they hold into their replies
// (Outcome.Queue); less the client's own ones that is the load of all others. The
// own ones, which are known exactly, bridge the time between replies: without
// them every client would send to the node that reported 0 last.
//
// It helps clients that talk to a node several times within Decay. With 100
// clients and 100 nodes, each hears of a node too seldom, and this comes down to
// own requests in flight: use subset or prequal there.
type ServerQueue struct {
	cfg   QueueConfig
	set   *balance.Set
	mean  *decay.Value
	state []*rtt // distance from the mean at the last report
}

// NewServerQueue returns the cost; give it to balance.NewP2C. Negative times
// are refused with balance.ErrInvalid.
func NewServerQueue(cfg QueueConfig) (*ServerQueue, error) {
	if cfg.Decay < 0 || !(cfg.Errors.Each >= 0) || cfg.Errors.Decay < 0 {
		return nil, balance.Invalidf("latency: QueueConfig%+v has a negative setting; use 0 for the default", cfg)
	}
	if cfg.Decay == 0 {
		cfg.Decay = time.Second
	}
	return &ServerQueue{cfg: cfg, mean: new(decay.Value)}, nil
}

// Bind returns the cost for set; nodes that stay keep their reports, new ones
// start at the mean.
func (q *ServerQueue) Bind(set *balance.Set, from []int) balance.Cost {
	n := &ServerQueue{cfg: q.cfg, set: set, mean: q.mean, state: make([]*rtt, set.Len())}
	for i := range n.state {
		if from != nil && from[i] >= 0 {
			n.state[i] = q.state[from[i]]
		} else {
			n.state[i] = new(rtt)
		}
	}
	if from == nil {
		n.mean = new(decay.Value)
	}
	return n
}

// Cost returns the estimated queue by weight, +Inf for weight 0.
func (q *ServerQueue) Cost(i int, now time.Duration) float64 {
	w := q.set.Member(i).Weight
	if w == 0 {
		return math.Inf(1)
	}
	queue := max(0, q.mean.Raw()+q.state[i].Read(now, q.cfg.Decay))
	return (queue + q.cfg.Errors.Of(q.set.Node(i), now)) / w
}

// Observe takes the queue length in a reply, if there is one. Lengths that are
// negative or not finite are passed over.
func (q *ServerQueue) Observe(i int, _, now time.Duration, o balance.Outcome) {
	q.cfg.Errors.Note(q.set.Node(i), now, o)
	if !o.HasQueue || !(o.Queue >= 0 && o.Queue < 1e12) {
		return
	}
	others := max(0, o.Queue-float64(q.set.Node(i).InFlight()))
	mean := q.mean.Mean(now, q.cfg.Decay, others)
	q.state[i].Set(now, others-mean)
}
