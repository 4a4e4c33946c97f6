package experiment

import (
	"context"
	"fmt"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
)

// bins: n balls into n bins, one at a time.
func bins() *Experiment {
	return &Experiment{
		Name: "bins", Page: "policies-load.md", About: "n balls into n bins: the fullest bin",
		Uses: []string{"n", "policies", "seeds"},
		Defaults: Params{
			N: []int{1000, 10000, 100000, 1000000}, Seeds: 5,
			Policies: []string{"random", "p2c", "p2c-repl", "d3", "left2", "left3"},
		},
		Run: runBins,
	}
}

func runBins(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("random", "p2c", "p2c-repl", "d3", "d5", "left2", "left3"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, n := range e.N {
		for _, policy := range e.Policies {
			row := Row{Params: []Param{{"n", n}}, Policy: policy, Checks: binsChecks(policy, n)}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playBins(policy, n, seed) }})
		}
	}
	return e.medians(ctx, cells)
}

// playBins throws the balls: requests that never end.
func playBins(policy string, n int, seed uint64) ([]Metric, error) {
	set, err := sim.NewSet(n)
	if err != nil {
		return nil, err
	}
	p, err := newPicker(policy, set, setting{})
	if err != nil {
		return nil, err
	}
	dice := sim.NewDice(seed, 0)
	fullest := 0
	for range n {
		t, err := p.Pick(0, dice.Bits(), nil)
		if err != nil {
			return nil, err
		}
		fullest = max(fullest, t.Node().InFlight())
	}
	return []Metric{{"fullest", float64(fullest)}}, nil
}

func binsChecks(policy string, n int) []Check {
	million := map[string][2]float64{
		"random": {8, 12}, "p2c": {4, 4}, "p2c-repl": {4, 4}, "d3": {3, 3}, "left2": {3, 3}, "left3": {3, 3},
	}
	if r, ok := million[policy]; ok && n == 1000000 {
		return []Check{between("fullest", r[0], r[1])}
	}
	smaller := map[string]float64{
		"random 100000": 8, "p2c 100000": 4, "d3 100000": 3, "left3 100000": 3,
		"random 10000": 6, "p2c 10000": 3, "d3 10000": 3, "left3 10000": 2,
		"random 1000": 5, "p2c 1000": 3, "d3 1000": 3, "left3 1000": 2,
	}
	if x, ok := smaller[fmt.Sprintf("%s %d", policy, n)]; ok {
		return []Check{{Metric: "fullest", Expected: x, Tolerance: 1, Fixed: true}}
	}
	return nil
}

// twoHosts: two nodes, one of them with one request more; draws with replacement.
func twoHosts() *Experiment {
	return &Experiment{
		Name: "two-hosts", Page: "policies-load.md", About: "two choices with replacement among two nodes: share of the busier one",
		Defaults: Params{},
		Run:      runTwoHosts,
	}
}

func runTwoHosts(_ context.Context, e *Env) ([]Row, error) {
	var rows []Row
	for policy, check := range []Check{between("busier", .24, .26), exactly("busier", 0)} {
		policy := []string{"p2c-repl", "p2c"}[policy]
		share, err := busierShare(policy, e.Seed)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{Policy: policy, Metrics: []Metric{{"busier", share}}, Checks: []Check{check}})
	}
	return rows, nil
}

func busierShare(policy string, seed uint64) (float64, error) {
	set, err := sim.NewSet(2)
	if err != nil {
		return 0, err
	}
	p, err := newPicker(policy, set, setting{})
	if err != nil {
		return 0, err
	}
	set.Take(0, 0) // and is never done
	dice := sim.NewDice(seed, 0)
	const picks = 1_000_000
	busier := 0
	for range picks {
		t, err := p.Pick(0, dice.Bits(), nil)
		if err != nil {
			return 0, err
		}
		if t.Index() == 0 {
			busier++
		}
		t.Done(0, balance.Outcome{Result: balance.Success})
	}
	return float64(busier) / picks, nil
}
