package lalb_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/lalb"
)

// Weights follow measured latency: a node that takes 1 ms weighs four times as
// much as one that takes 4 ms.
func Example() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("near", 0), Weight: 1},
		{Node: balance.NewNode("far", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	picker, err := lalb.New(set, lalb.Config{})
	if err != nil {
		panic(err)
	}
	for i, took := range []time.Duration{time.Millisecond, 4 * time.Millisecond} {
		t := picker.Set().Take(i, 0)
		t.Done(took, balance.Outcome{Result: balance.Success})
	}
	fmt.Printf("%.2f %.2f\n", picker.Share(0), picker.Share(1))
	// Output: 0.80 0.20
}
