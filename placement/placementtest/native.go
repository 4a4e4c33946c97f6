package placementtest

import (
	"math"
	"slices"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Table is a native table as a Mapping.
type Table struct{ *placement.Table }

// Owner returns the id of the node that owns key, "" if no node owns any.
func (t Table) Owner(key string) string {
	i, err := t.Table.Owner(key)
	if err != nil {
		return ""
	}
	return t.Topology().Node(i).ID
}

// Replicas returns the first n nodes of key's preference order.
func (t Table) Replicas(key string, n int) []string {
	var ids []string
	for _, i := range t.AppendNodes(nil, []byte(key), n) {
		ids = append(ids, t.Topology().Node(i).ID)
	}
	return ids
}

// Native returns a spec of this module as a subject, with the bounds that its
// documentation states.
func Native(name string, spec topology.Spec) Subject {
	spec = spec.Normal()
	s := Subject{
		Name:    name,
		Next:    func(prev Mapping, nodes []topology.Node) (Mapping, error) { return next(prev, spec, nodes, nil) },
		Reload:  reload,
		History: spec.Algorithm == topology.Jump || spec.Algorithm == topology.Maglev || spec.Algorithm == topology.Slots,
		Zones:   spec.ZoneAware,
		// Any of a slot's copies may become its primary, and uneven weights can
		// force a copy from one unchanged node to another; the report's
		// certificate says when they did not.
		Moves:    spec.Algorithm == topology.Slots && spec.Replicas > 1,
		Replicas: int(spec.Replicas),
		Refuses:  func(nodes []topology.Node) bool { return tooUneven(spec, nodes) },
	}
	if s.History {
		s.Replace = func(prev Mapping, nodes []topology.Node, old, by string) (Mapping, error) {
			return next(prev, spec, nodes, map[string]string{old: by})
		}
	}
	if spec.Algorithm != topology.Jump && spec.Algorithm != topology.Rendezvous {
		s.Shares = shares
	}
	s.Tolerance = tolerance(spec)
	return s
}

func next(prev Mapping, spec topology.Spec, nodes []topology.Node, replace map[string]string) (Mapping, error) {
	var before *placement.Table
	seq := uint64(1)
	if prev != nil {
		before = prev.(Table).Table
		seq = before.Topology().Version().Seq + 1
	}
	d := topology.Draft{Cluster: "laws", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: seq}, Spec: spec, Nodes: nodes}
	table, err := placement.UpdateWith(before, d, placement.UpdateOptions{Replace: replace})
	if err != nil {
		return nil, err
	}
	return Table{table}, nil
}

// reload takes a table through the bytes of a saved topology. The topology
// carries the mapping digest, so New also proves that both are the same.
func reload(m Mapping) (Mapping, error) {
	saved, err := m.(Table).Topology().MarshalSaved()
	if err != nil {
		return nil, err
	}
	t, err := topology.UnmarshalSaved(saved)
	if err != nil {
		return nil, err
	}
	table, err := placement.New(t)
	if err != nil {
		return nil, err
	}
	return Table{table}, nil
}

func shares(m Mapping) map[string]float64 {
	t := m.(Table)
	out := make(map[string]float64)
	for i, share := range t.Shares() {
		out[t.Topology().Node(i).ID] = share
	}
	return out
}

// tooUneven reports whether some node's exact share of a table is below one
// entry, so that the table may have none for it.
func tooUneven(spec topology.Spec, nodes []topology.Node) bool {
	size := spec.TableSize + spec.SlotCount + spec.RendezvousTable
	if size == 0 {
		return false
	}
	if spec.RendezvousTable > 0 {
		size /= 32 // drawn by chance: e^-32 that a node gets none
	}
	var total, least uint64 = 0, math.MaxUint64
	for _, n := range nodes {
		if w := uint64(n.OwnerWeight()); w > 0 {
			total += w
			least = min(least, w)
		}
	}
	return total > 0 && least*uint64(size) < total
}

// tolerance returns the bound that each algorithm states for a node's share.
func tolerance(spec topology.Spec) func(weight, total uint32, nodes int) float64 {
	switch spec.Algorithm {
	case topology.Maglev, topology.Slots:
		if spec.Algorithm == topology.Slots && spec.Replicas > 1 {
			return nil // shares of copies, not of first copies, are bounded
		}
		// Quotas are the exact share rounded down or up.
		return func(_, _ uint32, _ int) float64 { return 1.001 / float64(spec.TableSize+spec.SlotCount) }
	case topology.Ring:
		// The share of k of K random points has a standard deviation of
		// sqrt(k (K-k) / (K+1)) / K; 6 of them.
		return func(weight, total uint32, _ int) float64 {
			k, all := float64(weight*spec.VNodes), float64(total*spec.VNodes)
			return 6*math.Sqrt(k*(all-k)/(all+1))/all + 1e-12
		}
	}
	draws := float64(countedKeys)
	if spec.RendezvousTable > 0 {
		draws = min(draws, float64(spec.RendezvousTable))
	}
	// A binomial count of keys, 6 standard deviations and a key.
	return func(weight, total uint32, _ int) float64 {
		p := float64(weight) / float64(total)
		return 6*math.Sqrt(2*p*(1-p)/draws) + 2/draws
	}
}

// without returns nodes less the one with this id.
func without(nodes []topology.Node, id string) []topology.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n topology.Node) bool { return n.ID == id })
}
