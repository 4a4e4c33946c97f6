package placement

import (
	"slices"
	"sync"

	"github.com/shardd/shardd/topology"
)

// past is what OwnedSince looks at, made when it is first asked.
type past struct {
	once  sync.Once
	base  topology.Version // nothing that the nodes tell reaches back further
	lost  topology.Version // the last loss of any node
	last  topology.Version // the last change of any kind: for what is not known better
	peak  *peak            // for ring and rendezvous; nil if there are too many points
	table *entrySince      // for the mappings with tables; nil if their object is not there
}

// OwnedSince returns the version since which requests for the keys of hash h have
// gone to node i without a gap, as far as that is recorded: what the node stored
// for such a key under an earlier tenure may have been overwritten elsewhere since.
// A node that is published as down serves nothing: it has a gap, and those that
// stand in for it have a tenure. A node that does not serve the key has the zero
// version. While all owners are down they serve as if they were not, each version
// anew.
//
// Where it is not known exactly the version is a later one, never an earlier:
//
//   - under rendezvous that of the node's own last gain, of keys that it had before,
//     too; of a node that shrank the last change of all;
//   - under the zone rule, and beside the owner, that of a change among the nodes
//     ahead of it which need not have mattered; while a node is down under the zone
//     rule, and for what stands in under slots, the last change of all;
//   - under a foreign mapping without Redis' slots the last loss of any node, and any
//     change of those that move keys between others;
//   - the version of the topology without a record.
//
// The first call on a table makes an index, which costs what building a table
// does (PrepareOwnedSince).
func (t *Table) OwnedSince(h uint64, i int) topology.Version {
	return t.servedSince(h, i, t.replicas)
}

// FirstSince is OwnedSince for who stores a key at the first of its nodes only:
// the version since which that has been node i without a gap. With one replica the two
// are the same; with more a node may have had the key all the time as a further
// replica, and missed what went to the first.
func (t *Table) FirstSince(h uint64, i int) topology.Version { return t.servedSince(h, i, 1) }

// servedSince is since when node i has been among the first so many that serve h.
func (t *Table) servedSince(h uint64, i, copies int) topology.Version {
	if t.kind == kindSteps {
		return t.steps.servedSince(h, i, copies)
	}
	var room [4 * topology.MaxReplicas]int
	ahead, serves := t.ahead(room[:0], h, i, copies)
	if !serves {
		return topology.Version{}
	}
	r := t.topo.Tenure()
	if r == nil || t.downs != nil && t.downs[i] {
		return t.topo.Version()
	}
	t.PrepareOwnedSince()
	q := question{h: h, i: i, copies: copies, ahead: ahead, zoned: t.zoned && copies > 1}
	return t.past.since(t, r, &q)
}

// PrepareOwnedSince makes the index that the first call of OwnedSince would make,
// so that no request waits for it. It is safe to call at any time, also twice.
func (t *Table) PrepareOwnedSince() {
	if t.kind == kindSteps {
		t.steps.before.PrepareOwnedSince()
		t.steps.after.PrepareOwnedSince()
		return
	}
	if r := t.topo.Tenure(); r != nil {
		t.past.once.Do(func() { t.past.make(t, r) })
	}
}

// markDowns remembers which owners are down; nil if none is.
func (t *Table) markDowns() {
	for i, n := range t.topo.Nodes() {
		if n.State != topology.StateDown || t.topo.Spec().OwnerWeight(n) == 0 {
			continue
		}
		if t.downs == nil {
			t.downs = make([]bool, t.topo.Len())
		}
		t.downs[i] = true
	}
}

// ahead appends the nodes that serve the keys of hash h before node i does, and
// reports whether it is among the first so many that do.
func (t *Table) ahead(dst []int, h uint64, i, copies int) ([]int, bool) {
	switch {
	case t.downs != nil:
		dst = t.serving(dst, h, copies)
	case copies <= 1:
		return dst, t.locate(h) == i
	default:
		dst = t.AppendReplicas(dst, h, copies)
	}
	k := slices.Index(dst, i)
	return dst[:max(0, k)], k >= 0
}

// serving appends the nodes that requests for h go to: the first of its order that
// are up, or those that are down if none is up.
func (t *Table) serving(dst []int, h uint64, copies int) []int {
	var room [4 * topology.MaxReplicas]int
	order := room[:0]
	for n := 4 * t.replicas; ; n *= 4 {
		order = t.AppendReplicas(order[:0], h, n)
		dst = dst[:0]
		for _, i := range order {
			if !t.downs[i] && len(dst) < copies {
				dst = append(dst, i)
			}
		}
		if len(dst) == copies || len(order) < n {
			break
		}
	}
	if len(dst) == 0 {
		dst = append(dst, order[:min(copies, len(order))]...)
	}
	return dst
}

func (p *past) make(t *Table, r *topology.Tenure) {
	p.base = later(r.Floor, r.Moved)
	p.last = p.base
	for _, n := range r.Nodes {
		p.lost = later(p.lost, n.Lost)
		p.last = later(p.last, later(n.Lost, n.Gained))
	}
	switch t.kind {
	case kindMaglev, kindSlots, kindJump:
		if p.table = newEntrySince(t); p.table != nil {
			for _, v := range p.table.versions {
				p.last = later(p.last, v)
			}
		}
	case kindRing, kindHRW, kindHRWTable:
		if !t.compat() {
			p.peak = newPeak(t, r)
		}
	}
}

// question is what is asked: since when node i, which serves the keys of hash h
// among the first so many, has done so.
type question struct {
	h      uint64
	i      int
	copies int
	ahead  []int // the nodes that serve it before node i does
	zoned  bool  // the zone rule has a say
}

func (p *past) since(t *Table, r *topology.Tenure, q *question) topology.Version {
	g := gap{slack: q.copies - 1 - len(q.ahead)}
	if q.zoned { // what changes ahead of it may change the zones
		g.slack = 0
	}
	known := false
	switch {
	case t.zoned && t.downs != nil && (q.zoned || t.locate(q.h) != q.i):
	case t.kind == kindMaglev || t.kind == kindSlots || t.kind == kindJump:
		if p.table == nil {
			return t.topo.Version()
		}
		if known = p.table.look(&g, t, q); known && q.zoned {
			g.own = later(g.own, p.base)
		}
	case p.peak != nil:
		known = p.peak.look(&g, t, q)
		g.own = later(g.own, p.base)
	case t.compat():
		known, g.own = true, later(later(p.base, p.lost), r.Node(t.topo.Node(q.i).ID).Gained)
	}
	if !known {
		return p.last
	}
	return g.since()
}

// gap is what may have stood between a node and a key.
type gap struct {
	own   topology.Version // since when it has what makes it serve the key
	slack int              // so many more may be ahead of it, and it serves all the same
	// newest are the newest changes ahead of it, each for one node more that was
	// there before, as many as count: one more than slack, descending.
	newest [topology.MaxReplicas]topology.Version
}

// add notes a change; zero is none.
func (g *gap) add(v topology.Version) {
	for i := range g.newest[:g.slack+1] {
		if g.newest[i].Compare(v) < 0 {
			g.newest[i], v = v, g.newest[i]
		}
	}
}

// since is from when on so few changes were to come that it has served ever since.
func (g *gap) since() topology.Version { return later(g.own, g.newest[g.slack]) }

// servedSince is that during a transition. A key that has gone over is its new
// server's since keys began to go over, or since a node last went down or came up
// (before that, nobody wrote it there), one that has not is its old server's as it
// was, save where keys went back meanwhile. Who serves it on both sides has it
// throughout.
func (s *steps) servedSince(h uint64, i, copies int) topology.Version {
	side, other, turned := s.after, s.before, s.up
	if s.side(h) == s.before {
		side, other, turned = s.before, s.after, s.back
	}
	since := side.servedSince(h, i, copies)
	if since.IsZero() {
		return since
	}
	if both := other.servedSince(h, i, copies); !both.IsZero() {
		turned = earlier(turned, both)
	}
	return later(since, turned)
}
