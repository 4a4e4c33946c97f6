// Package unwell measures, in virtual time, what policies do with a node that is
// not well: how many requests they send to it, and how soon they notice that it
// is well again. Its test writes the tables of docs/algorithms/policies-unwell.md.
//
// The servers are delay-only: a request takes its time, there is no queue. The
// same settings give the same figures on every run.
package unwell

import (
	"container/heap"
	"math"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// Scenario is a fleet with one unwell node, the last one.
type Scenario struct {
	Weights []float64
	QPS     float64       // Poisson arrivals
	Mean    time.Duration // of the exponential latency of a node that is well
	Timeout time.Duration // of the client
	From    time.Duration // the last node is unwell from here
	To      time.Duration // until here
	End     time.Duration
	// Answer is what the unwell node does: how long until the client has an outcome,
	// and which. Nil never answers: a Timeout.
	Answer func() (time.Duration, balance.Result)
	// Probe, if not nil, is called after each pick, and Tick every 100 ms, for
	// policies that need to be told of more than outcomes. well tells whether the
	// last node answers.
	Probe func(p balance.Picker, now time.Duration, seed uint64, well bool)
	Tick  func(p balance.Picker, now time.Duration, well bool)
}

// Figures are what a run shows.
type Figures struct {
	First  float64       // share of requests to the unwell node in its first 5 s
	Late   float64       // share in the second half of its illness
	Notice time.Duration // from To until it gets half of its fair share, over 1 s; -1: not before End
}

type event struct {
	at     time.Duration
	order  int
	ticket balance.Ticket
	o      balance.Outcome
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// run is the state of one run.
type run struct {
	Scenario
	p     balance.Picker
	dice  splitmix.Source
	queue events
	order int
	sent  []sent
}

// sent is one request: when, and whether to the last node.
type sent struct {
	at   time.Duration
	last bool
}

// Run drives p through the scenario. fair is the share that the last node should
// get when it is well.
func (s Scenario) Run(p balance.Picker, fair float64) Figures {
	r := &run{Scenario: s, p: p, dice: 42}
	tick := time.Duration(0)
	for now := r.exp(1e9 / s.QPS); now < s.End; now += r.exp(1e9 / s.QPS) {
		for len(r.queue) > 0 && r.queue[0].at <= now {
			e := heap.Pop(&r.queue).(event)
			e.ticket.Done(e.at, e.o)
		}
		if s.Tick != nil && now >= tick {
			s.Tick(p, now, r.well(now))
			tick = now + 100*time.Millisecond
		}
		r.arrive(now)
	}
	return r.figures(fair)
}

func (r *run) well(now time.Duration) bool { return now < r.From || now >= r.To }

func (r *run) exp(mean float64) time.Duration {
	u := float64(r.dice.Next()>>11)*0x1p-53 + 0x1p-54
	return time.Duration(-math.Log(u) * mean)
}

func (r *run) arrive(now time.Duration) {
	tk, err := r.p.Pick(now, r.dice.Next(), nil)
	if err != nil {
		return
	}
	last := tk.Index() == len(r.Weights)-1
	r.sent = append(r.sent, sent{at: now, last: last})
	took, o := r.exp(float64(r.Mean)), balance.Outcome{Result: balance.Success, Timeout: r.Timeout}
	if last && !r.well(now) {
		took, o.Result = r.Timeout, balance.Timeout
		if r.Answer != nil {
			took, o.Result = r.Answer()
		}
	}
	r.order++
	heap.Push(&r.queue, event{at: now + took, order: r.order, ticket: tk, o: o})
	if r.Probe != nil {
		r.Probe(r.p, now, r.dice.Next(), r.well(now))
	}
}

// figures evaluates what was sent.
func (r *run) figures(fair float64) Figures {
	f := Figures{
		First:  r.share(r.From, r.From+5*time.Second),
		Late:   r.share((r.From+r.To)/2, r.To),
		Notice: -1,
	}
	const window = time.Second
	lo, count, last := 0, 0, 0
	for _, s := range r.sent {
		if s.at < r.To {
			lo++
			continue
		}
		count++
		last += b2i(s.last)
		for r.sent[lo].at < s.at-window {
			count--
			last -= b2i(r.sent[lo].last)
			lo++
		}
		if count > 50 && float64(last) >= fair/2*float64(count) && f.Notice < 0 {
			f.Notice = s.at - r.To
		}
	}
	return f
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *run) share(from, to time.Duration) float64 {
	all, last := 0, 0
	for _, s := range r.sent {
		if s.at >= from && s.at < to {
			all++
			last += b2i(s.last)
		}
	}
	return float64(last) / float64(max(1, all))
}
