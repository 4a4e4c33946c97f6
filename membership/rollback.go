package membership

import (
	"slices"

	"github.com/shardd/shardd/topology"
)

// A rollback takes decisions back, not events: spec, weights and the set of nodes
// become what they were, but who is alive, and where, is what it is now. A node that
// came by registration and was down, joining, draining or gone in the version that
// is gone back to would otherwise be declared so again though it serves, and
// admission would take that for an operator's word.

// Rollback returns the edit that declares spec and nodes of an earlier version
// again, with its tables (Edit.Restore). Nodes that no agent has registered, by what
// roll says, become exactly what they were. One that an agent has registered keeps
// its weight and label of then, and
//
//   - the state that admission has given it since; one that an operator has set
//     since (as a drain) is taken back, to active, from which admission goes on;
//   - the address and the zone that its agent asks for, unless they are what they
//     were then.
//
// A node that registered later is no longer declared, as with ReplaceAll, and one
// that was removed since is there again: active, until admission finds its lease
// lost, unless it had left before that. Admission sees to everything else within its times.
func Rollback(old *topology.Topology, roll Roll) Edit {
	members := make(map[string]member, len(roll.Marks))
	for _, m := range roll.Marks {
		members[m.ID] = member{mark: &m}
	}
	for _, l := range roll.Live {
		m := members[l.ID]
		m.live = &l
		members[l.ID] = m
	}
	return Edit{Whole: true, Restore: old.Version(), Apply: func(now topology.Declared) (topology.Declared, error) {
		d := topology.Declared{Cluster: old.Cluster(), Spec: old.Spec(), Nodes: slices.Clone(old.Nodes())}
		for i, n := range d.Nodes {
			if m, ok := members[n.ID]; ok {
				d.Nodes[i] = m.backTo(n, declaredNode(now, n.ID))
			}
		}
		return d, nil
	}}
}

// member is what a roll has of one node; one of both is there.
type member struct {
	mark *Mark
	live *Live
}

// backTo returns the node that a rollback makes of then; now is zero if it is not
// declared.
func (m member) backTo(then, now topology.Node) topology.Node {
	n := then
	switch {
	case now.ID != "" && now.State == then.State:
	case now.ID != "" && m.mark != nil && (now.State == m.mark.State || now.State == m.mark.Next):
		n.State = now.State
	case now.ID == "" && m.live == nil && m.mark.State == topology.StateLeft && m.mark.Next == topology.StateLeft:
		n.State = topology.StateLeft // before it was removed
	default:
		n.State = topology.StateActive
	}
	addr, zone := "", ""
	if m.mark != nil {
		addr, zone = m.mark.Addr, m.mark.Zone
	}
	if m.live != nil {
		addr, zone = m.live.Addr, m.live.Zone
	}
	if addr != "" && (now.ID == "" || now.Addr != then.Addr) {
		n.Addr = addr
	}
	if zone != "" && (now.ID == "" || now.Zone != then.Zone) {
		n.Zone = zone
	}
	return n
}
