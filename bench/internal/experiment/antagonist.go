package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/bench/sim"
)

// antagonist is the example of the Prequal paper: machines that may burst above
// what was allotted to them, and two whose neighbours do not let them, when
// demand is above the allotment.
func antagonist() *Experiment {
	return &Experiment{
		Name: "antagonist", Page: "policies-latency.md", About: "100 servers allotted 40 % of a machine, demand 1.1 of that, two of them cannot burst",
		Uses:     []string{"m", "seeds"},
		Defaults: Params{M: []int{100}, Seeds: 3},
		Run:      runAntagonist,
	}
}

const (
	allotment    = .4  // of a machine
	demand       = 1.1 // of the allotment
	queryWork    = .08 // seconds of a machine
	hobbled      = 2   // servers
	antagonistN  = 100
	deadline     = 5 * time.Second
	antagonistWU = 30 * time.Second
)

// contender is a policy with its setting.
type contender struct {
	label  string
	policy string
	o      setting
}

func contenders(m int) []contender {
	list := []contender{
		{"", "random", setting{}}, {"", "rr", setting{}}, {"", "grpc-wrr", setting{}}, {"", "p2c", setting{}},
		{"", "pewma", setting{tau: 10 * time.Second}}, {"", "c3", setting{clients: m}}, {"", "prequal", setting{}},
		{"", "prequal-rif", setting{}},
	}
	for _, q := range []float64{.6, .84, .9} {
		list = append(list, contender{fmt.Sprint("quantile ", q), "prequal", setting{prequal: prequal.Config{Quantile: q}}})
	}
	for _, r := range []float64{1, 3, 5} {
		list = append(list, contender{fmt.Sprint("probes ", r), "prequal", setting{prequal: prequal.Config{Probes: r, Remove: .25}}})
	}
	for _, mix := range []float64{.25, .5, .75, .9} {
		linear := &prequal.Linear{Mix: mix, PerRIF: time.Duration(queryWork * float64(time.Second))}
		list = append(list, contender{fmt.Sprint("linear ", mix), "prequal", setting{prequal: prequal.Config{Linear: linear}}})
	}
	return list
}

func runAntagonist(ctx context.Context, e *Env) ([]Row, error) {
	var rows []Row
	for _, m := range e.M {
		var cells []cell
		for _, c := range contenders(m) {
			if e.Quick && e.asSetUp && (c.label != "" || !slices.Contains([]string{"grpc-wrr", "p2c", "prequal"}, c.policy)) {
				continue
			}
			row := Row{Params: []Param{{"m", m}, {"setting", c.label}, {"unit", "ms"}}, Policy: c.policy}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playAntagonist(e, m, c, seed) }})
		}
		part, err := e.mediansOf(ctx, cells, e.seeds(1))
		if err != nil {
			return nil, err
		}
		against(part)
		rows = append(rows, part...)
	}
	return rows, nil
}

// against says that Prequal's p99 is not above that of gRPC's weights.
func against(rows []Row) {
	limit := 0.0
	for i := range rows {
		if rows[i].Policy == "grpc-wrr" {
			limit, _ = rows[i].Get("p99")
		}
	}
	for i := range rows {
		if r := &rows[i]; r.Policy == "prequal" && r.paramText("setting") == "" {
			r.Checks = []Check{atMost("p99", limit)}
		}
	}
}

func playAntagonist(e *Env, m int, c contender, seed uint64) ([]Metric, error) {
	window := 240 * time.Second
	if e.Quick {
		window = 60 * time.Second
	}
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(antagonistN, sim.Server{Discipline: sim.Sharing}),
		Rate: antagonistN * demand * allotment / queryWork, Service: sim.Exponential(queryWork),
		Warmup: antagonistWU, Window: window, Timeout: deadline,
	}}
	for i := range hobbled {
		f.cfg.Servers[i].Rate = allotment
	}
	for range m {
		if err := f.client(c.policy, c.o, nil); err != nil {
			return nil, err
		}
	}
	if err := f.start(); err != nil {
		return nil, err
	}
	f.reportUse(time.Second, 10*time.Second, func(server int) float64 {
		if server < hobbled {
			return 1 // all that it gets is its allotment
		}
		return 1 / allotment
	})
	r := f.sim.Run()
	return []Metric{
		{"p50", 1e3 * r.Quantile(.5)}, {"p99", 1e3 * r.Quantile(.99)}, {"p999", 1e3 * r.Quantile(.999)},
		{"late", 1 - r.Within(deadline)}, {"hobbled_share", (r.Share(0) + r.Share(1)) / hobbled * antagonistN},
	}, nil
}
