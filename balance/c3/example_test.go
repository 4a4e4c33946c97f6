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

// With rate control a replica gets no more than it has lately answered: the
// burst goes on to the others, or waits.
func ExampleRate() {
	node := balance.NewNode("r1", 0)
	set, err := balance.NewSet([]balance.Member{{Node: node, Weight: 1}})
	if err != nil {
		panic(err)
	}
	picker, err := c3.New(set, c3.Config{Rate: &c3.Rate{Initial: 3, Interval: 20 * time.Millisecond}})
	if err != nil {
		panic(err)
	}
	for range 4 {
		_, err := picker.Pick(0, 1, nil)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// c3: all nodes are at their rate limit
}
