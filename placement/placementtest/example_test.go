package placementtest_test

import (
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/placement/placementtest"
	"github.com/shardd/shardd/topology"
)

// In a test of your own placement: a Mapping has names in and out. One that a
// placement.Table stands behind is a Table already.
func ExampleMapping() {
	next := func(prev placementtest.Mapping, nodes []topology.Node) (placementtest.Mapping, error) {
		var before *placement.Table
		if table, ok := prev.(placementtest.Table); ok {
			before = table.Table
		}
		table, err := placement.Update(before, topology.Draft{
			Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
			Spec: topology.Spec{Algorithm: topology.Rendezvous}, Nodes: nodes,
		})
		return placementtest.Table{Table: table}, err
	}
	_ = func(t *testing.T) {
		placementtest.Run(t, placementtest.Subject{Name: "mine", Next: next, Large: 100})
	}
}
