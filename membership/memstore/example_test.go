package memstore_test

import (
	"context"
	"fmt"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/topology"
)

func Example() {
	ctx := context.Background()
	store := memstore.New()
	_, err := store.Create(ctx, topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring}}, "alice", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := store.Open("cache").Declare(ctx, membership.AddNode(topology.Node{ID: "cache-a", Weight: 1}))
	fmt.Println(state.Generation, len(state.Declared.Nodes), err)

	late := membership.SetWeight("cache-a", 2)
	late.Expect = 1 // what another operator saw before
	_, err = store.Open("cache").Declare(ctx, late)
	fmt.Println(err)
	// Output:
	// 2 1 <nil>
	// memstore: declare: membership: conflict: version changed: the declared state has generation 2, the edit was made from 1; read it again and decide anew
}
