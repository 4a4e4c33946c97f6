package prequal_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/prequal"
)

// A query goes to the best of the recent probes; new probes go out beside it.
func Example() {
	var members []balance.Member
	for k := range 20 {
		members = append(members, balance.Member{Node: balance.NewNode(fmt.Sprint("n", k), 0), Weight: 1})
	}
	set, err := balance.NewSet(members)
	if err != nil {
		panic(err)
	}
	picker, err := prequal.New(set, prequal.Config{})
	if err != nil {
		panic(err)
	}
	// Answers to earlier probes: requests in flight there, expected latency.
	picker.Report(3, 0, 2, 9*time.Millisecond)
	picker.Report(7, 0, 1, 5*time.Millisecond)
	picker.Report(9, 0, 8, 1*time.Millisecond) // hot

	t, err := picker.Pick(time.Millisecond, 1, nil)
	if err != nil {
		panic(err)
	}
	probe := picker.Probes(1, nil)
	fmt.Println(t.Node().ID(), len(probe))
	// Output: n7 3
}

// The server's half answers probes: requests in flight now, of all clients, and
// the latency of requests that began at about that number.
func ExampleServer() {
	server := prequal.NewServer()
	rif := server.Begin() // a request comes in
	server.End(rif, 12*time.Millisecond)

	server.Begin()
	inFlight, latency := server.Load() // a probe
	fmt.Println(inFlight, latency)
	// Output: 1 12ms
}

// A weighted sum in place of the hot-cold rule, to compare with.
func ExampleLinear() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("quick but busy", 0), Weight: 1},
		{Node: balance.NewNode("slow but idle", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	for _, mix := range []float64{0, 1} {
		linear := prequal.Linear{Mix: mix, PerRIF: 10 * time.Millisecond}
		picker, err := prequal.New(set, prequal.Config{Linear: &linear})
		if err != nil {
			panic(err)
		}
		picker.Report(0, 0, 9, 5*time.Millisecond)
		picker.Report(1, 0, 0, 20*time.Millisecond)
		t, err := picker.Pick(time.Millisecond, 1, nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(mix, t.Node().ID())
		t.Done(time.Millisecond, balance.Outcome{Result: balance.Success})
	}
	// Output:
	// 0 quick but busy
	// 1 slow but idle
}
