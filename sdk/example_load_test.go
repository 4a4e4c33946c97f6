package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/latency"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/shardtest"
)

// Requests without a key go by any policy of package balance; here P2C over
// latencies and requests in flight.
func ExampleBalance() {
	client, err := sdk.New(fixed{exampleTopology()}, sdk.WithBalance(sdk.Balance{
		Policy: func(set *balance.Set) (balance.Picker, error) {
			cost, err := latency.NewPeakEWMA(latency.PeakConfig{})
			if err != nil {
				return nil, err
			}
			return balance.NewP2C(set, cost)
		},
		Replicas: true, // and among the replicas of a key
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	if err := client.WaitReady(ctx); err != nil {
		fmt.Println(err)
		return
	}
	held := map[string]bool{}
	for range 3 { // three at the same time: three nodes
		t, err := client.AcquireAny(ctx, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer t.Done(sdk.Success)
		held[t.ID()] = true
	}
	fmt.Println(len(held) > 1)
	// Output: true
}

// Servers put what they hold into their replies: a hot key's node is full of other
// clients' requests, and this client's first one goes elsewhere at once.
func ExampleLoadView() {
	plane := shardtest.New(tb{}, "a", "b", "c")
	client := plane.Client(sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25, View: sdk.ReportedLoad}))
	defer client.Close()
	plane.Assign("hot", "a")
	ctx := context.Background()

	for range 2 {
		t, err := client.Acquire(ctx, "hot", 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("at home:", t.ID() == "a")
		t.Report(40) // from the reply: a has 40 in flight, of all clients
		t.Done(sdk.Success)
	}
	for _, n := range client.LoadStats().Nodes {
		node := n
		fmt.Println(node.ID, "acquired", node.Acquired, "load", node.Load > 0, "refusals", node.Refusals)
	}
	// Output:
	// at home: true
	// at home: false
	// a acquired 1 load true refusals 1
	// b acquired 1 load true refusals 0
	// c acquired 0 load false refusals 0
}

// What an error says of the node that it came from.
func ExampleOutcome() {
	for _, err := range []error{nil, context.DeadlineExceeded, context.Canceled, os.ErrNotExist} {
		o := sdk.OutcomeOf(err)
		fmt.Println(err, "->", o)
	}
	// Output:
	// <nil> -> success
	// context deadline exceeded -> timeout
	// context canceled -> ignored
	// file does not exist -> failure
}

// This process cannot reach a: requests go round it, and its keys stay its own.
func ExampleOverlay() {
	plane := shardtest.New(tb{}, "a", "b", "c")
	client := plane.Client()
	defer client.Close()
	plane.Assign("user:1", "a")
	client.SetHealth("a", false)

	route, err := client.Route("user:1")
	fmt.Println(route.ID() != "a", "owner", route.Owner().ID, route.Detour(), errors.Is(err, sdk.ErrNotReady))
	o := client.Overlay()
	fmt.Println("around", o.Around, "ignored:", o.Ignored)
	// Output:
	// true owner a true false
	// around [a] ignored: false
}
