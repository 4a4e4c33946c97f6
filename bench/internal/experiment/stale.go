package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
)

// stale: homo, but the dispatcher reads queue lengths from a board to which they
// are copied every T.
func stale() *Experiment {
	return &Experiment{
		Name: "stale", Page: "policies-load.md", About: "queue lengths are shown late, with and without counting what was sent since",
		Uses: []string{"n", "lambda", "T", "policies", "seeds", "units"},
		Defaults: Params{
			N: []int{100}, Lambda: []float64{.9}, T: []float64{0, .5, 1, 5, 30, 50}, Seeds: 3, Units: 50000,
			Policies: []string{"p2c", "d3", "jsq", "grpc-wrr"},
		},
		Run:  runStale,
		Plot: plotStale,
	}
}

func runStale(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("random", "p2c", "p2c-repl", "d3", "d5", "left2", "left3", "jsq", "grpc-wrr"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, n := range e.N {
		for _, lambda := range e.Lambda {
			for _, policy := range e.Policies {
				for _, bump := range []bool{false, true} {
					if bump && slices.Contains([]string{"random", "grpc-wrr"}, policy) {
						continue // they do not look at queues
					}
					for _, t := range e.T {
						cells = append(cells, staleCell(e, n, lambda, t, policy, bump))
					}
				}
			}
		}
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return e.skips(c.row) })
	return e.mediansOf(ctx, cells, e.seeds(1))
}

func staleCell(e *Env, n int, lambda, t float64, policy string, bump bool) cell {
	row := Row{Params: []Param{{"n", n}, {"lambda", lambda}, {"T", t}}, Policy: policy, Bump: bump}
	if n == 100 && lambda == .9 {
		row.Checks = staleChecks(policy, bump, t)
	}
	return cell{row, func(seed uint64) ([]Metric, error) { return playStale(e, row, seed, n, lambda, t) }}
}

func playStale(e *Env, row Row, seed uint64, n int, lambda, t float64) ([]Metric, error) {
	quick := 8000.
	if t > 20 {
		quick = 20000 // slow queues take long to show
	}
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(n, sim.Server{}), Rate: lambda * float64(n),
		Warmup: warmup, Window: units(e.window(quick)),
	}}
	b := newBoard(n, row.Bump)
	var cost balance.Cost
	if t > 0 {
		cost = b
	}
	if err := f.client(row.Policy, setting{cost: cost}, nil); err != nil {
		return nil, err
	}
	if err := f.start(); err != nil {
		return nil, err
	}
	if t > 0 && row.Policy != "grpc-wrr" {
		b.copyEvery(f.sim, units(t))
	}
	f.report(max(units(t), sim.Unit), reportSmooth)
	return sojourn(f.sim.Run()), nil
}

// reportSmooth is over how long servers average what they report. Over one
// service time rates would be noise.
const reportSmooth = 100 * time.Second

// staleT are the ages of the accepted values.
var staleT = []float64{0, .5, 1, 5, 30, 50}

// staleMeans are the accepted means at staleT, with their tolerance.
var staleMeans = map[string]struct {
	means     []float64
	tolerance float64
}{
	"p2c":      {[]float64{2.64, 2.81, 2.96, 4.00, 8.93, 12.51}, .02},
	"d3":       {[]float64{2.06, 2.34, 2.59, 4.34, 13.74, 21.06}, .02},
	"jsq":      {[]float64{1.07, 2.84, 4.05, 12.2, 107, 0}, .03},
	"jsq bump": {[]float64{1.07, 1.59, 1.85, 2.65, 3.80, 4.13}, .03},
}

func staleChecks(policy string, bump bool, t float64) []Check {
	name := policy
	if bump {
		name = fmt.Sprint(policy, " bump")
	}
	switch {
	case policy == "grpc-wrr":
		// No herd: never worse than looking at nothing, however old the report.
		return []Check{atMost("mean", 10)}
	case name == "jsq" && t == 50:
		return []Check{between("mean", 280, 450)}
	}
	k := slices.Index(staleT, t)
	x, ok := staleMeans[name]
	if k < 0 || !ok {
		return nil
	}
	return []Check{within("mean", x.means[k], x.tolerance)}
}
