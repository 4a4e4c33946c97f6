package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/shardd/shardd/bench/internal/theory"
	"github.com/shardd/shardd/bench/sim"
)

// fixed: the supermarket model at its fixed point.
func fixed() *Experiment {
	return &Experiment{
		Name: "fixed", Page: "policies-load.md", About: "supermarket model: shares of servers with i requests or more",
		Stable:   true,
		Uses:     []string{"n", "lambda", "seeds", "units", "from-empty"},
		Defaults: Params{N: []int{1000}, Lambda: []float64{.9}, Seeds: 3, Units: 5000},
		Run:      runFixed,
		Plot:     plotFixed,
	}
}

// tails is how many levels are printed.
const tails = 7

func runFixed(ctx context.Context, e *Env) ([]Row, error) {
	var rows []Row
	for _, n := range e.N {
		for _, lambda := range e.Lambda {
			var part []Row
			var err error
			if e.FromEmpty {
				part, err = fromEmpty(ctx, e, n, lambda)
			} else {
				part, err = fixedPoint(ctx, e, n, lambda)
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, part...)
		}
	}
	return rows, nil
}

func fixedPoint(ctx context.Context, e *Env, n int, lambda float64) ([]Row, error) {
	c := cell{play: func(seed uint64) ([]Metric, error) {
		f := fleet{cfg: sim.Config{
			Seed: seed, Servers: sim.Equal(n, sim.Server{}), Rate: lambda * float64(n),
			Warmup: units(1000), Window: units(e.window(1500)),
		}}
		if err := f.client("p2c", setting{}, nil); err != nil {
			return nil, err
		}
		r, err := f.run()
		if err != nil {
			return nil, err
		}
		list := []Metric{{"mean", r.Mean}}
		for i := 1; i <= tails; i++ {
			list = append(list, Metric{fmt.Sprint("s_", i), r.Tail[i]})
		}
		return list, nil
	}}
	played, err := e.mediansOf(ctx, []cell{c}, e.seeds(1))
	if err != nil {
		return nil, err
	}
	standard := n == 1000 && lambda == .9
	mean := Row{Params: []Param{{"n", n}, {"lambda", lambda}}, Policy: "p2c", Metrics: slices.Clone(played[0].Metrics[:1])}
	mean.Set("theory", theory.Sojourn(lambda, 2))
	if standard {
		mean.Checks = []Check{within("mean", theory.Sojourn(lambda, 2), .02)}
	}
	rows := []Row{mean}
	for i := 1; i <= tails; i++ {
		row := Row{Params: []Param{{"n", n}, {"lambda", lambda}, {"i", i}}, Policy: "p2c"}
		row.Set("s_i", played[0].Metrics[i].Value)
		row.Set("theory", theory.Tail(lambda, 2, i))
		if standard {
			row.Checks = tailChecks(i)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func tailChecks(i int) []Check {
	switch i {
	case 4:
		return []Check{plus("s_i", .205891, .006)}
	case 6:
		return []Check{between("s_i", .0012, .0019)}
	}
	return nil
}

// Times of the run from empty servers, in units.
const (
	emptyStep  = 2
	emptyUntil = 30
	emptyRuns  = 60 // of which the mean is taken
)

// fromEmpty follows the shares from empty servers on, the mean of many runs,
// beside the solution of the differential equations.
func fromEmpty(ctx context.Context, e *Env, n int, lambda float64) ([]Row, error) {
	const count = emptyUntil / emptyStep
	runs := make([][][]float64, emptyRuns)
	err := e.each(ctx, emptyRuns, func(i int) (err error) {
		runs[i], err = shares(e.Seed+uint64(i), n, lambda)
		return err
	})
	if err != nil {
		return nil, err
	}
	law := theory.FromEmpty(lambda, 2, emptyStep, count)
	var rows []Row
	worst := 0.0
	for k := 1; k <= count; k++ {
		row := Row{Params: []Param{{"n", n}, {"lambda", lambda}, {"t", k * emptyStep}}, Policy: "p2c"}
		for i := 1; i <= tails; i++ {
			sum := 0.0
			for _, r := range runs {
				sum += r[k-1][i]
			}
			got := sum / emptyRuns
			row.Set(fmt.Sprint("s_", i), got)
			row.Set(fmt.Sprint("ode_", i), law[k][i])
			worst = math.Max(worst, math.Abs(got-law[k][i]))
		}
		rows = append(rows, row)
	}
	last := Row{Params: []Param{{"n", n}, {"lambda", lambda}}, Policy: "p2c", Metrics: []Metric{{"largest_difference", worst}}}
	if n >= 1000 {
		last.Checks = []Check{atMost("largest_difference", .01)}
	}
	return append(rows, last), nil
}

// shares returns s_i at emptyStep, 2 emptyStep, ... of one run.
func shares(seed uint64, n int, lambda float64) ([][]float64, error) {
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(n, sim.Server{}), Rate: lambda * float64(n), Window: units(emptyUntil + 1),
	}}
	if err := f.client("p2c", setting{}, nil); err != nil {
		return nil, err
	}
	if err := f.start(); err != nil {
		return nil, err
	}
	var list [][]float64
	f.sim.Every(units(emptyStep), func() {
		at := make([]float64, tails+1)
		for v := range n {
			for i := range min(f.sim.Load(v), tails) + 1 {
				at[i] += 1 / float64(n)
			}
		}
		list = append(list, at)
	})
	f.sim.Run()
	return list[1:], nil // without time 0
}

func plotFixed(rows []Row) map[string]Picture {
	measured, ok := curve(rows, "measured", "i", "s_i", func(*Row) bool { return true })
	law, _ := curve(rows, "lambda^(2^i - 1)", "i", "theory", func(*Row) bool { return true })
	random := Series{Name: "random: lambda^i"}
	for i := 1; i <= tails; i++ {
		lambda := 0.0
		if len(rows) > 0 {
			lambda, _ = rows[0].Param("lambda")
		}
		random.X, random.Y = append(random.X, float64(i)), append(random.Y, theory.Tail(lambda, 1, i))
	}
	if !ok {
		return nil
	}
	measured, law = positive(measured), positive(law)
	law.Law = true
	return pictureOf("supermarket", Picture{
		Title: "Servers with i requests or more, two choices", X: "i", Y: "share of servers",
		LogY: true, Right: true, Series: []Series{measured, random, law},
	})
}

// positive drops what a logarithmic axis has no place for.
func positive(s Series) Series {
	p := Series{Name: s.Name, Law: s.Law}
	for i := range s.X {
		if s.Y[i] > 0 {
			p.X, p.Y = append(p.X, s.X[i]), append(p.Y, s.Y[i])
		}
	}
	return p
}
