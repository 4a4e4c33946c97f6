package placement

import (
	"fmt"
	"testing"

	"github.com/shardd/shardd/topology"
)

// someNodes returns n active nodes of weight 1.
func someNodes(n int) []topology.Node {
	nodes := make([]topology.Node, n)
	for i := range nodes {
		nodes[i] = topology.Node{ID: fmt.Sprintf("cache-%04d", i), Weight: 1}
	}
	return nodes
}

// draft returns a draft of version 1.seq.
func draft(seq uint64, spec topology.Spec, nodes []topology.Node) topology.Draft {
	return topology.Draft{Cluster: "test", ID: topology.ClusterID{1}, History: 7,
		Version: topology.Version{Epoch: 1, Seq: seq}, Spec: spec, Nodes: nodes}
}

// first returns the first version of a cluster.
func first(t testing.TB, spec topology.Spec, nodes []topology.Node) *Table {
	t.Helper()
	table, err := Update(nil, draft(1, spec, nodes))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// after returns the version that follows prev.
func after(t testing.TB, prev *Table, spec topology.Spec, nodes []topology.Node) *Table {
	t.Helper()
	table, err := Update(prev, draft(prev.topo.Version().Seq+1, spec, nodes))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func movement(t testing.TB, from, to *Table) Report {
	t.Helper()
	r, err := Movement(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
