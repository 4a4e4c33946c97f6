package breaker

import (
	"time"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/internal/window"
)

// Done ends the admission at now. It counts once: a second Done, and one after
// the admission was given up as lost, does nothing; so does the outcome of an
// admission from before the last change of state.
func (t Ticket) Done(now time.Duration, o resilience.Outcome) {
	switch {
	case t.g == nil:
	case t.p != nil:
		if t.g.b.slots[t.p.slot].CompareAndSwap(t.p, nil) {
			t.g.probed(now, o)
		}
	case t.t.Close():
		t.g.count(now, o)
	}
}

// count takes the outcome of an admission of the closed state.
func (g *generation) count(now time.Duration, o resilience.Outcome) {
	switch {
	case o == resilience.Success:
		g.outcomes.Add(now, window.A)
		if g.inARow.Load() != 0 {
			g.inARow.Store(0)
		}
	case o.Bad():
		g.outcomes.Add(now, window.B)
		if g.inARow.Add(1); g.shouldTrip(now) {
			// Only if g is still the state: an outcome of an older
			// generation counted in dead counters.
			g.b.change(g, g.b.tripped(now), now)
		}
	}
}

func (g *generation) shouldTrip(now time.Duration) bool {
	c := &g.b.c
	if c.Consecutive > 0 && g.inARow.Load() >= int64(c.Consecutive) {
		return true
	}
	if c.FailureRate < 0 {
		return false
	}
	good, bad := g.outcomes.Sums(now)
	all := good + bad
	return all >= uint64(c.MinRequests) && float64(bad) >= c.FailureRate*float64(all)
}

// sweepLost counts admissions without outcome as timed out, now and then.
func (g *generation) sweepLost(now time.Duration) {
	n, _ := g.open.Sweep(now, g.b.c.Lost)
	for range n {
		g.count(now, resilience.Timeout)
	}
}

// admitProbe takes a free probe slot. The error is ErrProbing, or errMoved when
// g is no longer the state.
func (g *generation) admitProbe(now time.Duration) (Ticket, error) {
	g.sweepProbes(now)
	p := &probe{g: g, at: now}
	for i := range g.b.slots {
		p.slot = i
		if !g.b.slots[i].CompareAndSwap(nil, p) {
			continue
		}
		if g.b.cur.Load() == g {
			return Ticket{g: g, p: p}, nil
		}
		// The state changed before the slot was ours.
		g.b.slots[i].CompareAndSwap(p, nil)
		return Ticket{}, errMoved
	}
	if g.b.cur.Load() != g {
		return Ticket{}, errMoved
	}
	return Ticket{}, ErrProbing
}

// sweepProbes frees the slots of lost probes. One of g itself has timed out and
// opens the breaker; one of an older generation only frees its slot.
func (g *generation) sweepProbes(now time.Duration) {
	for i := range g.b.slots {
		p := g.b.slots[i].Load()
		if p != nil && g.b.lost(p, now) && g.b.slots[i].CompareAndSwap(p, nil) {
			// It timed out when its time was up, not now, when somebody looks.
			p.g.probed(p.at+g.b.c.ProbeTimeout, resilience.Timeout)
		}
	}
}

// couldProbe is admitProbe without taking anything.
func (g *generation) couldProbe(now time.Duration) bool {
	free := false
	for i := range g.b.slots {
		switch p := g.b.slots[i].Load(); {
		case p == nil:
			free = true
		case !g.b.lost(p, now):
		case p.g == g: // a time-out: open from the end of its time on
			return passed(p.at+g.b.c.ProbeTimeout, now, g.b.c.OpenFor)
		default:
			free = true
		}
	}
	return free
}

func (b *Breaker) lost(p *probe, now time.Duration) bool { return passed(p.at, now, b.c.ProbeTimeout) }

// probed takes the outcome of a probe; it changes something only while g is the state.
func (g *generation) probed(now time.Duration, o resilience.Outcome) {
	switch {
	case o == resilience.Success:
		if g.successes.Add(1) >= int64(g.b.c.CloseAfter) {
			g.b.change(g, g.b.closed(now), now)
		}
	case o.Bad():
		g.b.change(g, g.b.tripped(now), now)
	}
}
