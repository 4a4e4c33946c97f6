package placement

import (
	"fmt"

	"github.com/shardd/shardd/topology"
)

// Check says why the version after prev (nil for the first) that d asks for
// would be refused, with Update's errors, or returns nil: for those who accept a
// declaration before a version is made of it. Where every node owns something
// by law once d.Validate has passed, as in rings, Jump, exact rendezvous, and
// tables with an entry or more for each node, that costs O(n); the rest costs
// what New and Update cost. A prev that cannot be built is left to whoever
// builds it. Foreign mappings that are for planning are refused with ErrPlanOnly.
func Check(prev *topology.Topology, d topology.Declared) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if s := d.Spec.Normal(); s.Algorithm == topology.Compat && !s.Compat.Live() {
		return &topology.FieldError{Path: "compat.mode", Err: fmt.Errorf("%w: %s; compare it with what shall come (migrate plan --from FILE --to FILE), and publish that", ErrPlanOnly, describeForeign(s.Compat))}
	}
	if prev != nil && prev.Transition() != nil && prev.Cluster() == d.Cluster {
		// What is neither of its two mappings waits for its end.
		_, _, err := Heading(prev, d.Spec, d.Nodes)
		return err
	}
	if lawful(d.Spec.Normal(), d.Nodes) || prev != nil && prev.Cluster() != d.Cluster {
		return nil
	}
	draft := topology.Draft{Cluster: d.Cluster, ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
		Spec: d.Spec, Nodes: d.Nodes}
	var before *Table
	if prev != nil {
		var err error
		if before, err = New(prev); err != nil {
			return nil
		}
		ref := prev.Ref()
		draft.ID, draft.History, draft.Version = ref.ClusterID, ref.History, ref.Version
		draft.Version.Seq++
	}
	table, err := Update(before, draft)
	if err == nil && table.PlanOnly() {
		return &topology.FieldError{Path: "compat.mode", Err: fmt.Errorf("%w: some nodes of %s share points, which the key decides between; rename them so that no name is another with digits behind it", ErrPlanOnly, d.Spec.Compat.Mode)}
	}
	return err
}

// lawful reports whether every node with weight is certain to own something.
func lawful(s topology.Spec, nodes []topology.Node) bool {
	if s.KeyHash != topology.XXH64 {
		return false // 65,536 values may miss a small share
	}
	switch s.Algorithm {
	case topology.Ring, topology.Jump:
		return true
	case topology.Rendezvous:
		return s.RendezvousTable == 0
	case topology.Maglev:
		return ample(s.TableSize, nodes)
	case topology.Slots:
		return s.Replicas == 1 && !s.ZoneAware && ample(s.SlotCount, nodes)
	}
	return false
}

// ample reports whether the exact share of each node is an entry at least, so
// that rounding leaves it one.
func ample(entries uint32, nodes []topology.Node) bool {
	var total, least uint64
	for _, n := range nodes {
		if w := uint64(n.OwnerWeight()); w > 0 {
			if total == 0 || w < least {
				least = w
			}
			total += w
		}
	}
	return least*uint64(entries) >= total
}
