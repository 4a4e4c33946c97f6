package sdk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/resilience/breaker"
	"github.com/shardd/shardd/resilience/guard"
	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/resilience/probe"
	"github.com/shardd/shardd/resilience/retry"
	"github.com/shardd/shardd/resilience/slowstart"
	"github.com/shardd/shardd/topology"
)

// fleet is what a client knows of its nodes beside the topology: their load and
// their well-being. It outlives topologies.
type fleet struct {
	bound   BoundedLoad
	balance *Balance
	resil   *Resilience
	zone    string
	grace   Grace
	clock   func() time.Duration
	chance  func() uint64

	group    *bounded.Group
	pool     *balance.Pool
	detector *outlier.Detector
	slow     *slowstart.Policy
	probes   *probe.Set[string]
	retry    *retry.Policy
	attempts sync.Pool

	counters counters
	eventsMu sync.Mutex
	events   []outlier.Event // not told yet
	wake     chan struct{}   // for upkeep: a weight has changed
	tell     teller          // of OnEject and OnDrained
	ended    sync.WaitGroup
	swept    time.Duration // when the detector judged last; for upkeep alone

	// What follows is guarded by Client.mu.
	members map[string]*member // by node id, those of the topology
	leaving []*member          // with requests in flight, or their grace not over
	gone    []goneMember       // of late; requests may still count at them
	retired sums               // of those that are gone for longer
	picker  balance.Picker     // of the last plan that the policy took; nil without
	first   bool               // a topology was there
	ticked  time.Duration      // when time was last looked at
	ramped  time.Duration      // when slow starts moved last
	faded   time.Duration      // when reported loads faded last
	stop    func()             // ends the upkeep; nil while there is none
}

// member is one incarnation of one node.
type member struct {
	id, addr    string
	incarnation uint64
	load        *bounded.Node
	bal         *balance.Node // nil without a policy
	guard       *guard.Guard  // nil without resilience
	outlier     *outlier.Node // the same
	ramp        *slowstart.Ramp
	drain       atomic.Pointer[departure]
	cold        bool // has served nothing yet: its slow start is to come; with Client.mu
}

// newFleet checks what the options say of load and resilience.
func newFleet(o *options) (*fleet, error) {
	start := time.Now()
	f := &fleet{bound: o.bound, balance: o.balance, resil: o.resilience, zone: o.zone, grace: o.grace, clock: o.clock, chance: o.chance,
		group: o.bound.group(), members: map[string]*member{}, wake: make(chan struct{}, 1)}
	if f.clock == nil {
		f.clock = func() time.Duration { return time.Since(start) }
	}
	if f.chance == nil {
		f.chance = rand.Uint64
	}
	if f.grace == nil {
		f.grace = func(topology.Node) time.Duration { return DefaultGrace }
	}
	if c := o.bound.Factor; c > 0 {
		if _, err := f.group.NewSet(nil, c); err != nil {
			return nil, fmt.Errorf("sdk: WithBoundedLoad: %w", err)
		}
	}
	if o.bound.Within < 0 || o.bound.View > SpillLoad {
		return nil, fmt.Errorf("sdk: WithBoundedLoad: within %d, view %d; give 0 or more, and one of the views", o.bound.Within, o.bound.View)
	}
	if f.balance != nil {
		f.pool = balance.NewPool()
	}
	if err := f.resilient(); err != nil {
		return nil, fmt.Errorf("sdk: WithResilience: %w", err)
	}
	return f, nil
}

func (f *fleet) resilient() (err error) {
	r := f.resil
	if r == nil {
		return nil
	}
	c := r.Outlier
	if c.Limit == 0 {
		c.Limit = 1.0 / 3
	}
	c.OnChange = f.ejected // which has the configured one told later: now locks are held
	if f.detector, err = outlier.New(c); err != nil {
		return err
	}
	slow := slowstart.Config{}
	if r.SlowStart != nil {
		slow = *r.SlowStart
	}
	if f.slow, err = slowstart.New(slow); err != nil {
		return err
	}
	if r.Probe != nil {
		if f.probes, err = probe.New[string](r.Probing); err != nil {
			return err
		}
	}
	again := r.Retry
	if again.Clock == nil {
		again.Clock = f.clock
	}
	if b := &again.Backoff; b.Base == 0 && b.Max == 0 { // the next attempt goes elsewhere
		b.Base, b.Max = 10*time.Millisecond, time.Second
	}
	if f.retry, err = retry.New(again); err != nil {
		return err
	}
	_, err = guard.New(f.guardConfig(nil))
	return err
}

func (f *fleet) newGuard(m *member) (*guard.Guard, error) { return guard.New(f.guardConfig(m.outlier)) }

func (f *fleet) guardConfig(n *outlier.Node) guard.Config {
	c := guard.Config{Breaker: f.resil.Breaker, Limit: f.resil.Limit, Outlier: n}
	switch {
	case f.resil.NoBreaker:
		c.Breaker = nil
	case c.Breaker == nil:
		c.Breaker = &breaker.Config{Consecutive: -1, Jitter: 0.2, Rand: rand.Float64}
	}
	return c
}

// ejected is told by the detector.
func (f *fleet) ejected(e outlier.Event) {
	if f.probes != nil {
		if e.Ejected {
			f.probes.Fail(e.Node.Label(), e.At)
		} else {
			f.probes.Forget(e.Node.Label())
		}
	}
	f.eventsMu.Lock()
	f.events = append(f.events, e)
	f.eventsMu.Unlock()
	f.poke()
}

// told returns what OnEject is to be told, which upkeep does: the detector tells
// with locks held, under which nobody could call the client.
func (f *fleet) told() []outlier.Event {
	f.eventsMu.Lock()
	defer f.eventsMu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// poke lets upkeep make a new plan soon.
func (f *fleet) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func newMember(n topology.Node, load *bounded.Node, incarnation uint64) *member {
	m := &member{id: n.ID, addr: n.Addr, incarnation: incarnation, load: load}
	m.drain.Store(newDeparture(n))
	return m
}
