package experiment

import (
	"context"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/outlier"
)

// sinkhole: one of eleven nodes answers errors in a millisecond, and so looks
// free and fast.
func sinkhole() *Experiment {
	return &Experiment{
		Name: "sinkhole", Page: "policies-unwell.md", About: "one of 11 nodes answers errors in 1 ms: its share of the requests",
		Uses:     []string{"policies", "seeds"},
		Defaults: Params{Seeds: 3, Policies: []string{"least", "p2c", "pewma", "lalb"}},
		Run:      runSinkhole,
	}
}

func runSinkhole(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("least", "p2c", "p2c-repl", "d3", "pewma", "ewma-inflight2", "lalb", "c3"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, policy := range e.Policies {
		for _, remedy := range []string{"none", "errors count", "ejection"} {
			row := Row{Params: []Param{{"remedy", remedy}}, Policy: policy}
			if remedy != "none" {
				row.Checks = []Check{atMost("share", 2./backends)}
			}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playSinkhole(policy, remedy, seed) }})
		}
	}
	return e.mediansOf(ctx, cells, e.seeds(1))
}

func playSinkhole(policy, remedy string, seed uint64) ([]Metric, error) {
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(backends, sim.Server{Discipline: sim.Delay}), Rate: backendRate,
		Warmup: 10 * time.Second, Window: time.Minute, Timeout: time.Second,
		Work: func(server, _ int, dice *sim.Dice) float64 {
			if server == 0 {
				return 1e-3
			}
			return 20e-3 * dice.Exp()
		},
		Fate: func(server int, _ *sim.Dice) balance.Result {
			if server == 0 {
				return balance.Failure
			}
			return balance.Success
		},
	}}
	o := setting{tau: 10 * time.Second}
	if remedy == "errors count" {
		o.errors = balance.ErrorLoad{Each: 1}
	}
	if err := f.client(policy, o, nil); err != nil {
		return nil, err
	}
	switch {
	case remedy == "ejection":
		if err := f.eject(); err != nil {
			return nil, err
		}
	case policy == "lalb" && remedy == "none":
		// It counts errors by itself, given a time-out; here nobody tells it.
		f.cfg.Clients[0].Picker = deaf{f.cfg.Clients[0].Picker}
		f.cfg.Fate = nil
	}
	r, err := f.run()
	if err != nil {
		return nil, err
	}
	return []Metric{{"share", r.Share(0)}}, nil
}

// deaf marks a picker that is not told of errors.
type deaf struct{ balance.Picker }

// eject adds outlier detection: a node that it ejects is down in the picker's
// next set, until its time is over.
func (f *fleet) eject() error {
	changed := false
	d, err := outlier.New(outlier.Config{OnChange: func(outlier.Event) { changed = true }, Rand: func() float64 { return 0 }})
	if err != nil {
		return err
	}
	nodes := make([]*outlier.Node, len(f.cfg.Servers))
	members := make([]balance.Member, len(nodes))
	for i := range nodes {
		nodes[i] = d.Add("", outlier.Up, 0)
		members[i] = balance.Member{Node: balance.NewNode("", uint64(i)), Weight: 1}
	}
	set, err := balance.NewSet(members)
	if err != nil {
		return err
	}
	client := &f.cfg.Clients[0]
	if client.Picker, err = client.Picker.Next(set); err != nil {
		return err
	}
	f.cfg.Ended = func(e sim.End) {
		nodes[e.Server].Record(e.At, resilience.Outcome(e.Result))
		d.Sweep(e.At)
		if !changed {
			return
		}
		changed = false
		for i := range members {
			members[i].Down = !nodes[i].Usable()
		}
		if set, err := balance.NewSet(members); err == nil {
			if next, err := client.Picker.Next(set); err == nil {
				client.Picker = next
			}
		}
	}
	return nil
}
