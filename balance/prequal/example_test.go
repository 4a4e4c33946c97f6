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
