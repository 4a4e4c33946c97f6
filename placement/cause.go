package placement

import (
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// Kinds of cause, as CauseKind finds them; several are joined by ", ".
const (
	CauseCreated    = "created"            // no version before
	CauseAlgorithm  = "algorithm changed"  // another algorithm
	CauseParameters = "parameters changed" // another size, unit or variant of the same algorithm
	CauseKeyHash    = "key hash changed"   // another key hash or hash tag
	CauseReplicas   = "replicas changed"   // another number of replicas or zone rule
	CauseAdded      = "nodes added"        // own keys now, did not before
	CauseRemoved    = "nodes removed"      // owned keys before, do not now
	CauseWeights    = "weights changed"    // own keys before and now, by another weight
	CauseZones      = "zones changed"      // stand in another zone
	CauseLabels     = "labels changed"     // a foreign mapping hashes another text or place of them
	CauseDetails    = "details changed"    // addresses, states, load bound: no key moves
	CauseNone       = "no change"          // the same spec and nodes
	CauseStep       = "step"               // of a transition: more keys have moved, or fewer
)

// CauseKind says in words what changes from prev (nil for none) to spec and
// nodes, which must be valid. O(n log n).
func CauseKind(prev *topology.Topology, spec topology.Spec, nodes []topology.Node) string {
	if prev == nil {
		return CauseCreated
	}
	kinds := specCauses(prev.Spec(), spec.Normal())
	kinds = append(kinds, nodeCauses(prev, spec.Normal(), nodes)...)
	switch {
	case len(kinds) > 0:
		return strings.Join(kinds, ", ")
	case prev.Spec() != spec.Normal() || detailsChanged(prev, nodes):
		return CauseDetails
	}
	return CauseNone
}

// remapping reports whether keys may move between unchanged nodes without fault.
func remapping(a, b topology.Spec) bool { return len(specCauses(a, b)) > 0 }

func specCauses(a, b topology.Spec) []string {
	var kinds []string
	add := func(changed bool, kind string) {
		if changed {
			kinds = append(kinds, kind)
		}
	}
	add(a.Name() != b.Name(), CauseAlgorithm)
	add(a.Name() == b.Name() && parameters(a) != parameters(b), CauseParameters)
	add(a.Algorithm != topology.Compat && b.Algorithm != topology.Compat && (a.KeyHash != b.KeyHash || a.HashTag != b.HashTag), CauseKeyHash)
	add(a.Replicas != b.Replicas || a.ZoneAware != b.ZoneAware, CauseReplicas)
	return kinds
}

// parameters returns the algorithm's own part of a spec.
func parameters(s topology.Spec) topology.Spec {
	s.KeyHash, s.HashTag, s.Replicas, s.ZoneAware, s.BoundedLoad = "", "", 0, false, 0
	return s
}

func nodeCauses(prev *topology.Topology, spec topology.Spec, nodes []topology.Node) []string {
	now := make(map[string]topology.Node, len(nodes))
	for _, n := range nodes {
		now[n.ID] = n
	}
	var added, removed, weights, zones, labels bool
	before := prev.Spec()
	foreign := before.Algorithm == topology.Compat && spec.Algorithm == topology.Compat
	owners := 0
	for _, was := range prev.Nodes() {
		is := now[was.ID]
		a, b := before.OwnerWeight(was), spec.OwnerWeight(is)
		removed = removed || a > 0 && b == 0
		weights = weights || a > 0 && b > 0 && a != b
		zones = zones || a > 0 && b > 0 && was.Zone != is.Zone
		labels = labels || foreign && a > 0 && b > 0 &&
			(was.Position != is.Position && is.Position != 0 || spec.Compat.HashedText(was) != spec.Compat.HashedText(is))
		added = added || a == 0 && b > 0
		if b > 0 {
			owners++
		}
	}
	for _, n := range now {
		if spec.OwnerWeight(n) > 0 {
			owners--
		}
	}
	added = added || owners < 0 // some owners are not in prev at all
	var kinds []string
	for _, k := range []struct {
		is   bool
		kind string
	}{{added, CauseAdded}, {removed, CauseRemoved}, {weights, CauseWeights}, {zones, CauseZones}, {labels, CauseLabels}} {
		if k.is {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}

func detailsChanged(prev *topology.Topology, nodes []topology.Node) bool {
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b topology.Node) int { return strings.Compare(a.ID, b.ID) })
	return !slices.Equal(sorted, prev.Nodes())
}
