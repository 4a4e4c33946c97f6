package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
)

// longtail: 8 FIFO servers, 20,000 requests 1 ms apart, one in twenty of them ten
// times as long as the others; how long do requests wait?
func longtail() *Experiment {
	return &Experiment{
		Name: "longtail", Page: "policies-load.md", About: "one request in twenty is ten times as long: waits on eight servers",
		Uses: []string{"policies", "seeds"},
		Defaults: Params{
			Seeds: 41, Policies: []string{"rr", "random", "least", "p2c-repl"},
		},
		Run: runLongtail,
	}
}

func runLongtail(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("rr", "random", "least", "p2c", "p2c-repl", "pewma", "ewma-inflight2"); err != nil {
		return nil, err
	}
	sought := map[string]float64{"rr": 257, "random": 297, "least": 66, "p2c-repl": 128}
	var cells []cell
	for _, policy := range e.Policies {
		row := Row{Params: []Param{{"unit", "ms"}}, Policy: policy}
		if x, ok := sought[policy]; ok {
			row.Checks = []Check{within("p99", x, .12)}
		}
		cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playLongtail(policy, seed) }})
	}
	return e.medians(ctx, cells)
}

func playLongtail(policy string, seed uint64) ([]Metric, error) {
	const requests, gap = 20000, 1e-3 // gap in s, the unit of time
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(8, sim.Server{}), Rate: 1 / gap, Waiting: true,
		Service: sim.Choice(.05, sim.Exponential(4e-3), sim.Exponential(40e-3)),
		Window:  requests * time.Millisecond,
	}}
	if err := f.client(policy, setting{}, nil); err != nil {
		return nil, err
	}
	if policy == "least" { // ties go to the lowest index there
		if err := f.inOrder(); err != nil {
			return nil, err
		}
	}
	r, err := f.run()
	if err != nil {
		return nil, err
	}
	return []Metric{{"mean", 1e3 * r.Mean}, {"p50", 1e3 * r.Quantile(.5)}, {"p99", 1e3 * r.Quantile(.99)}}, nil
}

// inOrder makes the client's full scan prefer the first of equal servers.
func (f *fleet) inOrder() error {
	scan, ok := f.cfg.Clients[0].Picker.(*balance.FullScan)
	if !ok {
		return fmt.Errorf("%w: %T takes no order", ErrParam, f.cfg.Clients[0].Picker)
	}
	all := make([]int, len(f.cfg.Servers))
	for i := range all {
		all[i] = i
	}
	f.cfg.Clients[0].Picker = ordered{scan, all}
	return nil
}

// ordered is a full scan over members in order of preference.
type ordered struct {
	*balance.FullScan
	members []int
}

// Pick implements balance.Picker.
func (o ordered) Pick(now time.Duration, _ uint64, exclude []*balance.Node) (balance.Ticket, error) {
	return o.Among(now, o.members, exclude)
}
