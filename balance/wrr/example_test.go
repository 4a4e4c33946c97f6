package wrr_test

import (
	"fmt"

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
