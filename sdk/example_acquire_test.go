package sdk_test

import (
	"context"
	"fmt"

	"github.com/shardd/shardd/resilience/retry"
	"github.com/shardd/shardd/sdk"
)

// A node is bounded to 1.25 times its share of the load; what is above goes to the
// next in the key's order, and the statistics say how much.
func ExampleClient_Acquire() {
	client, err := sdk.New(fixed{exampleTopology()}, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 1.25}))
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
	send := func() {
		t, err := client.Acquire(ctx, "hot", 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer t.Done(sdk.Ignored) // if nothing else was said
		// ... send to t.Addr() ...
		t.Done(sdk.Success)
	}
	for range 10 {
		send()
	}
	s := client.LoadStats()
	fmt.Printf("%d requests, %.0f %% at home, %d in flight\n", s.Acquired, 100*s.HomeRate(), s.Total)
	// Output: 10 requests, 100 % at home, 0 in flight
}

// Do makes a request that failed before work began again, at another node.
func ExampleClient_Do() {
	client, err := sdk.New(fixed{exampleTopology()}, sdk.WithResilience(sdk.Resilience{}))
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
	var tried []string
	err = client.Do(ctx, sdk.Call{Key: "user:1"}, func(_ context.Context, t *sdk.Ticket) error {
		tried = append(tried, t.ID())
		if len(tried) == 1 {
			return retry.As(retry.Dial, fmt.Errorf("no route to %s", t.Addr()))
		}
		return nil
	})
	fmt.Println(len(tried), "nodes, all different:", tried[0] != tried[1], err)
	// Output: 2 nodes, all different: true <nil>
}
