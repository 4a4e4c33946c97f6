package topology_test

import (
	"fmt"

	"github.com/shardd/shardd/topology"
)

func ExampleNew() {
	t, err := topology.New(topology.Draft{
		Cluster: "cache",
		ID:      topology.ClusterID{1},
		History: 1,
		Version: topology.Version{Epoch: 1, Seq: 1},
		Spec:    topology.Spec{Algorithm: topology.Ring},
		Nodes: []topology.Node{
			{ID: "cache-b", Addr: "10.0.0.2:11211", Weight: 1},
			{ID: "cache-a", Addr: "10.0.0.1:11211", Weight: 1},
		},
		Cause: topology.Cause{Kind: "created"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Version(), t.Spec().VNodes, t.Node(0).ID)

	back, err := topology.Decode(t.Encode())
	fmt.Println(back.Digest() == t.Digest(), err)
	// Output:
	// 1.1 160 cache-a
	// true <nil>
}

func ExampleDeclared_Validate() {
	d := topology.Declared{
		Cluster: "cache",
		Spec:    topology.Spec{Algorithm: topology.Maglev, TableSize: 1000},
		Nodes:   []topology.Node{{ID: "a", Weight: 1}},
	}
	fmt.Println(d.Validate())
	// Output:
	// maglev.table_size: table size 1000 is not prime (a permutation would not reach every entry); the next prime is 1009
}
