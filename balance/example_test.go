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

// fourNodes is a set of four nodes with 3, 0, 2 and 1 requests in flight.
func fourNodes() *balance.Set {
	var members []balance.Member
	for _, id := range []string{"a", "b", "c", "d"} {
		members = append(members, balance.Member{Node: balance.NewNode(id, 0), Weight: 1})
	}
	set, err := balance.NewSet(members)
	if err != nil {
		panic(err)
	}
	for i, held := range []int{3, 0, 2, 1} {
		for range held {
			set.Take(i, 0)
		}
	}
	return set
}

// The least of all: best for one client and few nodes. With many clients all of
// them see the same least one.
func ExampleFullScan() {
	scan, err := balance.NewFullScan(fourNodes(), nil)
	if err != nil {
		panic(err)
	}
	t, _ := scan.Pick(0, 1, nil)
	fmt.Println(t.Node().ID())
	// Output: b
}

// A key's replicas are some of the nodes; the policy chooses among those alone.
func ExampleAmong() {
	set := fourNodes()
	p2c, err := balance.NewP2C(set, nil)
	if err != nil {
		panic(err)
	}
	var among balance.Among = p2c
	t, err := among.PickAmong(0, 1, []int{0, 3}) // a has 3 in flight, d has 1
	if err != nil {
		panic(err)
	}
	fmt.Println(t.Node().ID())
	// Output: d
}

// The same choice as Envoy's LEAST_REQUEST and gRPC's least_request: draws may
// fall twice on one node, so the busier of two nodes gets a quarter.
func ExampleLeastRequest() {
	busy, idle := balance.NewNode("busy", 0), balance.NewNode("idle", 0)
	set, err := balance.NewSet([]balance.Member{{Node: busy, Weight: 1}, {Node: idle, Weight: 1}})
	if err != nil {
		panic(err)
	}
	set.Take(0, 0) // one request that does not end

	for _, c := range []balance.Choices{{D: 2, Replace: true}, {D: 2}} {
		picker, err := balance.NewLeastRequest(set, c)
		if err != nil {
			panic(err)
		}
		count := 0
		for k := range 100_000 {
			t, _ := picker.Pick(0, uint64(k), nil)
			if t.Node() == busy {
				count++
			}
			t.Done(0, balance.Outcome{Result: balance.Success})
		}
		fmt.Printf("%.0f%%\n", float64(count)/1000)
	}
	// Output:
	// 25%
	// 0%
}

// Ties go to the left group: idle nodes fill up from there, one after the other.
func ExampleGoLeft() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("left", 0), Weight: 1},
		{Node: balance.NewNode("right", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewGoLeft(set, 2, nil)
	if err != nil {
		panic(err)
	}
	for k := range 4 {
		t, _ := picker.Pick(0, uint64(k), nil)
		fmt.Print(t.Node().ID(), " ")
	}
	// Output: left right left right
}

// What nginx does with "random two least_conn".
func ExampleRandomTwo() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("busy", 0), Weight: 1},
		{Node: balance.NewNode("idle", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewRandomTwo(set, nil)
	if err != nil {
		panic(err)
	}
	set.Take(0, 0)
	t, _ := picker.Pick(0, 1, nil)
	fmt.Println(t.Node().ID())
	// Output: idle
}

// A node's counters for metrics: a Done that comes twice counts once.
func ExampleStats() {
	set := fourNodes()
	t := set.Take(1, 0)
	t.Done(0, balance.Outcome{Result: balance.Success})
	t.Done(0, balance.Outcome{Result: balance.Success})
	stats := set.Member(1).Node.Stats()
	fmt.Printf("%+v\n", stats)
	// Output: {InFlight:0 Expired:0 Repeated:1}
}

// audit is told of each request's beginning and end.
type audit struct{ begun, failed int }

func (a *audit) Start(int, time.Duration) { a.begun++ }

func (a *audit) Observe(_ int, _, _ time.Duration, o balance.Outcome) {
	if o.Result == balance.Failure {
		a.failed++
	}
}

// A policy of your own learns from its set: here it only counts.
func ExampleObserver() {
	var seen audit
	var observer balance.Observer = &seen
	_, begins := observer.(balance.Starter) // it wants to know of beginnings too
	set := fourNodes().Observed(observer)

	t := set.Take(0, 0) // chosen by whatever rule
	t.Done(time.Millisecond, balance.Outcome{Result: balance.Failure})
	fmt.Println(begins, seen.begun, seen.failed)
	// Output: true 1 1
}
