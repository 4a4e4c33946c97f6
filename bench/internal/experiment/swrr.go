package experiment

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
)

// swrr: how far the turns of one period are from the weights' shares.
func swrr() *Experiment {
	return &Experiment{
		Name: "swrr", Page: "policies-turns.md", About: "smooth, expanded and EDF round robin: deviation from the shares over a period",
		Defaults: Params{},
		Run:      runSWRR,
		Plot:     plotSWRR,
	}
}

// turnVectors are weights with the accepted deviations of smooth, expanded and EDF.
var turnVectors = []struct {
	weights []float64
	sought  [3]float64
}{
	{[]float64{5, 1, 1}, [3]float64{.571, 1.43, 1.43}},
	{[]float64{3, 2, 1}, [3]float64{.500, 1.5, 1.0}},
	{[]float64{4, 3, 2, 1}, [3]float64{.600, 2.4, 1.2}},
	{[]float64{10, 5, 1}, [3]float64{.625, 3.75, 1.25}},
	{[]float64{7, 5, 3}, [3]float64{.667, 3.73, .93}},
	{[]float64{20, 10, 5, 1}, [3]float64{.667, 8.89, 1.67}},
}

func runSWRR(_ context.Context, e *Env) ([]Row, error) {
	var rows []Row
	for i, policy := range []string{"swrr", "wrr-expanded", "edf"} {
		for _, v := range turnVectors {
			row, err := turnRow(policy, v.weights, policy == "edf")
			if err != nil {
				return nil, err
			}
			digits := .005
			if i == 0 {
				digits = .0005
			}
			row.Checks = []Check{writtenAs("deviation", v.sought[i], digits)}
			if policy == "swrr" && v.weights[0] == 5 {
				row.Checks = append(row.Checks, exactly("run", 2), exactly("run_across", 4), exactly("aabacaa", 1))
			}
			rows = append(rows, row)
		}
	}
	worst, err := turnRow("swrr", []float64{1, 20, 20, 5, 13, 1, 9, 20, 3}, false)
	if err != nil {
		return nil, err
	}
	worst.Checks = []Check{writtenAs("deviation", 1.087, .0005)} // "below 1" is not a law
	rounded, err := turnRow("edf", []float64{20, 10, 5, 1}, false)
	if err != nil {
		return nil, err
	}
	rounded.Params[0].Value = "20:10:5:1, 1/w rounded"
	rounded.Checks = []Check{writtenAs("deviation", 1.444, .0005)}
	drawn, err := drawnVectors(e.Seed)
	return append(rows, worst, rounded, drawn), err
}

// drawnVectors says how often and how far smooth round robin is off by 1 or more.
func drawnVectors(seed uint64) (Row, error) {
	const vectors = 20_000
	dice := sim.NewDice(seed, 0)
	above, worst := 0, 0.0
	for range vectors {
		weights := make([]float64, 2+dice.Below(8))
		period := 0
		for i := range weights {
			w := 1 + dice.Below(20)
			weights[i] = float64(w)
			period += w
		}
		turns, err := takeTurns("swrr", weights, period)
		if err != nil {
			return Row{}, err
		}
		d := deviation(weights, turns)
		worst = max(worst, d)
		if d >= 1 {
			above++
		}
	}
	row := Row{Params: []Param{{"weights", "20,000 drawn, 2 to 9 of 1 to 20"}}, Policy: "swrr"}
	row.Set("deviation", worst)
	row.Set("of 1 or more", float64(above))
	return row, nil
}

// turnRow plays two periods. EDF adds up 1/w in float64, and rounding decides ties
// that exact numbers leave to the order of the nodes; whole plays it with weights
// in the same proportions whose 1/w are whole numbers.
func turnRow(policy string, weights []float64, whole bool) (Row, error) {
	period := 0
	for _, w := range weights {
		period += int(w)
	}
	given := weights
	if whole {
		given = scaledDown(weights)
	}
	turns, err := takeTurns(policy, given, 2*period)
	if err != nil {
		return Row{}, err
	}
	row := Row{Params: []Param{{"weights", strings.Trim(strings.ReplaceAll(fmt.Sprint(weights), " ", ":"), "[]")}}, Policy: policy}
	row.Set("deviation", deviation(weights, turns[:period]))
	row.Set("run", float64(longestRun(turns[:period])))
	row.Set("run_across", float64(longestRun(turns)))
	if policy == "swrr" && fmt.Sprint(weights) == "[5 1 1]" {
		same := 0.0
		if fmt.Sprint(turns[:period]) == "[0 0 1 0 2 0 0]" {
			same = 1
		}
		row.Set("aabacaa", same)
	}
	return row, nil
}

// scaledDown divides whole weights by their least common multiple.
func scaledDown(weights []float64) []float64 {
	multiple := 1
	for _, w := range weights {
		a, b := multiple, int(w)
		for b != 0 {
			a, b = b, a%b
		}
		multiple *= int(w) / a
	}
	scaled := make([]float64, len(weights))
	for i, w := range weights {
		scaled[i] = w / float64(multiple)
	}
	return scaled
}

func takeTurns(policy string, weights []float64, count int) ([]int, error) {
	set, err := sim.NewSet(len(weights), weights...)
	if err != nil {
		return nil, err
	}
	p, err := newPicker(policy, set, setting{})
	if err != nil {
		return nil, err
	}
	turns := make([]int, count)
	for i := range turns {
		t, err := p.Pick(0, uint64(i), nil)
		if err != nil {
			return nil, err
		}
		turns[i] = t.Index()
		t.Done(0, balance.Outcome{Result: balance.Success})
	}
	return turns, nil
}

// deviation is the largest |picks of i so far - t w_i / W| over all prefixes.
func deviation(weights []float64, turns []int) float64 {
	sum := float64(len(turns))
	picks := make([]float64, len(weights))
	worst := 0.0
	for t, i := range turns {
		picks[i]++
		for k, w := range weights {
			worst = math.Max(worst, math.Abs(picks[k]-float64(t+1)*w/sum))
		}
	}
	return worst
}

func longestRun(turns []int) int {
	longest, run := 0, 0
	for t, i := range turns {
		if t == 0 || i != turns[t-1] {
			run = 0
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
