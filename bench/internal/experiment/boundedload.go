package experiment

import (
	"context"
	"slices"
	"time"

	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// boundedLoad: keys by Zipf's law on nodes whose load the SDK bounds, by what each
// client sees.
func boundedLoad() *Experiment {
	return &Experiment{
		Name: "bounded", Page: "keyed-load.md", About: "bounded load with one client and with many, by what the clients see",
		Uses:     []string{"n", "m", "c", "seeds", "units"},
		Most:     mostNodes,
		Defaults: Params{N: []int{20}, M: []int{1, 100}, C: []float64{1.1, 1.25, 1.5, 2}, Seeds: 5, Units: 40},
		Run:      runBoundedLoad,
		Plot:     plotBounded,
	}
}

// boundedRate is the number of arrivals in a mean service time; service is
// exponential and waits for nothing.
const boundedRate = 1000

func runBoundedLoad(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		for _, m := range e.M {
			cells = append(cells, boundedCell(ctx, e, n, m, "none", -1))
			for _, c := range e.C {
				for _, view := range []string{"own", "reported", "spill"} {
					cells = append(cells, boundedCell(ctx, e, n, m, view, c))
				}
			}
		}
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return e.skips(c.row) })
	return e.mediansOf(ctx, cells, e.seeds(5))
}

func boundedCell(ctx context.Context, e *Env, n, m int, view string, c float64) cell {
	row := Row{Params: []Param{{"n", n}, {"m", m}, {"view", view}}}
	if c > 0 {
		row.Params = append(row.Params, Param{"c", c})
	}
	if n == 20 && m == 100 && (c == 1.25 || c < 0) {
		row.Checks = map[string][]Check{
			"none": {between("peak/mean", 2.6, 4)}, "own": {between("peak/mean", 1.35, 1.55)},
			"reported": {between("peak/mean", 1.25, 1.45)}, "spill": {between("peak/mean", 1.25, 1.65)},
		}[view]
	}
	if n == 20 && m == 1 && view == "own" { // exact: the cap, rounded up, of a load that moves
		row.Checks = []Check{atMost("peak/mean", c+.06)}
	}
	return cell{row, func(seed uint64) ([]Metric, error) { return playBounded(ctx, e, n, m, view, c, seed) }}
}

func playBounded(ctx context.Context, e *Env, n, m int, view string, c float64, seed uint64) ([]Metric, error) {
	cl, err := newCluster(topology.Spec{Algorithm: topology.Rendezvous}, n)
	if err != nil {
		return nil, err
	}
	b := sdk.BoundedLoad{Factor: c, Fade: -1}
	switch view {
	case "reported":
		b.View = sdk.ReportedLoad
	case "spill":
		b.View = sdk.SpillLoad
	}
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(n, sim.Server{Discipline: sim.Delay}), Rate: boundedRate,
		Warmup: units(20), Window: units(e.window(40)),
	}}
	r, err := newRouted(ctx, f, cl, m, newKeys(seed, 1000, 1), sdk.WithBoundedLoad(b))
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.start(); err != nil {
		return nil, err
	}
	if view == "spill" {
		r.spillEvery(100*time.Millisecond, c)
	}
	result := r.sim.Run()
	return []Metric{
		{"peak/mean", result.MeanLongest * float64(n) / boundedRate}, {"at_home", r.athome()}, {"peak", float64(result.Peak)},
	}, nil
}

// spillEvery is the control loop of sdk.SpillLoad: it sees the loads of all every
// period and publishes what share each node turns away.
func (r *routed) spillEvery(period time.Duration, c float64) {
	n := len(r.cfg.Servers)
	shares, weights := make([]float64, n), make([]float64, n)
	for i := range weights {
		weights[i] = 1
	}
	spill := bounded.Spill{Factor: c}
	r.sim.Every(period, func() {
		own, all := make([]float64, n), make([]float64, n)
		for i := range all {
			all[i] = float64(r.sim.Load(i))
		}
		for i := range r.tickets {
			if t := &r.tickets[i]; t.Cost() > 0 && t.ID() == t.Route().Owner().ID {
				own[number0(t.ID())]++
			}
		}
		shares = spill.Next(shares, own, all, weights)
		published := map[string]float64{}
		for i, x := range shares {
			published[nodeID(i)] = x
		}
		for _, client := range r.clients {
			client.SetSpill(published)
		}
	})
}

// number0 is the number of a node by its id, 0 if it has none.
func number0(id string) int {
	n := 0
	for _, d := range id[1:] {
		n = 10*n + int(d-'0')
	}
	return n
}
