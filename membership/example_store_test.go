package membership_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/topology"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// published is a store with a cluster of two nodes whose first version is out.
func published(ctx context.Context) (store *memstore.Store, cluster membership.ClusterStore) {
	store = memstore.New() // or etcdstore.New
	_, err := store.Create(ctx, topology.Declared{
		Cluster: "cache",
		Spec:    topology.Spec{Algorithm: topology.Slots},
		Nodes:   []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}},
	}, "alice", "")
	check(err)
	cluster = store.Open("cache")
	controlled(ctx, store, cluster)
	return store, cluster
}

// controlled runs a controller until all that is declared is published.
func controlled(ctx context.Context, store *memstore.Store, cluster membership.ClusterStore) {
	controller, err := membership.NewController(membership.ControllerConfig{Store: cluster, Elector: store, Cluster: "cache", ID: "host-1"})
	check(err)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()
	_ = cluster.Watch(ctx, func(s membership.State) error {
		if s.Head != nil && s.Applied == s.Generation {
			cancel()
		}
		return nil
	})
	<-ended
}

// Clusters by name: made, listed, deleted.
func ExampleDirectory() {
	ctx := context.Background()
	var clusters membership.Directory = memstore.New()
	state, err := clusters.Create(ctx, topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring}}, "alice", "")
	check(err)
	names, err := clusters.List(ctx)
	fmt.Println(names, err)

	fmt.Println(clusters.Delete(ctx, "cache", state.ID))
	_, err = clusters.Open("cache").Load(ctx)
	fmt.Println(errors.Is(err, membership.ErrNoCluster))
	// Output:
	// [cache] <nil>
	// <nil>
	// true
}

// A deleted cluster is remembered by its id: another one of the same name is no
// store that was replaced.
func ExampleDeletions() {
	ctx := context.Background()
	store := memstore.New()
	first, err := store.Create(ctx, topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring}}, "alice", "")
	check(err)
	check(store.Delete(ctx, "cache", first.ID))
	_, err = store.Create(ctx, topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring}}, "bob", "")
	check(err)

	gone, err := store.Open("cache").(membership.Deletions).Deleted(ctx)
	fmt.Println(len(gone), gone[0] == first.ID, err)
	// Output: 1 true <nil>
}

// What was published, what moved, and a version as it was.
func ExampleReader() {
	ctx := context.Background()
	store, cluster := published(ctx)
	_, err := cluster.Declare(ctx, membership.AddNode(topology.Node{ID: "c", Weight: 1}))
	check(err)
	controlled(ctx, store, cluster)

	var reader membership.Reader = cluster
	versions, err := reader.Versions(ctx)
	check(err)
	for _, v := range versions {
		fmt.Printf("%s %s: %d nodes, %.4f moved\n", v.Version, v.Cause.Kind, v.Nodes, v.Ratio)
	}
	report, err := reader.Movement(ctx, versions[1].Version)
	check(err)
	fmt.Printf("at least %.4f\n", report.Minimum)
	old, err := reader.Version(ctx, versions[0].Version)
	check(err)
	fmt.Println(old.Len(), "nodes in", old.Version())
	// Output:
	// 1.1 created: 2 nodes, 0.0000 moved
	// 1.2 nodes added: 3 nodes, 0.3333 moved
	// at least 0.3333
	// 2 nodes in 1.1
}

// Edits wait for a controller; the state says which, by whom and how far it is.
func ExampleState() {
	ctx := context.Background()
	_, cluster := published(ctx)
	edit := membership.SetWeight("b", 2)
	edit.By, edit.Why = "bob", "more memory"
	state, err := cluster.Declare(ctx, edit)
	check(err)

	fmt.Println(state.Head.Version(), "generation", state.Generation, "applied", state.Applied)
	pending := state.Edits
	fmt.Println(pending[0].Generation, pending[0].By, pending[0].Why)
	// Output:
	// 1.1 generation 2 applied 1
	// 2 bob more memory
}

// While a cluster is frozen its edits are taken, and nothing is published.
func ExampleFreeze() {
	ctx := context.Background()
	_, cluster := published(ctx)
	state, err := cluster.Freeze(ctx, &membership.Freeze{By: "alice", Why: "trade fair"})
	check(err)
	standing := state.Standing
	fmt.Println(standing.Frozen.Err())

	careful := membership.SetWeight("b", 2)
	careful.HeedFreeze = true // refused instead
	_, err = cluster.Declare(ctx, careful)
	fmt.Println(errors.Is(err, membership.ErrFrozen))

	state, err = cluster.Freeze(ctx, nil)
	fmt.Println(state.Frozen == nil, err)
	// Output:
	// membership: frozen: frozen by alice: trade fair; nothing is published until shardd unfreeze
	// true
	// true <nil>
}

// A client shows a version that the store does not know: the store went back. It
// publishes nothing more until an operator begins an epoch.
func ExampleEpochs() {
	ctx := context.Background()
	_, cluster := published(ctx)
	var epochs membership.Epochs = cluster
	state, err := cluster.Load(ctx)
	check(err)
	held := state.Head.Ref()
	held.Version.Seq = 7 // what the client holds; the backup is of 1.1
	noted, err := epochs.Show(ctx, membership.Shown{Ref: held, By: "client 10.0.0.9"})
	fmt.Println(noted, err)

	state, err = cluster.Load(ctx)
	check(err)
	fmt.Println(errors.Is(state.Err(state.Head.Ref()), membership.ErrWentBack))
	var bump membership.Bump
	bump, err = state.Bump(nil, topology.Cause{By: "alice"}, time.Unix(0, 0))
	check(err)
	check(epochs.Bump(ctx, nil, bump))
	state, err = cluster.Load(ctx)
	fmt.Println(state.Head.Version(), len(state.Shown), err)
	// Output:
	// true <nil>
	// true
	// 2.1 0 <nil>
}

// A publication is checked against where the cluster stands: one that was made
// from an older head is refused, and nothing is written.
func ExamplePublication() {
	ctx := context.Background()
	store, cluster := published(ctx)
	var leader membership.Leadership
	leader, err := store.Campaign(ctx, "cache", "host-2")
	check(err)
	defer func() { check(leader.Resign(ctx)) }()

	state, err := cluster.Load(ctx)
	check(err)
	late := membership.Publication{Generation: state.Generation} // made before there was a head
	at := state.Position()
	fmt.Println(at.Head.Version, errors.Is(at.Check(late), membership.ErrConflict))
	fmt.Println(errors.Is(cluster.Publish(ctx, leader, late), membership.ErrConflict))
	// Output:
	// 1.1 true
	// true
}

// What a controller says of itself, for a readiness check.
func ExampleController_Status() {
	store, cluster := published(context.Background())
	controller, err := membership.NewController(membership.ControllerConfig{Store: cluster, Elector: store, Cluster: "cache", ID: "host-2"})
	check(err)
	s := controller.Status() // before Run
	fmt.Println("leading:", s.Leading, "published:", s.Applied == s.Generation, "error:", s.Err)
	// Output: leading: false published: true error: <nil>
}
