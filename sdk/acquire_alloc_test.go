package sdk_test

import (
	"testing"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Acquire and Done allocate nothing, on whatever way they go.
func TestAcquireAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	spec := topology.Spec{Algorithm: topology.Ring, Replicas: 2, BoundedLoad: 1.25}
	f := func(name string, opts ...sdk.Option) {
		t.Helper()
		l := newLine(t)
		c, feed := start(t, opts...)
		all := nodes(20)
		for i := range all {
			all[i].Zone = string(rune('a' + i%3))
		}
		mustGive(t, feed, l.publish(spec, all...))
		for range 100 { // the home of "hot" is over its cap
			acquire(t, c, "hot", 3)
		}
		ctx := t.Context()
		i := 0
		keys := []string{"a", "hot", "b", "c", "hot", "d"}
		if got := testing.AllocsPerRun(500, func() {
			tk, err := c.Acquire(ctx, keys[i%len(keys)], 2)
			if err != nil {
				t.Fatal(err)
			}
			tk.Report(7)
			tk.Done(sdk.Success)
			i++
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
		if s := c.LoadStats(); s.Diverted == 0 && s.LeftZone == 0 && name != "policy" {
			t.Errorf("%s: nothing was diverted", name)
		}
	}
	f("bounded")
	f("lagging", sdk.WithBoundedLoad(sdk.BoundedLoad{TotalEvery: 32}))
	f("reported", sdk.WithBoundedLoad(sdk.BoundedLoad{View: sdk.ReportedLoad}))
	f("policy", sdk.WithBalance(sdk.Balance{Replicas: true}))
	f("resilience", sdk.WithResilience(sdk.Resilience{}))
	f("zone", sdk.WithZone("b"))
	f("all", sdk.WithZone("b"), sdk.WithBalance(sdk.Balance{Replicas: true}), sdk.WithResilience(sdk.Resilience{}))
}
