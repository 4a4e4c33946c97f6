package experiment

import (
	"context"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// hotKeys: keys by Zipf's law on FIFO servers, each key on R of them, and a client
// that takes the replica with fewer requests in flight of two.
func hotKeys() *Experiment {
	return &Experiment{
		Name: "hotkeys", Page: "keyed-load.md", About: "hot keys with 1, 2, 4 and 8 replicas: the busiest node, and waits",
		Uses:     []string{"n", "m", "seeds", "units"},
		Most:     mostNodes,
		Defaults: Params{N: []int{50}, M: []int{1, 20}, Seeds: 3, Units: 2000},
		Run:      runHotKeys,
		Plot:     plotHotKeys,
	}
}

// hotLoad is the utilisation of the fleet. With 10,000 keys by Zipf's law of
// exponent 1 the hottest has a tenth of the requests: with one replica its node
// alone would have to be several.
const hotLoad = .5

func runHotKeys(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		for _, m := range e.M {
			for _, replicas := range []int{1, 2, 4, 8} {
				row := Row{Params: []Param{{"n", n}, {"m", m}, {"replicas", replicas}}, Policy: "p2c"}
				cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) {
					return playHotKeys(ctx, e, n, m, replicas, seed)
				}})
			}
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(1))
	for i := 1; i < len(rows); i++ {
		before, _ := rows[i-1].Get("busiest/mean")
		n, _ := rows[i].Param("n")
		if r, _ := rows[i].Param("replicas"); r > 1 && n == 50 {
			rows[i].Checks = []Check{atMost("busiest/mean", before)} // more replicas, more even
		}
	}
	return rows, err
}

func playHotKeys(ctx context.Context, e *Env, n, m, replicas int, seed uint64) ([]Metric, error) {
	cl, err := newCluster(topology.Spec{Algorithm: topology.Ring, Replicas: uint32(replicas)}, n)
	if err != nil {
		return nil, err
	}
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(n, sim.Server{}), Rate: hotLoad * float64(n),
		Warmup: units(500), Window: units(e.window(1000)),
	}}
	policy := sdk.WithBalance(sdk.Balance{Replicas: true, Policy: func(s *balance.Set) (balance.Picker, error) { return balance.NewP2C(s, nil) }})
	r, err := newRouted(ctx, f, cl, m, newKeys(seed, 10000, 1), policy)
	if err != nil {
		return nil, err
	}
	defer r.close()
	result, err := r.run()
	if err != nil {
		return nil, err
	}
	busiest := 0
	for _, p := range result.Picks {
		busiest = max(busiest, p)
	}
	return []Metric{
		{"busiest/mean", float64(busiest*n) / float64(result.Arrivals)}, {"p50", result.Quantile(.5)}, {"mean", result.Mean},
		{"p99", result.Quantile(.99)}, {"peak", float64(result.Peak)},
	}, nil
}
