package sdk

import (
	"math"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/topology"
)

// plan is who may take requests by one snapshot, and how much: immutable, made
// anew when topology, health or a slow start changes a weight.
type plan struct {
	// plain is true where the first node in order is asked and nothing else
	// has a say: no policy, no resilience, no zone, no spill.
	plain   bool
	set     *bounded.Set // by node index
	local   *bounded.Set // the nodes of the own zone alone; nil if zones do not matter
	members []*member    // by node index
	picker  balance.Picker
	among   balance.Among // the picker, if it can choose among some
	bal     *balance.Set
	standIn []record // by node index: records of nodes that are not the owner

	// What members that are gone have counted: those of late, and the sums of the
	// others.
	gone    []goneMember
	retired sums
}

// plan makes the plan of a snapshot from what is known now, with Client.mu held.
func (f *fleet) plan(s *snapshot) (*plan, error) {
	t := s.topology()
	p := &plan{members: make([]*member, t.Len()), standIn: s.makeRecords(true)}
	p.gone, p.retired = f.retire(f.clock())
	all := make([]bounded.Member, t.Len())
	mine := make([]bounded.Member, t.Len())
	weights := s.table.OwnerWeights()
	for i, n := range t.Nodes() {
		m := f.members[n.ID]
		if m == nil { // has left
			m = newMember(n, f.group.NewNode(), 0)
		}
		p.members[i] = m
		p.standIn[i].load = m.load
		all[i] = bounded.Member{Node: m.load, Weight: f.weight(s, i, m, weights[i])}
		mine[i] = all[i]
		if n.Zone != f.zone {
			mine[i].Weight = 0
		}
	}
	var err error
	if p.set, err = f.newSet(all, t); err != nil { // factors and weights were checked: never
		p.set, _ = f.group.NewSet(all, 0)
		return p, err
	}
	if f.zone != "" && t.Spec().Replicas > 1 {
		p.local = p.set
		if f.bound.View != ReportedLoad {
			if p.local, err = f.newSet(mine, t); err != nil {
				p.local = p.set
				return p, err
			}
		}
	}
	if f.balance != nil {
		if p.set.None() { // everybody is down: all that own keys, as Route says
			for i, w := range weights {
				all[i].Weight = w
			}
		}
		err = f.pick(p, all)
	}
	p.plain = s.err == nil && f.balance == nil && f.resil == nil && p.local == nil && f.bound.View != SpillLoad
	return p, err
}

// newSet returns the nodes with their caps: by HAProxy's rule where its mapping is
// followed, else by our own.
func (f *fleet) newSet(members []bounded.Member, t *topology.Topology) (*bounded.Set, error) {
	c := f.factor(t)
	if percent := int(math.Round(100 * c)); t.Spec().Compat.Mode == topology.ModeHAProxy && percent > 100 {
		position := make([]uint32, t.Len())
		whole := slices.Clone(members) // a slow start has no place in that rule
		for i, n := range t.Nodes() {
			position[i] = n.Position
			if whole[i].Weight > 0 {
				whole[i].Weight = float64(n.Weight)
			}
		}
		return f.group.NewHAProxySet(whole, position, percent)
	}
	return f.group.NewSet(members, c)
}

// weight is the share of the load that node i of s may have, w being its owner
// weight: 0 if it takes no requests.
func (f *fleet) weight(s *snapshot, i int, m *member, w float64) float64 {
	if s.records[i].down || m.outlier != nil && !m.outlier.Usable() {
		return 0
	}
	if m.ramp != nil {
		w *= m.ramp.Factor()
	}
	return w
}

func (f *fleet) factor(t *topology.Topology) float64 {
	switch c := f.bound.Factor; {
	case c < 0 || f.bound.View == SpillLoad:
		return 0
	case c > 0:
		return c
	}
	return t.Spec().BoundedLoad
}

// pick makes the policy's picker. A policy that refuses the set leaves the choice to
// P2C, which takes every set, until there is one that it takes; the error says so.
func (f *fleet) pick(p *plan, weights []bounded.Member) error {
	members := make([]balance.Member, len(p.members))
	for i, m := range p.members {
		members[i] = balance.Member{Node: m.bal, Weight: weights[i].Weight, Down: weights[i].Weight == 0}
		if m.bal == nil {
			members[i].Node = balance.NewNode(m.id, 0)
		}
	}
	set, err := balance.NewSet(members)
	if err != nil {
		return err
	}
	if f.picker == nil {
		p.picker, err = f.balance.picker(set)
	} else {
		p.picker, err = f.picker.Next(set)
	}
	if err == nil {
		f.picker = p.picker
	} else { // for this set: the policy goes on with one that it takes
		p.picker, _ = (&Balance{}).picker(set)
	}
	p.bal = set
	if s, ok := p.picker.(interface{ Set() *balance.Set }); ok {
		p.bal = s.Set() // bound to the policy's observer
	}
	p.among, _ = p.picker.(balance.Among)
	return err
}

func (b *Balance) picker(set *balance.Set) (balance.Picker, error) {
	if b.Policy != nil {
		return b.Policy(set)
	}
	e := b.ErrorLoad
	if e == (balance.ErrorLoad{}) {
		e.Each = 1
	}
	return balance.NewP2C(set, &balance.InFlight{Errors: e})
}

// arrange makes the members those of s: who stays keeps load and history, who is
// new, comes back, or stands at another address starts anew. Client.mu is held.
func (f *fleet) arrange(s *snapshot, now time.Duration) {
	t := s.topology()
	weights := s.table.OwnerWeights()
	next := make(map[string]*member, t.Len())
	for i, n := range t.Nodes() {
		if n.State == topology.StateLeft {
			continue
		}
		m := f.members[n.ID]
		if m == nil || m.addr != n.Addr {
			m = f.join(n, now)
		}
		next[n.ID] = m
		f.follow(m, n, nodeState(weights[i], s.records[i].down), now)
	}
	for id, m := range f.members {
		if next[id] != m {
			f.leave(m, now)
		}
	}
	f.members, f.first = next, true
	if f.pool != nil {
		f.identify()
	}
}

func (f *fleet) join(n topology.Node, now time.Duration) *member {
	f.counters.incarnation++
	m := newMember(n, f.group.NewNode(), f.counters.incarnation)
	if f.resil == nil {
		return m
	}
	m.ramp = f.slow.Full()
	m.cold = !f.resil.NoSlowStart && (f.first || n.State == topology.StateJoining) // what owns keys at first is warm
	m.outlier = f.detector.Add(n.ID, outlier.Up, now)
	m.guard, _ = f.newGuard(m) // the configuration was checked by New
	return m
}

// identify gives every member its node of package balance.
func (f *fleet) identify() {
	ids := make([]balance.Identity, 0, len(f.members))
	list := make([]*member, 0, len(f.members))
	for id, m := range f.members {
		ids = append(ids, balance.Identity{ID: id, Incarnation: m.incarnation})
		list = append(list, m)
	}
	nodes, err := f.pool.Update(ids)
	if err != nil {
		return // ids of a topology are distinct and not empty
	}
	for i, m := range list {
		m.bal = nodes[i]
	}
}
