package sdk

import (
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/resilience/breaker"
)

// LoadStats is what Acquire has done, for metrics. Counters only grow; they are
// read one after another, not as of one instant.
type LoadStats struct {
	Acquired uint64 // requests admitted
	// Diverted are those that went to another node than the first in their
	// key's order, by load, by health or because their owner is down. Requests
	// without a key, and replicas chosen by zone or policy, are none.
	Diverted uint64
	// Probes are the nodes that were asked, one or more a request.
	Probes uint64
	// Refusals are the times that a node was asked and over its cap.
	Refusals uint64
	// OverCap are the requests that a node took over its cap, because all that
	// were asked refused.
	OverCap     uint64
	Unavailable uint64 // requests refused with ErrUnavailable
	InZone      uint64 // requests that WithZone kept in the zone
	LeftZone    uint64 // requests that had a replica in the zone and went elsewhere
	// Repeated are calls of Done by copies of a ticket, as far as they can be told:
	// those that would have brought a load below zero.
	Repeated uint64
	Total    int64 // load of all nodes that take requests, in the view of WithBoundedLoad
	Nodes    []NodeLoad
}

// HomeRate returns the share of the requests that went to the first node in
// their key's order, 1 without any.
func (s LoadStats) HomeRate() float64 {
	if s.Acquired == 0 {
		return 1
	}
	return 1 - float64(s.Diverted)/float64(s.Acquired)
}

// NodeLoad is one node's part of LoadStats, counted since it joined.
type NodeLoad struct {
	ID, Addr, Zone string
	Acquired       uint64        // requests admitted
	InFlight       int64         // their cost, of those without Done
	Load           int64         // the load in the view of WithBoundedLoad
	Cap            int64         // ceil(c * share * (Total + 1)); 0 = takes no requests, the largest number = no bound
	Refusals       uint64        // times it was asked and over its cap
	OverCap        uint64        // requests that it took over its cap
	OverFor        time.Duration // time over its cap, to about 100 ms
	Spill          float64       // share turned away (SetSpill)
	Ejected        bool          // by WithResilience
	Breaker        breaker.State // Closed without WithResilience
	Warming        float64       // slow start: 1 = has its whole weight
}

// LoadStats returns what Acquire has done. O(n).
func (c *Client) LoadStats() LoadStats {
	f := c.fleet
	k := &f.counters
	s := LoadStats{Diverted: k.diverted.Load(), Unavailable: k.unavailable.Load(),
		InZone: k.local.Load(), LeftZone: k.spilled.Load(), Repeated: k.repeated.Load(), Total: f.group.Total()}
	snap := c.snap.Load()
	p := snap.plan.Load()
	if p == nil {
		return s
	}
	s.Nodes = make([]NodeLoad, len(p.members))
	sum := p.retired
	for _, g := range p.gone {
		sum.add(g.member)
	}
	for i, m := range p.members {
		n := m.stats()
		n.Zone, n.Load, n.Cap = snap.topology().Node(i).Zone, p.set.Load(i), p.set.Cap(i, 1)
		s.Nodes[i] = n
		sum.add(m)
	}
	s.Acquired, s.Refusals, s.OverCap = sum.picks, sum.refused, sum.over
	s.Repeated += sum.bad
	s.Probes = s.Acquired + k.extra.Load()
	return s
}

// sums are what nodes have counted.
type sums struct{ picks, refused, over, bad uint64 }

func (s *sums) add(m *member) {
	n := m.load.Stats()
	s.picks += n.Picks
	s.refused += n.Refused
	s.over += n.Over
	s.bad += n.Bad
}

// goneMember is a member that left at a time.
type goneMember struct {
	*member
	at time.Duration
}

// lingers is how long a member that is gone may still be counted at, by requests that
// began before.
const lingers = time.Minute

// retire adds up what members have counted that are gone for long, and returns the
// others and the sums; Client.mu is held.
func (f *fleet) retire(now time.Duration) ([]goneMember, sums) {
	var late []goneMember // another one than before: plans keep theirs
	for _, g := range f.gone {
		if now-g.at < lingers {
			late = append(late, g)
			continue
		}
		f.retired.add(g.member)
	}
	f.gone = late
	return late, f.retired
}

func (m *member) stats() NodeLoad {
	l := m.load.Stats()
	n := NodeLoad{ID: m.id, Addr: m.addr, Acquired: l.Picks, InFlight: l.InFlight, Refusals: l.Refused,
		OverCap: l.Over, OverFor: l.OverFor, Spill: l.Spill, Warming: 1}
	if m.ramp != nil {
		n.Warming = m.ramp.Factor()
	}
	if m.outlier != nil {
		n.Ejected = m.outlier.Ejected()
	}
	if m.guard != nil && m.guard.Breaker() != nil {
		n.Breaker, _ = m.guard.Breaker().State()
	}
	return n
}

// SetSpill sets the share of the requests for the keys of each node that goes to
// the next in order, 0 to 1, by node id, for the view SpillLoad: what a control
// loop publishes that sees the load of all (bounded.Spill computes it). Nodes that
// are not named spill nothing. With other views it has no effect.
func (c *Client) SetSpill(shares map[string]float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, m := range c.fleet.members {
		m.load.SetSpill(shares[id])
	}
}

// BalanceNode returns what package balance knows of a node, nil without
// WithBalance or without the node: for policies that are told of nodes apart from
// requests.
func (c *Client) BalanceNode(id string) *balance.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.fleet.members[id]; m != nil {
		return m.bal
	}
	return nil
}
