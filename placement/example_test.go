package placement_test

import (
	"fmt"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func nodes(ids ...string) []topology.Node {
	var list []topology.Node
	for _, id := range ids {
		list = append(list, topology.Node{ID: id, Weight: 1})
	}
	return list
}

func draft(seq uint64, list []topology.Node) topology.Draft {
	return topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1,
		Version: topology.Version{Epoch: 1, Seq: seq},
		Spec:    topology.Spec{Algorithm: topology.Maglev, TableSize: 251},
		Nodes:   list,
	}
}

// A fourth node is added to a table of three: exactly its quota moves.
func Example() {
	three, err := placement.Update(nil, draft(1, nodes("a", "b", "c")))
	if err != nil {
		fmt.Println(err)
		return
	}
	four, err := placement.Update(three, draft(2, nodes("a", "b", "c", "d")))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := placement.Movement(three, four)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %.3f of the keys move by method %s, at least %.3f must; optimal: %v\n", r.Cause, r.Ratio, r.Method, r.Minimum, r.Optimal)
	for _, n := range r.Nodes {
		fmt.Printf("%s: %.3f -> %.3f\n", n.ID, n.Before, n.After)
	}
	// Output:
	// nodes added: 0.247 of the keys move by method table, at least 0.250 must; optimal: true
	// a: 0.335 -> 0.251
	// b: 0.335 -> 0.251
	// c: 0.331 -> 0.251
	// d: 0.000 -> 0.247
}

func ExampleTable_AppendReplicas() {
	d := draft(1, nodes("a", "b", "c", "d"))
	for i := range d.Nodes {
		d.Nodes[i].Zone = []string{"east", "west"}[i%2]
	}
	d.Spec = topology.Spec{Algorithm: topology.Rendezvous, Replicas: 2, ZoneAware: true}
	table, err := placement.Update(nil, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range table.AppendReplicas(nil, table.Hash("user:42"), 2) {
		n := table.Topology().Node(i)
		fmt.Println(n.ID, n.Zone)
	}
	// Output:
	// d west
	// a east
}
