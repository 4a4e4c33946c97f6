package sim_test

import (
	"fmt"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
)

// Hundred servers at 90 %: P2C on the true queues.
func Example() {
	set, err := sim.NewSet(100)
	if err != nil {
		panic(err)
	}
	p2c, err := balance.NewP2C(set, nil)
	if err != nil {
		panic(err)
	}
	s, err := sim.New(sim.Config{
		Seed: 1, Servers: sim.Equal(100, sim.Server{}), Clients: []sim.Client{{Picker: p2c}},
		Rate: 90, Warmup: 500 * sim.Unit, Window: 2000 * sim.Unit,
	})
	if err != nil {
		panic(err)
	}
	r := s.Run()
	fmt.Printf("mean %.1f service times, longest queue %.0f\n", r.Mean, r.MeanLongest)
	// Output: mean 2.7 service times, longest queue 5
}
