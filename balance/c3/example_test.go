package c3_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/c3"
)

// Replies carry the server's queue and service time; the replica with the least
// expected time is next.
func Example() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("r1", 0), Weight: 1},
		{Node: balance.NewNode("r2", 0), Weight: 1},
		{Node: balance.NewNode("r3", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	picker, err := c3.New(set, c3.Config{})
	if err != nil {
		panic(err)
	}
	for i, queue := range []float64{4, 0, 2} {
		t := picker.Set().Take(i, 0)
		t.Done(5*time.Millisecond, balance.Outcome{
			Result: balance.Success, Service: 2 * time.Millisecond, Queue: queue, HasQueue: true,
		})
	}
	t, err := picker.Pick(5*time.Millisecond, 1, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(t.Node().ID())
	// Output: r2
}
