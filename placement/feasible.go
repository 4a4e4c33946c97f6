package placement

import "github.com/shardd/shardd/topology"

// Check says why the version after prev (nil for the first) that d asks for
// would be refused, with Update's errors, or returns nil: for those who accept a
// declaration before a version is made of it. What cannot be refused any more
// once d.Validate has passed, rings, Jump and exact rendezvous under a 64-bit
// hash, costs nothing; the rest costs what New and Update cost. A prev that
// cannot be built is left to whoever builds it.
func Check(prev *topology.Topology, d topology.Declared) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if lawful(d.Spec.Normal()) || prev != nil && prev.Cluster() != d.Cluster {
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
	_, err := Update(before, draft)
	return err
}

// lawful reports whether every node with weight owns something by law.
func lawful(s topology.Spec) bool {
	return s.KeyHash == topology.XXH64 &&
		(s.Algorithm == topology.Ring || s.Algorithm == topology.Jump || s.Algorithm == topology.Rendezvous && s.RendezvousTable == 0)
}
