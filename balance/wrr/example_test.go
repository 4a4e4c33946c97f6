package wrr_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/wrr"
)

// Smooth spreads the turns of 5:1:1; EDF and Expanded take them in a row.
func Example() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("a", 0), Weight: 5},
		{Node: balance.NewNode("b", 0), Weight: 1},
		{Node: balance.NewNode("c", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	smooth, err := wrr.NewSmooth(set, wrr.SmoothConfig{})
	if err != nil {
		panic(err)
	}
	for _, p := range []balance.Picker{smooth, wrr.NewEDF(set)} {
		for range 7 {
			t, err := p.Pick(0, 0, nil)
			if err != nil {
				panic(err)
			}
			fmt.Print(t.Node().ID())
			t.Done(0, balance.Outcome{Result: balance.Success})
		}
		fmt.Println()
	}
	// Output:
	// aabacaa
	// aaaaabc
}

func weighted(weights ...float64) *balance.Set {
	var members []balance.Member
	for k, w := range weights {
		members = append(members, balance.Member{Node: balance.NewNode(string(rune('a'+k)), 0), Weight: w})
	}
	set, err := balance.NewSet(members)
	if err != nil {
		panic(err)
	}
	return set
}

// turns prints the next n picks, each done at once.
func turns(p balance.Picker, n int) {
	for range n {
		t, err := p.Pick(0, 0, nil)
		if err != nil {
			panic(err)
		}
		fmt.Print(t.Node().ID())
		t.Done(0, balance.Outcome{Result: balance.Success})
	}
	fmt.Println()
}

// Each client begins elsewhere, so that clients that start together do not go
// round in step.
func ExampleRoundRobin() {
	set := weighted(1, 1, 1)
	for client := range uint32(3) {
		turns(wrr.NewRoundRobin(set, client), 6)
	}
	// Output:
	// abcabc
	// bcabca
	// cabcab
}

// All turns of a node in a row.
func ExampleExpanded() {
	expanded, err := wrr.NewExpanded(weighted(3, 2), 0)
	if err != nil {
		panic(err)
	}
	turns(expanded, 10)
	// Output: aaabbaaabb
}

// Exact shares without a lock, for any number of nodes.
func ExampleStride() {
	stride := wrr.NewStride(weighted(4, 2, 1), 0)
	turns(stride, 14)
	// Output: abcaabacabaaba
}

// What nginx does with least_conn: requests in flight by weight, turns among
// equals.
func ExampleLeastConn() {
	set := weighted(2, 1)
	least := wrr.NewLeastConn(set)
	for range 6 { // none of them ends
		t, err := least.Pick(0, 0, nil)
		if err != nil {
			panic(err)
		}
		fmt.Print(t.Node().ID())
	}
	// Output: ababaa
}

// What Envoy does with LEAST_REQUEST where weights differ; bias 0 looks at the
// weights alone.
func ExampleWeightedLeast() {
	for _, bias := range []float64{1, 0} {
		set := weighted(3, 2)
		for range 4 {
			set.Take(0, 0) // a is busy
		}
		picker, err := wrr.NewWeightedLeast(set, wrr.WeightedLeastConfig{Bias: &bias})
		if err != nil {
			panic(err)
		}
		turns(picker, 10)
	}
	// Output:
	// abbbabbbba
	// abaababaab
}

// Weights made from what servers report: rate / utilisation. A node that carries
// 100 requests a second at 25 % can carry 400, whatever the others do.
func ExampleReported() {
	set := weighted(1, 1)
	reported := wrr.NewReported(set, wrr.ReportedConfig{Blackout: -1}, 0)
	reported.Report(0, 0, wrr.Load{QPS: 100, Utilization: 0.25})
	reported.Report(1, 0, wrr.Load{QPS: 100, Utilization: 0.5})
	fmt.Println(reported.Weights(time.Second))
	turns(reported, 6)
	// Output:
	// [400 200]
	// abaaba
}
