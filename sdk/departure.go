package sdk

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/topology"
)

// departure is how a node goes: it gets no more requests by its keys, what is in
// flight finishes, and after the grace period what is left is cut.
type departure struct {
	cut chan struct{} // closed when the grace period is over

	// Guarded by Client.mu.
	node  topology.Node
	going bool
	until time.Duration // end of the grace; only while going
	ended bool          // cut is closed, or all has finished
}

func newDeparture(n topology.Node) *departure {
	return &departure{cut: make(chan struct{}), node: n}
}

// forever is a grace period that does not end.
const forever = time.Duration(1<<63 - 1)

// begin lets the node go at now, once.
func (d *departure) begin(now, grace time.Duration) {
	if d.going {
		return
	}
	d.going = true
	d.until = now + grace
	if grace < 0 {
		d.until = forever
	}
}

// follow brings a member in line with its node as published.
func (f *fleet) follow(m *member, n topology.Node, state outlier.State, now time.Duration) {
	if m.outlier != nil {
		m.outlier.Set(state, now)
	}
	if m.cold && state == outlier.Up { // it begins to serve
		m.cold = false
		m.ramp.Restart(now)
	}
	d := m.drain.Load()
	d.node = n
	switch leaves := state == outlier.Out && n.State != topology.StateJoining; {
	case leaves && !d.going:
		d.begin(now, f.grace(n))
		f.leaving = append(f.leaving, m)
	case !leaves && d.going: // taken back
		if d.going = false; d.ended {
			m.drain.Store(newDeparture(n))
		}
		f.leaving = slices.DeleteFunc(f.leaving, func(l *member) bool { return l == m })
	}
}

// leave lets go of a member whose node is gone or came back as another.
func (f *fleet) leave(m *member, now time.Duration) {
	f.gone = append(f.gone, goneMember{m, now})
	if m.outlier != nil {
		f.detector.Remove(m.outlier, now)
	}
	if f.probes != nil {
		f.probes.Forget(m.id)
	}
	if d := m.drain.Load(); !d.going {
		d.begin(now, f.grace(d.node))
		f.leaving = append(f.leaving, m)
	}
}

// depart ends the departures that have finished or whose grace is over, and
// returns them.
func (f *fleet) depart(now time.Duration) (ended []Departed) {
	f.leaving = slices.DeleteFunc(f.leaving, func(m *member) bool {
		d := m.drain.Load()
		rest := m.load.InFlight()
		if rest > 0 && now < d.until {
			return false
		}
		if rest > 0 {
			close(d.cut)
		}
		d.ended = true
		if !f.returned(m) {
			ended = append(ended, Departed{Node: d.node, Cut: rest})
		}
		return true
	})
	return ended
}

// returned reports whether the node of a member that is gone is back at its address, so
// that its connections are needed.
func (f *fleet) returned(m *member) bool {
	now := f.members[m.id]
	return now != nil && now != m && now.addr == m.addr && !now.drain.Load().going
}

// Departed is a node that drained or left and needs its connections no more.
type Departed struct {
	Node topology.Node
	// Cut is the cost still in flight when the grace period ended; 0 when all
	// of it finished in time.
	Cut int64
}

// Cut returns a channel that is closed when the node of the ticket drains or has
// left and its grace period is over: long streams select on it and say goodbye.
// nil, which blocks for ever, for the zero Ticket. A node that is taken back
// before that does not cut its streams.
func (t *Ticket) Cut() <-chan struct{} {
	if t.rec == nil {
		return nil
	}
	// The members of a snapshot are the same in all its plans.
	return t.rec.snap.plan.Load().members[t.rec.index].drain.Load().cut
}

// nodeState is what is known of a node from elsewhere than its requests. A node
// that drains in steps owns keys until the last.
func nodeState(weight float64, down bool) outlier.State {
	switch {
	case weight == 0:
		return outlier.Out
	case down:
		return outlier.Down
	}
	return outlier.Up
}

// counters are the client's own sums; those of nodes are in package bounded.
type counters struct {
	incarnation uint64 // of the newest member; with Client.mu

	diverted    atomic.Uint64 // requests that went to another node than the first
	extra       atomic.Uint64 // nodes asked beyond one a request
	unavailable atomic.Uint64
	local       atomic.Uint64 // requests that a zone kept
	spilled     atomic.Uint64 // requests that had a replica in the zone and left it
	repeated    atomic.Uint64
}
