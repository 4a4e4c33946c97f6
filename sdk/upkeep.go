package sdk

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/topology"
)

// tick is the time between two looks at loads, ramps and departures.
const tick = 100 * time.Millisecond

// sweep is the time between two judgements of nodes and steps of slow starts.
const sweep = time.Second

// fades is how many steps a reported load makes in the time it fades by e.
const fades = 8

// plan makes the plan of s, which is about to be what lookups go by; c.mu is
// held. What a policy refuses is logged: then P2C chooses.
func (c *Client) plan(s *snapshot) {
	f, now := c.fleet, c.fleet.clock()
	f.arrange(s, now)
	c.replan(s)
	for i, m := range s.plan.Load().members {
		s.records[i].load = m.load // before anybody sees s
	}
	if f.upkept(s) {
		c.keepUp()
	}
}

// replan makes another plan of the same snapshot; c.mu is held.
func (c *Client) replan(s *snapshot) {
	p, err := c.fleet.plan(s)
	if err != nil {
		c.logger.Error("policy or bound refuses the nodes", "error", err, "version", s.topology().Version())
	}
	c.fleet.group.Use(p.set)
	s.plan.Store(p)
}

// upkept reports whether time changes anything in the plans.
func (f *fleet) upkept(s *snapshot) bool {
	return f.resil != nil || f.bound.View == ReportedLoad || f.factor(s.topology()) > 0 || len(f.leaving) > 0
}

// keepUp starts what time changes, once; c.mu is held and the client not closed.
func (c *Client) keepUp() {
	f := c.fleet
	if f.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	now := f.clock()
	f.ticked, f.ramped, f.faded, f.swept = now, now, now, now
	f.ended.Go(func() { c.upkeep(ctx) })
	if f.probes != nil {
		f.ended.Go(func() { _ = f.probes.Run(ctx, f.clock, c.probe, c.well) })
	}
}

func (c *Client) upkeep(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.tick(ctx, c.fleet.clock())
		case <-c.fleet.wake:
			c.mu.Lock()
			if s := c.snap.Load(); s.table != nil {
				c.replan(s)
			}
			c.mu.Unlock()
			c.tellEvents(ctx)
		}
	}
}

// tick brings everything to now that time changes.
func (c *Client) tick(ctx context.Context, now time.Duration) {
	f := c.fleet
	c.mu.Lock()
	since := max(0, min(now-f.ticked, time.Minute))
	f.ticked = now
	s := c.snap.Load()
	var ended []Departed
	if p := s.plan.Load(); p != nil {
		p.set.Sample(since)
		if fade := f.fade(); fade > 0 && now-f.faded >= fade/fades {
			// Seldom, because a load moves by whole units, one at least.
			p.set.Fade(1 - math.Exp(-float64(now-f.faded)/float64(fade)))
			f.faded = now
		}
		if f.ramping(now) {
			c.replan(s)
		}
	}
	ended = f.depart(now)
	c.mu.Unlock()
	if f.detector != nil && now-f.swept >= sweep {
		f.swept = now
		f.detector.Sweep(now)
	}
	for _, d := range ended {
		c.logger.Debug("node needs its connections no more", "node", d.Node.ID, "cut", d.Cut)
		if tell := c.hooks.OnDrained; tell != nil {
			f.tell.tell(ctx, &f.ended, func() { tell(d) })
		}
	}
}

func (c *Client) tellEvents(ctx context.Context) {
	f := c.fleet
	if f.resil == nil {
		return
	}
	for _, e := range f.told() {
		c.logger.Debug("node ejected or taken back", "node", e.Node.Label(), "ejected", e.Ejected, "reason", e.Reason, "for", e.For)
		for _, tell := range []func(outlier.Event){f.resil.Outlier.OnChange, f.resil.OnEject} {
			if tell != nil {
				f.tell.tell(ctx, &f.ended, func() { c.guarded("OnEject", func() { tell(e) }) })
			}
		}
	}
}

func (f *fleet) fade() time.Duration {
	switch {
	case f.bound.View != ReportedLoad || f.bound.Fade < 0:
		return 0
	case f.bound.Fade == 0:
		return 10 * time.Second
	}
	return f.bound.Fade
}

// ramping moves the slow starts to now, once a second, and reports whether one
// changed a weight.
func (f *fleet) ramping(now time.Duration) bool {
	if now-f.ramped < sweep {
		return false
	}
	f.ramped = now
	changed := false
	for _, m := range f.members {
		if m.ramp != nil && !m.ramp.Done() {
			m.ramp.Tick(now)
			changed = true
		}
	}
	return changed
}

// probe looks at one node.
func (c *Client) probe(ctx context.Context, id string) error {
	n, ok := c.node(id)
	if !ok {
		return nil
	}
	err := errProbePanicked
	c.guarded("Probe", func() { err = c.fleet.resil.Probe(ctx, n) })
	return err
}

var errProbePanicked = errors.New("sdk: the probe panicked")

// well takes back a node that a probe found well.
func (c *Client) well(id string) {
	c.mu.Lock()
	m := c.fleet.members[id]
	c.mu.Unlock()
	if m != nil && m.outlier != nil {
		m.outlier.Return(c.fleet.clock())
	}
}

func (c *Client) node(id string) (topology.Node, bool) {
	t := c.Topology()
	if t == nil {
		return topology.Node{}, false
	}
	i := t.Index(id)
	if i < 0 {
		return topology.Node{}, false
	}
	return t.Node(i), true
}
