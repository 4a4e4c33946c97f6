package experiment

import (
	"context"
	"slices"

	"github.com/shardd/shardd/bench/sim"
)

// homo: n equal servers, one dispatcher that sees true queues at no delay.
func homo() *Experiment {
	return &Experiment{
		Name: "homo", Page: "policies-load.md", About: "equal servers, one dispatcher that sees the true queues",
		Uses: []string{"n", "lambda", "policies", "seeds", "units"},
		Defaults: Params{
			N: []int{100}, Lambda: []float64{.5, .7, .9, .99}, Seeds: 3, Units: 50000,
			Policies: []string{"random", "rr", "p2c", "p2c-repl", "d3", "left2", "jsq"},
		},
		Run:  runHomo,
		Plot: plotHomo,
	}
}

func runHomo(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("random", "rr", "p2c", "p2c-repl", "d3", "d5", "left2", "left3", "jsq"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, n := range e.N {
		for _, lambda := range e.Lambda {
			for _, policy := range e.Policies {
				row := Row{Params: []Param{{"n", n}, {"lambda", lambda}}, Policy: policy}
				if n == 100 {
					row.Checks = homoChecks(policy, lambda)
				}
				if e.skips(row) {
					continue
				}
				cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) {
					return playHomo(e, policy, seed, n, lambda)
				}})
			}
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(1))
	if err == nil {
		compare(rows, "rr", "p99", "p99/p2c", between("", 2.5, 3))
		compare(rows, "p2c-repl", "mean", "mean/p2c", within("", 1, .015))
	}
	return rows, err
}

func playHomo(e *Env, policy string, seed uint64, n int, lambda float64) ([]Metric, error) {
	quick := 8000.
	if lambda > .95 || policy == "random" {
		quick = 20000 // long queues take long to show
	}
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(n, sim.Server{}), Rate: lambda * float64(n),
		Warmup: warmup, Window: units(e.window(quick)),
	}}
	if err := f.client(policy, setting{}, nil); err != nil {
		return nil, err
	}
	r, err := f.run()
	if err != nil {
		return nil, err
	}
	return sojourn(r), nil
}

// compare adds to rows of a policy the ratio of a metric to that of P2C under the
// same parameters, as a metric of its own, with a check if lambda is 0.9.
func compare(rows []Row, policy, metric, name string, check Check) {
	for i := range rows {
		r := &rows[i]
		if r.Policy != policy {
			continue
		}
		k := slices.IndexFunc(rows, func(o Row) bool { return o.Policy == "p2c" && slices.Equal(o.Params, r.Params) })
		if k < 0 {
			continue
		}
		a, _ := r.Get(metric)
		b, _ := rows[k].Get(metric)
		r.Set(name, a/b)
		lambda, _ := r.Param("lambda")
		n, _ := r.Param("n")
		if lambda == .9 && n == 100 {
			check.Metric = name
			r.Checks = append(r.Checks, check)
		}
	}
}

// homoChecks are the accepted values for n = 100.
func homoChecks(policy string, lambda float64) []Check {
	switch (key{policy, lambda}) {
	case key{"random", .9}:
		return []Check{within("mean", 10, .03), within("p99", 45.8, .05)}
	case key{"rr", .9}:
		return []Check{within("mean", 5.275, .03)}
	case key{"p2c", .9}:
		return []Check{within("mean", 2.647, .02), within("p99", 8.91, .02)}
	case key{"p2c-repl", .9}:
		return []Check{within("mean", 2.664, .02)}
	case key{"d3", .9}:
		return []Check{within("mean", 2.063, .02)}
	case key{"left2", .9}:
		return []Check{within("mean", 2.634, .02), within("p99", 8.85, .02)}
	case key{"jsq", .9}:
		return []Check{within("mean", 1.067, .02), within("p99", 4.88, .02)}
	case key{"random", .99}:
		return []Check{between("mean", 70, 105)}
	case key{"p2c", .99}:
		return []Check{between("mean", 5.6, 6.3)}
	case key{"p2c", .5}:
		return []Check{within("mean", 1.269, .02)}
	case key{"p2c", .7}:
		return []Check{within("mean", 1.622, .02)}
	}
	return nil
}

// key is a policy with the parameter that its accepted values depend on.
type key struct {
	policy string
	at     float64
}
