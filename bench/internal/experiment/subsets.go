package experiment

import (
	"context"
	"slices"
	"strconv"

	"github.com/shardd/shardd/balance/subset"
)

// subsets: 300 clients of 300 backends know k of them each.
func subsets() *Experiment {
	return &Experiment{
		Name: "subset", Page: "policies-subset.md", About: "clients a backend when 300 clients know k of 300 backends each",
		Uses:     []string{"seeds"},
		Defaults: Params{Seeds: 201},
		Run:      runSubsets,
	}
}

const subsetClients, subsetBackends = 300, 300

func runSubsets(ctx context.Context, e *Env) ([]Row, error) {
	var rows []Row
	for _, k := range []int{30, 90, 225} {
		row, err := deterministicRow(k)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	var cells []cell
	for i, k := range []int{30, 90, 225} {
		least, most := []float64{.533, .756, .90}[i], []float64{1.533, 1.244, 1.09}[i]
		row := Row{Params: []Param{{"k", k}, {"subset", "random"}}, Checks: []Check{plus("least", least, .05), plus("most", most, .05)}}
		cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return randomSubsets(k, seed) }})
	}
	random, err := e.mediansOf(ctx, cells, e.seeds(41))
	return append(rows, random...), err
}

// spreadOf are the smallest and largest number of clients a backend by the mean.
func spreadOf(clients []int, k int) []Metric {
	mean := float64(subsetClients) * float64(k) / subsetBackends
	return []Metric{{"least", float64(slices.Min(clients)) / mean}, {"most", float64(slices.Max(clients)) / mean}}
}

func deterministicRow(k int) (Row, error) {
	clients := make([]int, subsetBackends)
	for c := range subsetClients {
		list, err := subset.Deterministic(subsetBackends, k, c)
		if err != nil {
			return Row{}, err
		}
		for _, i := range list {
			clients[i]++
		}
	}
	row := Row{Params: []Param{{"k", k}, {"subset", "deterministic"}}, Metrics: spreadOf(clients, k)}
	switch {
	case subsetBackends%k == 0:
		row.Checks = []Check{exactly("least", 1), exactly("most", 1)}
	case k == 90:
		row.Checks = []Check{atLeast("least", 75./90), atMost("most", 102./90)}
	}
	return row, nil
}

func randomSubsets(k int, seed uint64) ([]Metric, error) {
	ids := make([]string, subsetBackends)
	for i := range ids {
		ids[i] = "backend-" + strconv.Itoa(i)
	}
	clients := make([]int, subsetBackends)
	for c := range uint64(subsetClients) {
		list, err := subset.Random(ids, k, seed*subsetClients+c)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			clients[i]++
		}
	}
	return spreadOf(clients, k), nil
}
