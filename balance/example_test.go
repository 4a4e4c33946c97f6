package balance_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
)

// A pool keeps the counters, a set is one topology, a picker is one policy over
// it.
func Example() {
	pool := balance.NewPool()
	nodes, err := pool.Update([]balance.Identity{{ID: "cache-a"}, {ID: "cache-b"}})
	if err != nil {
		panic(err)
	}
	set, err := balance.NewSet([]balance.Member{{Node: nodes[0], Weight: 1}, {Node: nodes[1], Weight: 1}})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewP2C(set, nil)
	if err != nil {
		panic(err)
	}

	first, _ := picker.Pick(0, 1, nil) // in flight
	second, _ := picker.Pick(0, 2, nil)
	fmt.Println(first.Node() != second.Node(), nodes[0].InFlight(), nodes[1].InFlight())

	first.Done(time.Millisecond, balance.Outcome{Result: balance.Success})
	fmt.Println(first.Done(time.Millisecond, balance.Outcome{Result: balance.Success}))

	// A retry does not go where the first attempt went.
	again, _ := picker.Pick(0, 3, []*balance.Node{second.Node()})
	fmt.Println(again.Node() == first.Node())
	// Output:
	// true 1 1
	// false
	// true
}

// Recent errors count as load, so that a node that fails fast does not draw all
// requests.
func ExampleErrorLoad() {
	node := balance.NewNode("cache-a", 0)
	set, err := balance.NewSet([]balance.Member{{Node: node, Weight: 1}})
	if err != nil {
		panic(err)
	}
	errors := balance.ErrorLoad{Each: 10, Decay: 10 * time.Second}
	picker, err := balance.NewP2C(set, &balance.InFlight{Errors: errors})
	if err != nil {
		panic(err)
	}
	t, _ := picker.Pick(0, 1, nil)
	t.Done(0, balance.Outcome{Result: balance.Failure})
	fmt.Printf("%.1f %.1f %.1f\n", errors.Of(node, 0), errors.Of(node, 10*time.Second), errors.Of(node, time.Minute))
	// Output: 10.0 3.7 0.0
}

// A set that changes makes a new picker over the same counters.
func ExamplePicker_next() {
	a, b := balance.NewNode("a", 0), balance.NewNode("b", 0)
	set, err := balance.NewSet([]balance.Member{{Node: a, Weight: 1}})
	if err != nil {
		panic(err)
	}
	var picker balance.Picker = balance.NewRandom(set)
	held, _ := picker.Pick(0, 1, nil)

	if set, err = balance.NewSet([]balance.Member{{Node: a, Weight: 1}, {Node: b, Weight: 0}}); err != nil {
		panic(err)
	}
	if picker, err = picker.Next(set); err != nil {
		panic(err)
	}
	t, _ := picker.Pick(0, 2, nil) // weight 0 gets no picks
	fmt.Println(t.Node().ID(), a.InFlight())
	held.Done(0, balance.Outcome{})
	t.Done(0, balance.Outcome{})
	fmt.Println(a.InFlight())
	// Output:
	// a 2
	// 0
}
