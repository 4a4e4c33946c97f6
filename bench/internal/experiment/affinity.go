package experiment

import (
	"context"

	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// affinity: model serving. A request whose prefix a server has seen of late is a
// tenth of the work, so it should go back there, but not into a long queue.
func affinity() *Experiment {
	return &Experiment{
		Name: "affinity", Page: "keyed-load.md", About: "prefixes that are cheap where they were served before: hits and waits by load bound",
		Uses:     []string{"n", "c", "seeds", "units"},
		Most:     mostNodes,
		Defaults: Params{N: []int{16}, C: []float64{1.1, 1.25, 1.5, 2}, Seeds: 3, Units: 4000},
		Run:      runAffinity,
	}
}

const (
	prefixes    = 4000
	prefixSkew  = 1.05
	prefixesHot = 600 // that a server remembers
	hitWork     = .1  // of a miss
	affinityAll = .35 // utilisation if every request were a hit, by hitWork
)

func runAffinity(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		for _, c := range append([]float64{0, -1}, e.C...) {
			row := Row{Params: []Param{{"n", n}, {"route", "bounded"}, {"c", c}}}
			switch c {
			case 0:
				row.Params = []Param{{"n", n}, {"route", "p2c"}}
			case -1:
				row.Params = []Param{{"n", n}, {"route", "owner"}}
			}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playAffinity(ctx, e, n, c, seed) }})
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(1))
	if err == nil {
		bestBound(rows)
	}
	return rows, err
}

// bestBound says that a bound of 1.25 hits more often than P2C and does better at
// p99 than going to the owner whatever its load.
func bestBound(rows []Row) {
	var p2c, owner float64
	for i := range rows {
		if n, _ := rows[i].Param("n"); n != 16 {
			continue
		}
		switch r := &rows[i]; r.paramText("route") {
		case "p2c":
			p2c, _ = r.Get("hits")
		case "owner":
			owner, _ = r.Get("p99")
		default:
			if c, _ := r.Param("c"); c == 1.25 {
				r.Checks = []Check{atLeast("hits", p2c), atMost("p99", owner)}
			}
		}
	}
}

func playAffinity(ctx context.Context, e *Env, n int, c float64, seed uint64) ([]Metric, error) {
	cl, err := newCluster(topology.Spec{Algorithm: topology.Rendezvous}, n)
	if err != nil {
		return nil, err
	}
	k := newKeys(seed, prefixes, prefixSkew)
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(n, sim.Server{}), Rate: affinityAll / hitWork * float64(n),
		Warmup: units(1000), Window: units(e.window(1500)),
	}}
	caches := make([]*lru, n)
	for i := range caches {
		caches[i] = newLRU(prefixesHot)
	}
	hits, asked := 0, 0
	prefix := func() int { return 0 }
	f.cfg.Work = func(server, _ int, dice *sim.Dice) float64 {
		work := dice.Exp()
		asked++
		if _, hit := caches[server].get(prefix()); hit {
			hits++
			work *= hitWork
		}
		return work
	}
	if c == 0 {
		keys := sim.NewDice(seed, 300)
		prefix = func() int { return k.draw(keys) }
		if err := f.client("p2c", setting{}, nil); err != nil {
			return nil, err
		}
		r, err := f.run()
		if err != nil {
			return nil, err
		}
		return affinityMetrics(r, hits, asked), nil
	}
	r, err := newRouted(ctx, f, cl, 1, k, sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: c}))
	if err != nil {
		return nil, err
	}
	defer r.close()
	prefix = func() int { return r.key }
	result, err := r.run()
	if err != nil {
		return nil, err
	}
	return affinityMetrics(result, hits, asked), nil
}

func affinityMetrics(r *sim.Result, hits, asked int) []Metric {
	return []Metric{
		{"hits", float64(hits) / float64(max(1, asked))}, {"p50", r.Quantile(.5)}, {"mean", r.Mean}, {"p99", r.Quantile(.99)}, {"peak", float64(r.Peak)},
	}
}
