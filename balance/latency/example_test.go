package latency_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/latency"
)

// Peak EWMA under P2C: the slow node is left alone until its peak has faded.
func Example() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("fast", 0), Weight: 1},
		{Node: balance.NewNode("slow", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	peak, err := latency.NewPeakEWMA(latency.PeakConfig{Decay: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewP2C(set, peak)
	if err != nil {
		panic(err)
	}
	took := map[string]time.Duration{"fast": time.Millisecond, "slow": time.Second}
	count := map[string]int{}
	for k := range 1000 {
		now := time.Duration(k) * 5 * time.Millisecond
		t, err := picker.Pick(now, uint64(k), nil)
		if err != nil {
			panic(err)
		}
		count[t.Node().ID()]++
		t.Done(now+took[t.Node().ID()], balance.Outcome{Result: balance.Success})
	}
	fmt.Println(count["slow"] < 5)
	// Output: true
}
