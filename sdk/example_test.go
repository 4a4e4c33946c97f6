package sdk_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// fixed is a source that knows one topology. Programs use sdk/etcdsource or
// sdk/httpsource.
type fixed struct{ topology *topology.Topology }

func (s fixed) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	if err := fn(s.topology); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// exampleTopology is what a controller would have published.
func exampleTopology() *topology.Topology {
	table, err := placement.Update(nil, topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
		Spec: topology.Spec{Algorithm: topology.Ring, Replicas: 2},
		Nodes: []topology.Node{
			{ID: "cache-a", Addr: "10.0.0.1:11211", Weight: 1},
			{ID: "cache-b", Addr: "10.0.0.2:11211", Weight: 1},
			{ID: "cache-c", Addr: "10.0.0.3:11211", Weight: 1},
		}})
	if err != nil {
		panic(err)
	}
	return table.Topology()
}

func Example() {
	client, err := sdk.New(fixed{exampleTopology()}) // no I/O yet
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := client.WaitReady(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"user:1", "user:2", "user:3"} {
		route, err := client.Route(key)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(key, "->", route.Addr(), "by version", route.Version())
	}
	// Output:
	// user:1 -> 10.0.0.3:11211 by version 1.1
	// user:2 -> 10.0.0.3:11211 by version 1.1
	// user:3 -> 10.0.0.1:11211 by version 1.1
}

func ExampleClient_RouteN() {
	client, err := sdk.New(fixed{exampleTopology()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := client.WaitReady(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	routes, err := client.RouteN(nil, "user:1", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range routes {
		fmt.Println(r.ID())
	}
	// Output:
	// cache-c
	// cache-b
}

func ExampleClient_OnChange() {
	client, err := sdk.New(fixed{exampleTopology()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	called := make(chan struct{})
	cancel := client.OnChange(func(ch sdk.Change) {
		// A good place to close connections to nodes that have left.
		fmt.Println("now", ch.To.Len(), "nodes, version", ch.To.Version())
		close(called)
	})
	defer cancel()
	<-called
	// Output:
	// now 3 nodes, version 1.1
}
