package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/shardtest"
)

// TestAcquireExcept: a request goes to the first node in its key's order that is not
// excepted, or to any that is not, and is in that node's load.
func TestAcquireExcept(t *testing.T) {
	c := shardtest.New(t, "a", "b", "c").Client(sdk.WithBalance(sdk.Balance{}))
	order, err := c.RouteN(nil, "k", 3)
	if err != nil {
		t.Fatal(err)
	}
	f := func(want string, wantErr error, except ...string) {
		t.Helper()
		ticket, err := c.AcquireExcept(t.Context(), sdk.Call{Key: "k", Cost: 5}, except)
		if ticket.ID() != want || !errors.Is(err, wantErr) {
			t.Errorf("without %v: %q, %v, want %q, %v", except, ticket.ID(), err, want, wantErr)
		}
		for _, n := range c.LoadStats().Nodes {
			if in := n.InFlight; (n.ID == want) != (in == 5) {
				t.Errorf("%s has %d in flight", n.ID, in)
			}
		}
		ticket.Done(sdk.Success)
	}
	f(order[0].ID(), nil)
	f(order[0].ID(), nil, "stranger")
	f(order[1].ID(), nil, order[0].ID())
	f(order[2].ID(), nil, order[1].ID(), order[0].ID())
	f("", sdk.ErrUnavailable, "a", "b", "c")
	for i := range 30 {
		ticket, err := c.AcquireExcept(t.Context(), sdk.Call{Any: true}, []string{"a", "c"})
		if err != nil || ticket.ID() != "b" || ticket.Cost() != 1 {
			t.Fatal(i, ticket.ID(), err)
		}
		ticket.Done(sdk.Success)
	}
	if _, err := c.AcquireExcept(t.Context(), sdk.Call{Any: true, Cost: 1}, []string{"a", "b", "c"}); !errors.Is(err, sdk.ErrUnavailable) {
		t.Error(err)
	}
	if _, err := c.AcquireExcept(t.Context(), sdk.Call{Key: "k", Cost: -1}, nil); !errors.Is(err, sdk.ErrCost) {
		t.Error(err)
	}
}

func ExampleClient_AcquireExcept() {
	client, err := sdk.New(fixed{exampleTopology()})
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
	first, err := client.Acquire(ctx, "user:1", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	failed := first.ID() // cannot be reached
	first.Done(sdk.Failure)
	second, err := client.AcquireExcept(ctx, sdk.Call{Key: "user:1"}, []string{failed})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Done(sdk.Success)
	fmt.Println(second.ID() != failed)
	// Output: true
}
