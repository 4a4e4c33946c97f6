package membership

import (
	"errors"
	"slices"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// sighting is what this leader saw of a node.
type sighting struct {
	present bool
	owner   string    // of the process that is or was there
	since   time.Time // of present with this owner, or of absent
	losses  int       // for at least Down, in close succession
	lostAt  time.Time // when the last one began
}

// sight takes note of who is there.
func (a *admission) sight(roll Roll, now time.Time) {
	owners := make(map[string]string, len(roll.Live)) // "" = absent
	for _, m := range roll.Marks {
		owners[m.ID] = ""
	}
	for _, l := range roll.Live {
		owners[l.ID] = l.Owner
	}
	for id, owner := range owners {
		if s := a.seen[id]; s == nil {
			a.seen[id] = &sighting{present: owner != "", owner: owner, since: now}
		} else {
			s.see(owner, now, a.c)
		}
	}
	for id := range a.seen {
		if _, ok := owners[id]; !ok {
			delete(a.seen, id)
			delete(a.told, id)
		}
	}
}

// see notes a loss, a return or another process. A loss that was too short to be
// declared does not count; others count together while one follows another
// within four settles.
func (s *sighting) see(owner string, now time.Time, c AdmissionConfig) {
	present := owner != ""
	if present == s.present && (!present || owner == s.owner) {
		return
	}
	if present && !s.present && now.Sub(s.since) >= c.Down {
		if s.since.Sub(s.lostAt) > 4*c.Settle {
			s.losses = 0
		}
		s.losses++
		s.lostAt = s.since
	}
	if present {
		s.owner = owner
	}
	s.present, s.since = present, now
}

// held is how long a node has to be there before it serves again: not at all
// after a first loss, then twice as long with each one, from join (at least a
// second) up to settle. So a node that comes and goes publishes few versions: it
// stays down, which moves no key.
func (s *sighting) held(c AdmissionConfig) time.Duration {
	if s.losses <= 1 {
		return 0
	}
	return min(c.Settle, max(c.Join, time.Second)<<min(s.losses-1, 20))
}

// plan says what to do about every node, as one step. A node's change that the
// whole declared state does not bear is left out, and told.
func (a *admission) plan(d topology.Declared, head *topology.Topology, roll Roll, now time.Time) *plan {
	p := &plan{due: time.Hour}
	a.fresh = d.Spec.Compat.DefaultWeight()
	cases := a.cases(d, roll)
	a.hold(cases)
	for _, c := range cases {
		a.decide(p, c, now)
	}
	if len(p.nodes) == 0 || bears(d, head, p.nodes) == nil {
		a.wait(0)
		return p
	}
	var kept []change
	waiting := 0
	for _, c := range p.nodes {
		err := bears(d, head, append(slices.Clone(kept), c))
		switch {
		case err == nil:
			kept = append(kept, c)
			continue
		case errors.Is(err, placement.ErrMoving):
			waiting++
			a.complain(c.id, "owners change in steps; it waits until they are made, turned back or ended (shardd ramp)", nil)
		default:
			a.complain(c.id, "the cluster does not bear its change", err)
		}
		p.marks = slices.DeleteFunc(p.marks, func(m Mark) bool { return m.ID == c.id })
	}
	p.nodes = kept
	a.wait(waiting)
	return p
}

// wait notes how many members wait for the end of a transition.
func (a *admission) wait(waiting int) {
	if waiting != a.waiting {
		a.waiting = waiting
		a.tell(a.held, waiting)
	}
}

// hold looks whether too many members are lost at the same time.
func (a *admission) hold(cases []aCase) {
	members, lost := 0, 0
	for _, c := range cases {
		if c.mark != nil && c.node != nil && c.ours() && (c.node.State == topology.StateActive || c.node.State == topology.StateDown) {
			members++
			if c.live == nil {
				lost++
			}
		}
	}
	if lost < 2 || float64(lost) <= a.c.MassLoss*float64(members) {
		lost = 0
	}
	if lost == a.held {
		return
	}
	if lost > 0 {
		a.log.Error("many members have lost their leases together; they are held as down and keep their keys; remove those that will not come back", "lost", lost, "members", members)
	} else {
		a.log.Info("members are not held as down any more", "members", members)
	}
	a.held = lost
	a.tell(lost, a.waiting)
}

// bears says why the declared state is not valid with the changes, or would have to
// wait until the owners in head do not change in steps any more (placement.ErrMoving).
func bears(d topology.Declared, head *topology.Topology, changes []change) error {
	d.Nodes = slices.Clone(d.Nodes)
	for _, c := range changes {
		d.Nodes = apply(d.Nodes, c)
	}
	if err := d.Validate(); err != nil || head == nil || head.Transition() == nil {
		return err
	}
	_, _, err := placement.Heading(head, d.Spec, d.Nodes)
	return err
}

// complain tells why a node is left as it is, once until it changes.
func (a *admission) complain(id, reason string, err error) {
	if a.told[id] != reason {
		a.told[id] = reason
		a.log.Warn("member is left as it is", "node", id, "reason", reason, "error", err)
	}
}

// aCase is what there is of one node; each may be missing.
type aCase struct {
	node *topology.Node
	live *Live
	mark *Mark
	seen *sighting
}

// cases joins declared nodes, presences and marks, by id. Nodes that have
// neither presence nor mark are the operators' and are left out.
func (a *admission) cases(d topology.Declared, roll Roll) []aCase {
	index := make(map[string]int, len(roll.Live))
	var cases []aCase
	get := func(id string) *aCase {
		i, ok := index[id]
		if !ok {
			i = len(cases)
			index[id] = i
			cases = append(cases, aCase{seen: a.seen[id]})
		}
		return &cases[i]
	}
	for i := range roll.Live {
		get(roll.Live[i].ID).live = &roll.Live[i]
	}
	for i := range roll.Marks {
		get(roll.Marks[i].ID).mark = &roll.Marks[i]
	}
	for i := range d.Nodes {
		if _, ok := index[d.Nodes[i].ID]; ok {
			get(d.Nodes[i].ID).node = &d.Nodes[i]
		}
	}
	return cases
}

// starts reports whether the presence is of a process that was not admitted yet:
// then what it is configured to be counts, whatever is declared.
func (c aCase) starts() bool { return c.live != nil && (c.mark == nil || c.mark.Owner != c.live.Owner) }

// ours reports whether the declared state is admission's own doing, or active,
// which it may always change; another one is an operator's.
func (c aCase) ours() bool {
	return c.mark != nil && (c.node.State == c.mark.State || c.node.State == c.mark.Next || c.node.State == topology.StateActive)
}

// removedFor is how long admission remembers a member that an operator removed,
// once its lease is lost.
const removedFor = time.Hour

// decide says what to do about one node.
func (a *admission) decide(p *plan, c aCase, now time.Time) {
	switch {
	case c.node == nil && c.live == nil:
		// Its process may have lost its lease for a moment only, and must not
		// come back as if it were new.
		if away := now.Sub(c.seen.since); away < removedFor {
			p.dueIn(removedFor - away)
			return
		}
		p.marks = append(p.marks, Mark{ID: c.mark.ID, Remove: true})
	case c.node == nil:
		a.admitNew(p, c)
	case c.live == nil:
		a.absent(p, c, now)
	default:
		a.present(p, c, now)
	}
}

// admitNew declares a node that is not declared. One that was, and whose process
// is still the same, was removed by an operator and stays out.
func (a *admission) admitNew(p *plan, c aCase) {
	l := *c.live
	if c.mark != nil && c.mark.Admitted && !c.starts() {
		a.complain(l.ID, "an operator removed it; restart its agent to bring it back", nil)
		return
	}
	if l.Drain {
		return
	}
	n := l.node(topology.Node{Weight: a.fresh})
	n.State = topology.StateJoining
	p.declare(c, n, "joins")
}

// absent is about a member whose lease is lost.
func (a *admission) absent(p *plan, c aCase, now time.Time) {
	type step struct {
		after time.Duration
		to    topology.State
		why   string
	}
	var steps []step // the last one that is due is taken
	down, left := step{a.c.Down, topology.StateDown, "lost its lease"}, step{a.c.Settle, topology.StateLeft, "is gone"}
	switch {
	case !c.ours(): // an operator's decision stands
	case c.node.State == topology.StateActive && a.held > 0:
		steps = []step{down}
	case c.node.State == topology.StateActive:
		steps = []step{down, left}
	case c.node.State == topology.StateDown && a.held > 0: // stays so
	case c.node.State == topology.StateDown:
		steps = []step{left}
	case c.node.State != topology.StateLeft: // it owns nothing
		steps = []step{{a.c.Down, topology.StateLeft, "left"}}
	case a.c.Forget > 0:
		steps = []step{{after: a.c.Forget}}
	}
	away := now.Sub(c.seen.since)
	for _, s := range slices.Backward(steps) {
		switch {
		case away < s.after:
			p.dueIn(s.after - away)
		case c.node.State == topology.StateLeft:
			p.marks = append(p.marks, Mark{ID: c.node.ID, Remove: true})
			p.nodes = append(p.nodes, change{id: c.node.ID, gone: true, why: "is forgotten"})
			return
		default:
			n := *c.node
			n.State = s.to
			p.declare(c, n, s.why)
			return
		}
	}
	p.settle(c)
}

// present is about a declared node whose process is there.
func (a *admission) present(p *plan, c aCase, now time.Time) {
	n := *c.node
	if c.asks() {
		n = c.live.node(n)
	}
	why := ""
	if c.starts() || c.ours() {
		n.State, why = a.state(p, c, now)
	}
	if n == *c.node {
		p.settle(c)
		return
	}
	if why == "" {
		why = "changed"
	}
	p.declare(c, n, why)
}

// asks reports whether the node asks for something new: what it asked for once
// is not asked again, so that an operator's later edit stands until it does.
func (c aCase) asks() bool {
	m, l := c.mark, c.live
	return c.starts() || m.Addr != l.Addr || m.Zone != l.Zone || !equal(m.Weight, l.Weight)
}

func equal(a, b *uint32) bool { return a == b || a != nil && b != nil && *a == *b }

// state is the state that a present node should have now.
func (a *admission) state(p *plan, c aCase, now time.Time) (topology.State, string) {
	state := c.node.State
	if c.live.Drain {
		if state != topology.StateLeft {
			state = topology.StateDraining
		}
		return state, "drains"
	}
	if state == topology.StateActive {
		return state, ""
	}
	wait := c.seen.held(a.c)
	if state != topology.StateDown { // a return moves keys
		wait = max(wait, a.c.Join)
	}
	if here := now.Sub(c.seen.since); here < wait {
		p.dueIn(wait - here)
		if state != topology.StateDown {
			state = topology.StateJoining
		}
		return state, "comes back"
	}
	return topology.StateActive, "is there"
}

// declare makes n the declared node. The mark tells the intention first.
func (p *plan) declare(c aCase, n topology.Node, why string) {
	m := Mark{ID: n.ID, State: n.State}
	if c.mark != nil {
		m = *c.mark
	}
	if m.Next = n.State; c.mark == nil || m != *c.mark {
		p.marks = append(p.marks, m)
	}
	p.nodes = append(p.nodes, change{id: n.ID, to: n, why: why})
}

// settle makes the mark say what is declared, and by whose asking.
func (p *plan) settle(c aCase) {
	var m Mark
	if c.mark != nil {
		m = *c.mark
	}
	if c.live == nil && !c.ours() {
		return
	}
	if c.live == nil || c.ours() || c.starts() {
		m.State, m.Next = c.node.State, c.node.State
	}
	m.ID, m.Admitted = c.node.ID, true
	if l := c.live; l != nil {
		weight := l.Weight
		if equal(m.Weight, weight) {
			weight = m.Weight // pointers are compared below
		}
		m.Owner, m.Incarnation, m.Addr, m.Zone, m.Weight = l.Owner, l.Incarnation, l.Addr, l.Zone, weight
	}
	if c.mark == nil || m != *c.mark {
		p.marks = append(p.marks, m)
	}
}
