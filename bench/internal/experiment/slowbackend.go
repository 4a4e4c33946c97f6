package experiment

import (
	"context"
	"slices"
	"time"

	"github.com/shardd/shardd/bench/sim"
)

// slowBackend is Linkerd's example: one of eleven backends takes 2 s for half a
// minute; what share of the requests is answered within a second?
func slowBackend() *Experiment {
	return &Experiment{
		Name: "slow-backend", Page: "policies-latency.md", About: "one of 11 backends takes 2 s for 30 of 60 s: requests answered within 1 s",
		Uses: []string{"tau", "policies", "seeds"},
		Defaults: Params{
			Tau: []float64{10}, Seeds: 9,
			Policies: []string{"rr", "p2c", "least", "pewma", "ewma-inflight2", "lalb"},
		},
		Run: runSlowBackend,
	}
}

const (
	backends    = 11
	backendRate = 1000
)

func runSlowBackend(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("random", "rr", "p2c", "p2c-repl", "d3", "least", "pewma", "ewma-inflight2", "lalb", "swrr", "c3"); err != nil {
		return nil, err
	}
	limits := map[string][]Check{
		"rr": {between("within_1s", .953, .956)}, "p2c": {between("within_1s", .9980, .9993)},
		"least": {between("within_1s", .9986, .9996)}, "pewma": {atLeast("within_1s", .9995)},
	}
	var cells []cell
	for _, base := range []float64{20, 100} {
		for _, policy := range e.Policies {
			taus := []float64{10}
			if policy == "pewma" {
				taus = e.Tau
			}
			for _, tau := range taus {
				row := Row{Params: []Param{{"base_ms", base}}, Policy: policy}
				if policy == "pewma" {
					row.Params = append(row.Params, Param{"tau", tau})
				}
				if base == 20 && tau == 10 {
					row.Checks = slices.Clone(limits[policy])
				}
				cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) {
					return playSlowBackend(policy, base/1e3, units(tau), seed)
				}})
			}
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(3))
	if err == nil {
		inOrder(rows)
	}
	return rows, err
}

// inOrder says that of round robin, P2C, least loaded and Peak EWMA each answers no
// less in time than the one before it, whatever the base latency.
func inOrder(rows []Row) {
	best := map[float64]float64{}
	for _, policy := range []string{"rr", "p2c", "least", "pewma"} {
		for i := range rows {
			r := &rows[i]
			if tau, ok := r.Param("tau"); r.Policy != policy || ok && tau != 10 {
				continue
			}
			base, _ := r.Param("base_ms")
			within, _ := r.Get("within_1s")
			if limit := best[base]; limit > 0 {
				r.require(atLeast("within_1s", limit))
			}
			best[base] = max(best[base], within)
		}
	}
}

func playSlowBackend(policy string, base float64, tau time.Duration, seed uint64) ([]Metric, error) {
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(backends, sim.Server{Discipline: sim.Delay}), Rate: backendRate, Window: time.Minute,
	}}
	f.cfg.Work = func(server, _ int, dice *sim.Dice) float64 {
		took := base * dice.Exp()
		if now := f.sim.Now(); server == 0 && now >= 15*time.Second && now < 45*time.Second {
			return 2
		}
		return took
	}
	if err := f.client(policy, setting{tau: tau}, nil); err != nil {
		return nil, err
	}
	r, err := f.run()
	if err != nil {
		return nil, err
	}
	return []Metric{{"within_1s", r.Within(time.Second)}, {"slow_share", r.Share(0)}, {"mean", r.Mean}, {"p99", r.Quantile(.99)}}, nil
}
