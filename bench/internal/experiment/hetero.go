package experiment

import (
	"context"

	"github.com/shardd/shardd/bench/sim"
)

// hetero: 20 servers of rate 0.5 and 80 of rate 1 at 80 % of their capacity.
func hetero() *Experiment {
	return &Experiment{
		Name: "hetero", Page: "policies-latency.md", About: "20 slow and 80 fast servers at 80 % of their capacity",
		Uses: []string{"tau", "policies", "seeds", "units"},
		Defaults: Params{
			Tau: []float64{10, 1, 50}, Seeds: 3, Units: 50000,
			Policies: []string{"p2c", "swrr", "pewma", "random", "rr", "jsq"},
		},
		Run:  runHetero,
		Plot: plotHetero,
	}
}

const (
	slowServers, fastServers = 20, 80
	heteroArrivals           = 72
)

// heteroServers are the slow ones and then the fast ones.
func heteroServers() []sim.Server {
	return append(sim.Equal(slowServers, sim.Server{Rate: .5}), sim.Equal(fastServers, sim.Server{})...)
}

func runHetero(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("random", "rr", "p2c", "p2c-repl", "d3", "d5", "jsq", "swrr", "wrr-expanded", "edf", "pewma", "ewma-inflight2", "c3"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, policy := range e.Policies {
		taus := []float64{0}
		if policy == "pewma" {
			taus = e.Tau
		}
		for _, tau := range taus {
			row := Row{Policy: policy, Checks: heteroChecks(policy, tau)}
			if policy == "pewma" {
				row.Params = []Param{{"tau", tau}}
			}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playHetero(e, policy, tau, seed) }})
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(1))
	if err == nil {
		lower(rows)
	}
	return rows, err
}

func playHetero(e *Env, policy string, tau float64, seed uint64) ([]Metric, error) {
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: heteroServers(), Rate: heteroArrivals,
		Warmup: warmup, Window: units(e.window(10000)),
	}}
	var weights []float64
	switch policy {
	case "swrr", "wrr-expanded", "edf":
		for i := range slowServers + fastServers {
			weights = append(weights, 2)
			if i < slowServers {
				weights[i] = 1
			}
		}
	}
	if err := f.client(policy, setting{tau: units(tau)}, nil, weights...); err != nil {
		return nil, err
	}
	r, err := f.run()
	if err != nil {
		return nil, err
	}
	return sojourn(r), nil
}

// lower adds to smooth round robin's row how much lower P2C's p99 is.
func lower(rows []Row) {
	var p2c float64
	for i := range rows {
		if rows[i].Policy == "p2c" {
			p2c, _ = rows[i].Get("p99")
		}
	}
	for i := range rows {
		if r := &rows[i]; r.Policy == "swrr" && p2c > 0 {
			p99, _ := r.Get("p99")
			r.Set("p2c_lower", 1-p2c/p99)
			r.Checks = append(r.Checks, between("p2c_lower", .20, .28))
		}
	}
}

func heteroChecks(policy string, tau float64) []Check {
	switch (key{policy, tau}) {
	case key{"p2c", 0}:
		return []Check{within("p99", 11.48, .03)}
	case key{"pewma", 10}:
		return []Check{within("p99", 12.10, .03), between("peak", 18, 28)}
	case key{"pewma", 1}:
		return []Check{within("p99", 29.2, .06)}
	case key{"pewma", 50}:
		return []Check{within("p99", 10.1, .06)}
	case key{"jsq", 0}:
		return []Check{within("p99", 5.74, .04)}
	case key{"random", 0}, key{"rr", 0}:
		return []Check{atLeast("mean", 500)}
	}
	return nil
}
