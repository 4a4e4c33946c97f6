package sdk

import (
	"context"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/guard"
)

// acquireSlow is Acquire where anything is out of the ordinary.
func (c *Client) acquireSlow(ctx context.Context, s *snapshot, key string, cost int64) (Ticket, error) {
	p, err := c.admissible(ctx, s, cost)
	if err != nil {
		return Ticket{}, err
	}
	r := request{f: c.fleet, s: s, p: p, hash: s.table.Hash(key), cost: cost}
	return r.ticket(r.acquire(nil))
}

// ticket is what a request comes to in the end.
func (r *request) ticket(g grant, err error) (Ticket, error) {
	if err != nil {
		r.f.counters.unavailable.Add(1)
	}
	return Ticket{grant: g}, err
}

func (c *Client) admissible(ctx context.Context, s *snapshot, cost int64) (*plan, error) {
	switch p := s.plan.Load(); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.err != nil:
		return nil, s.err
	case uint64(cost-1) >= MaxCost:
		return nil, ErrCost
	default:
		return p, nil
	}
}

// acquireNext is Acquire where the first node of the key's order has refused.
func (c *Client) acquireNext(s *snapshot, p *plan, h uint64, cost int64) (Ticket, error) {
	r := request{f: c.fleet, s: s, p: p, hash: h, cost: cost}
	return r.ticket(r.acquire(nil))
}

// request is one admission under way.
type request struct {
	f     *fleet
	s     *snapshot
	p     *plan
	hash  uint64
	cost  int64
	now   time.Duration
	asked uint64
	tried []int // node indices that are not to be asked
}

// acquire asks the nodes that may take the request, in the order in which they
// are preferred. tried are nodes that have failed it already.
func (r *request) acquire(tried []string) (grant, error) {
	a := r.f.newAttempt()
	r.now, r.tried = r.f.now(), nil
	for _, id := range tried {
		if i := r.s.topology().Index(id); i >= 0 {
			r.tried = append(r.tried, i)
		}
	}
	i, standIn := r.choose(a)
	if i < 0 {
		r.f.counters.extra.Add(r.asked)
		r.f.drop(a)
		return grant{}, ErrUnavailable
	}
	if r.asked > 1 {
		r.f.counters.extra.Add(r.asked - 1)
	}
	t := grant{rec: &r.s.records[i], hash: r.hash, claim: newClaim(r.cost, 0)}
	if standIn {
		t.rec = &r.p.standIn[i]
	}
	if r.f.balance == nil && r.f.resil == nil {
		r.f.drop(a)
		return t, nil
	}
	if r.p.bal != nil && a.bal.Node() == nil { // chosen by order, counted by the policy
		a.bal = r.p.bal.Take(i, r.now)
	}
	t.more, t.claim = a, newClaim(r.cost, a.gen.Load())
	return t, nil
}

// choose returns the node that takes the request, reserved, or -1; standIn says
// that it is not the one the key prefers.
func (r *request) choose(a *attempt) (i int, standIn bool) {
	first := r.s.home(r.hash)
	copies := int(r.s.topology().Spec().Replicas)
	if r.p.local != nil {
		if i := r.local(a, copies); i >= 0 {
			r.f.counters.local.Add(1)
			return i, false
		}
	}
	if r.f.balance != nil && r.f.balance.Replicas && copies > 1 {
		if i := r.byPolicy(a, r.s.appendOrder(a.order[:0], r.hash, copies), r.p.set); i >= 0 {
			return i, false
		}
	}
	if i = r.walk(a, first); i < 0 {
		i = r.overCap(a, first)
	}
	if i >= 0 && i != first {
		r.f.counters.diverted.Add(1)
	}
	return i, i != first
}

// walk asks the key's order one after the other: a few nodes, then 4 times as
// many, and so on.
func (r *request) walk(a *attempt, first int) int {
	if (r.f.bound.View != SpillLoad || !r.spills(first)) && r.ask(a, r.p.set, first) {
		return first
	}
	within := r.within()
	for n, seen := min(4, within), 1; seen < within; n = min(4*n, within) {
		order := r.s.appendOrder(a.order[:0], r.hash, n)
		if len(order) <= seen {
			return -1
		}
		for _, i := range order[seen:] {
			if (r.f.bound.View != SpillLoad || !r.spills(i)) && r.ask(a, r.p.set, i) {
				return i
			}
		}
		if seen = len(order); seen < n {
			return -1
		}
	}
	return -1
}

func (r *request) within() int {
	if w := r.f.bound.Within; w > 0 {
		return w
	}
	return len(r.s.records)
}

func (r *request) spills(i int) bool { return r.p.set.Node(i).Spills(uint32(r.f.chance())) }

// overCap is where all have refused because of their load: the least loaded of
// them takes the request. Without a policy that can only be where the loads are
// estimates, or few nodes may be asked.
func (r *request) overCap(a *attempt, first int) int {
	order := r.s.appendOrder(a.order[:0], r.hash, r.within())
	for range order {
		i := r.p.set.Least(order)
		if i < 0 {
			break
		}
		if !slices.Contains(r.tried, i) && r.force(a, i) {
			return i
		}
		order = slices.DeleteFunc(order, func(k int) bool { return k == i })
	}
	if r.p.set.None() && !slices.Contains(r.tried, first) && r.force(a, first) { // everybody is down: the owner, as Route says
		return first
	}
	return -1
}

// force reserves the request at node i over its cap.
func (r *request) force(a *attempt, i int) bool {
	return r.admit(a, i) && (r.p.set.Node(i).Force(r.cost) || r.undo(a))
}

// undo takes a guard's admission back, of which nothing came, and returns false.
func (r *request) undo(a *attempt) bool {
	a.guard.Done(r.now, resilience.Ignored)
	a.guard = guard.Ticket{}
	return false
}

// ask reserves the request at node i if it is under its cap and well.
func (r *request) ask(a *attempt, set *bounded.Set, i int) bool {
	if len(r.tried) > 0 && slices.Contains(r.tried, i) || !r.well(i) {
		return false
	}
	r.asked++
	if !set.AdmitExact(i, r.cost) {
		return false
	}
	if r.admit(a, i) {
		return true
	}
	r.p.set.Node(i).Undo(r.cost)
	return false
}

// well reports whether the node is one that requests may go to; the plan knows
// it too, a moment later.
func (r *request) well(i int) bool {
	o := r.p.members[i].outlier
	return o == nil || o.Usable()
}

// admit asks the node's guard.
func (r *request) admit(a *attempt, i int) bool {
	g := r.p.members[i].guard
	if g == nil {
		return true
	}
	t, err := g.Admit(r.now, int(min(r.cost, 1<<30)))
	if err != nil {
		return false
	}
	a.guard = t
	return true
}

// local asks the replicas in the own zone.
func (r *request) local(a *attempt, copies int) int {
	order := r.s.appendOrder(a.order[:0], r.hash, copies)
	mine := slices.DeleteFunc(order, func(i int) bool { return r.s.topology().Node(i).Zone != r.f.zone })
	if len(mine) == 0 {
		return -1
	}
	i := -1
	if r.f.balance != nil && r.f.balance.Replicas {
		i = r.byPolicy(a, mine, r.p.local)
	} else if k := slices.IndexFunc(mine, func(i int) bool { return r.ask(a, r.p.local, i) }); k >= 0 {
		i = mine[k]
	}
	if i < 0 {
		r.f.counters.spilled.Add(1)
	}
	return i
}

// byPolicy lets the policy choose among some nodes, those that are under their
// caps and well. order is overwritten.
func (r *request) byPolicy(a *attempt, order []int, set *bounded.Set) int {
	for {
		order = slices.DeleteFunc(order, func(i int) bool { return slices.Contains(r.tried, i) || !set.Eligible(i) })
		if len(order) == 0 {
			return -1
		}
		t, err := r.pickAmong(a, order)
		if err != nil {
			return -1
		}
		i := t.Index()
		if r.ask(a, set, i) {
			a.bal = t
			return i
		}
		t.Done(r.now, balance.Outcome{})
		order = slices.DeleteFunc(order, func(k int) bool { return k == i })
	}
}

// pickAmong asks the policy for one of order. Policies that cannot choose among
// some are given all others as excluded, which costs O(n).
func (r *request) pickAmong(a *attempt, order []int) (balance.Ticket, error) {
	if r.p.among != nil {
		return r.p.among.PickAmong(r.now, r.f.chance(), order)
	}
	a.exclude = a.exclude[:0]
	for i, m := range r.p.members {
		if !slices.Contains(order, i) && m.bal != nil {
			a.exclude = append(a.exclude, m.bal)
		}
	}
	return r.p.picker.Pick(r.now, r.f.chance(), a.exclude)
}

// AcquireAny admits one request that any node may take, and says where it goes:
// by the policy of WithBalance, which for the zero Balance is P2C over requests in
// flight. Otherwise it is as Acquire. A client without WithBalance has no policy:
// ErrUnavailable.
func (c *Client) AcquireAny(ctx context.Context, cost int64) (Ticket, error) {
	s := c.snap.Load()
	p, err := c.admissible(ctx, s, cost)
	if err != nil {
		return Ticket{}, err
	}
	r := request{f: c.fleet, s: s, p: p, cost: cost}
	return r.ticket(r.any(nil))
}

// any picks by the policy until a node takes the request: at most once a node.
func (r *request) any(tried []string) (grant, error) {
	if r.p.picker == nil {
		return grant{}, ErrUnavailable
	}
	a := r.f.newAttempt()
	r.now = r.f.now()
	a.exclude = a.exclude[:0]
	for _, id := range tried {
		if i := r.s.topology().Index(id); i >= 0 {
			a.exclude = append(a.exclude, r.p.members[i].bal)
		}
	}
	for range r.p.members {
		t, err := r.p.picker.Pick(r.now, r.f.chance(), a.exclude)
		if err != nil {
			break
		}
		i := t.Index()
		if r.well(i) && r.admit(a, i) && (r.p.set.Node(i).Count(r.cost) || r.undo(a)) {
			a.bal = t
			return grant{rec: &r.s.records[i], claim: newClaim(r.cost, a.gen.Load()), more: a}, nil
		}
		t.Done(r.now, balance.Outcome{})
		a.exclude = append(a.exclude, t.Node())
	}
	r.f.drop(a)
	return grant{}, ErrUnavailable
}
