package membership

import (
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// A node that was added without a place in a foreign list is answered by the
// version that gave it one: no further version is made.
func TestAnswersGivesPlaces(t *testing.T) {
	spec := topology.Spec{Compat: topology.Foreign{Mode: topology.ModeGomemcache}}.Normal()
	d := topology.Declared{Cluster: "c", Spec: spec, Nodes: []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1, Position: 1}}}
	table, err := placement.Update(nil, topology.Draft{Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: spec, Nodes: d.Nodes})
	if err != nil {
		t.Fatal(err)
	}
	if !answers(table.Topology(), d) {
		t.Errorf("%v is not answered by %v", d.Nodes, table.Topology().Nodes())
	}
	d.Nodes[0].Position = 7
	if answers(table.Topology(), d) {
		t.Error("another place is answered already")
	}
}
