package membership_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/topology"
)

// A controller turns declared nodes into versions; a watcher sees them.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memstore.New() // or etcdstore.New
	_, err := store.Create(ctx, topology.Declared{
		Cluster: "cache",
		Spec:    topology.Spec{Algorithm: topology.Ring},
		Nodes:   []topology.Node{{ID: "cache-a", Weight: 1}, {ID: "cache-b", Weight: 1}},
	}, "alice", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster := store.Open("cache")
	controller, err := membership.NewController(membership.ControllerConfig{Store: cluster, Elector: store, Cluster: "cache", ID: "host-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()

	enough := errors.New("enough")
	err = cluster.Watch(ctx, func(s membership.State) error {
		if s.Head == nil || s.Applied < s.Generation {
			return nil
		}
		fmt.Println(s.Head.Version(), s.Head.Cause().Kind, "by", s.Head.Cause().By)
		if s.Head.Version().Seq == 2 {
			return enough
		}
		edit := membership.AddNode(topology.Node{ID: "cache-c", Weight: 1})
		edit.By, edit.Expect = "bob", s.Generation
		_, err := cluster.Declare(ctx, edit)
		return err
	})
	fmt.Println(errors.Is(err, enough))
	cancel()
	<-ended
	// Output:
	// 1.1 created by alice
	// 1.2 nodes added by bob
	// true
}

// A node registers itself, and the controller admits it.
func ExampleRegister() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memstore.New() // or etcdstore.New
	if _, err := store.Create(ctx, topology.Declared{Cluster: "cache", Spec: topology.Spec{Algorithm: topology.Ring}}, "alice", ""); err != nil {
		fmt.Println(err)
		return
	}
	cluster := store.Open("cache")
	controller, err := membership.NewController(membership.ControllerConfig{Store: cluster, Elector: store, Cluster: "cache", ID: "host-1",
		Roster: cluster.(membership.Roster), Admission: membership.AdmissionConfig{Join: -1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()

	member, err := membership.Register(ctx, cluster.(membership.Registrar), membership.Registration{ID: "cache-a", Addr: "10.0.0.1:11211"})
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := errors.New("seen")
	_ = cluster.Watch(ctx, func(s membership.State) error {
		if s.Head == nil || s.Head.Index("cache-a") < 0 || s.Head.Node(0).State != topology.StateActive {
			return nil
		}
		fmt.Println(s.Head.Node(0).ID, s.Head.Node(0).State, "by", s.Head.Cause().By)
		return seen
	})
	fmt.Println(member.Close())
	cancel()
	<-ended
	// Output:
	// cache-a active by admission
	// <nil>
}
