// Package loadfeed takes what servers report of themselves (package loadreport) to
// the policies that go by it: prequal, c3, wrr.Reported and bounded load by reported
// loads.
//
//	clock := loadfeed.Clock()
//	feed := loadfeed.New(clock, func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) })
//	client, err := sdk.New(source, sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
//
// Packages sdk/httplb and sdk/grpclb do the rest by themselves if they are given the
// feed: they hand over the report of each answer, and send the probes that the policy
// asks for.
//
// # Law
//
// A report is given to the policy under the node that it came from and at most once.
// A report of a node that the policy does not know (any more) changes nothing.
//
// # Cost
//
// One map lookup for each report besides what the policy does with it.
package loadfeed

import (
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/sdk"
)

// Clock returns a clock for sdk.WithClock and New: the time since now.
func Clock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// Feed stands between reports and a policy. Make one with New for each client. Safe
// for concurrent use.
type Feed struct {
	clock   func() time.Duration
	policy  func(*balance.Set) (balance.Picker, error)
	current atomic.Pointer[current]
}

// current is the newest picker and its members by id.
type current struct {
	picker balance.Picker
	set    *balance.Set
	index  map[string]int
}

// New returns a feed for the pickers that policy makes. clock must be the client's
// (sdk.WithClock).
func New(clock func() time.Duration, policy func(*balance.Set) (balance.Picker, error)) *Feed {
	return &Feed{clock: clock, policy: policy}
}

// Policy is for sdk.Balance.Policy.
func (f *Feed) Policy(set *balance.Set) (balance.Picker, error) {
	p, err := f.policy(set)
	if err != nil {
		return nil, err
	}
	return f.follow(p), nil
}

// setter is what all policies of this module have.
type setter interface{ Set() *balance.Set }

// follow makes p the current picker, and returns it such that its successors become
// current, too.
func (f *Feed) follow(p balance.Picker) balance.Picker {
	s, ok := p.(setter)
	if !ok {
		return p // a policy of another kind: it gets no reports
	}
	c := &current{picker: p, set: s.Set(), index: make(map[string]int, s.Set().Len())}
	for i := range c.set.Len() {
		c.index[c.set.Node(i).ID()] = i
	}
	f.current.Store(c)
	w := wrapped{Picker: p, feed: f, set: c.set}
	if a, ok := p.(balance.Among); ok {
		return wrappedAmong{w, a}
	}
	return w
}

// wrapped is a picker whose Next is followed.
type wrapped struct {
	balance.Picker
	feed *Feed
	set  *balance.Set
}

// Next returns the picker for the next set.
func (w wrapped) Next(set *balance.Set) (balance.Picker, error) {
	p, err := w.Picker.Next(set)
	if err != nil {
		return nil, err
	}
	return w.feed.follow(p), nil
}

// Set returns the set that the policy goes by, which tells it of outcomes.
func (w wrapped) Set() *balance.Set { return w.set }

type wrappedAmong struct {
	wrapped
	among balance.Among
}

// PickAmong is the policy's.
func (w wrappedAmong) PickAmong(now time.Duration, seed uint64, among []int) (balance.Ticket, error) {
	return w.among.PickAmong(now, seed, among)
}

// What policies take reports by.
type (
	loads interface {
		Report(i int, now time.Duration, l wrr.Load)
	}
	probes interface {
		Probes(seed uint64, dst []int) []int
		Report(i int, now time.Duration, rif int, latency time.Duration)
	}
)

// Take gives the report of a node, by its id, to the policy: the answer to a probe,
// or what came with an answer.
func (f *Feed) Take(node string, r loadreport.Report, probed bool) {
	c := f.current.Load()
	if c == nil {
		return
	}
	i, ok := c.index[node]
	if !ok {
		return
	}
	switch p := c.picker.(type) {
	case loads:
		util := r.Utilization
		if util == 0 {
			util = r.CPU
		}
		p.Report(i, f.clock(), wrr.Load{QPS: r.QPS, EPS: r.EPS, Utilization: util})
	case probes:
		if probed && r.HasInFlight { // answers are not: they come from where requests were sent
			p.Report(i, f.clock(), int(r.InFlight), r.Latency)
		}
	}
}

// Done ends the ticket of a request to node, with the report that came with its
// answer if there was one.
func (f *Feed) Done(t *sdk.Ticket, o sdk.Outcome, r loadreport.Report, reported bool) {
	if !reported {
		t.Done(o)
		return
	}
	node := t.ID()
	if r.HasInFlight {
		t.Report(r.InFlight)
	}
	f.Take(node, r, false)
	t.DoneWith(balance.Outcome{Result: balance.Result(o), Service: r.Service, Queue: float64(r.InFlight), HasQueue: r.HasInFlight})
}

// Probes appends the ids of the nodes to probe now, after a request, to dst: none for
// policies that do not probe. seed differs from call to call.
func (f *Feed) Probes(seed uint64, dst []string) []string {
	c := f.current.Load()
	if c == nil {
		return dst
	}
	p, ok := c.picker.(probes)
	if !ok {
		return dst
	}
	var room [8]int
	for _, i := range p.Probes(seed, room[:0]) {
		dst = append(dst, c.set.Node(i).ID())
	}
	return dst
}
