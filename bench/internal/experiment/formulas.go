package experiment

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/shardd/shardd/bench/internal/theory"
	"github.com/shardd/shardd/migrate/capacity"
)

// formulas prints the supermarket model's mean, its limit, and Erlang's tables.
func formulas() *Experiment {
	return &Experiment{
		Name: "formulas", Page: "policies-load.md", About: "supermarket model and M/M/c by formula",
		Stable:   true,
		Uses:     []string{"lambda"},
		Defaults: Params{Lambda: []float64{.5, .7, .8, .9, .95, .99, .999, .9999, .999999}},
		Run:      runFormulas,
	}
}

// soughtT2 are T_2 by utilisation.
var soughtT2 = map[float64]float64{.5: 1.2657, .7: 1.6145, .8: 1.9474, .9: 2.6141, .95: 3.3830, .99: 5.4320, .999: 8.6516}

// soughtLimit is T_2 / ln(1/(1 - lambda)), which tends to 1/ln 2 = 1.443, slowly.
var soughtLimit = map[float64]float64{.9: 1.135, .99: 1.180, .999: 1.252, .9999: 1.298, .999999: 1.346}

func runFormulas(_ context.Context, e *Env) ([]Row, error) {
	var rows []Row
	for _, lambda := range e.Lambda {
		row := Row{Params: []Param{{"lambda", lambda}}}
		for d := 1; d <= 3; d++ {
			row.Set(fmt.Sprint("T_", d), theory.Sojourn(lambda, d))
		}
		t2, _ := row.Get("T_2")
		row.Set("T_2/ln", t2/math.Log(1/(1-lambda)))
		if x, ok := soughtT2[lambda]; ok {
			row.Checks = append(row.Checks, writtenAs("T_2", x, 1e-3))
		}
		if lambda == .9 {
			row.Checks = append(row.Checks, writtenAs("T_3", 2.0279, 1e-3))
		}
		if x, ok := soughtLimit[lambda]; ok {
			row.Checks = append(row.Checks, writtenAs("T_2/ln", x, 1e-3))
		}
		rows = append(rows, row)
	}
	return append(rows, erlangRows()...), nil
}

// queueing: M/M/c by Erlang C, S = 10 ms.
func queueing() *Experiment {
	return &Experiment{
		Name: "queueing", Page: "capacity.md", About: "waits of M/M/c by utilisation and servers, and the utilisation that a target allows",
		Defaults: Params{},
		Run:      runQueueing,
		Plot:     plotQueueing,
	}
}

// load10 is service of 10 ms at utilisation rho of c servers.
func load10(c int, rho float64) capacity.Load {
	return capacity.Load{Rate: rho * float64(c) * 100, Service: 10 * time.Millisecond, ServiceCV2: 1, ArrivalCV2: 1}
}

func runQueueing(context.Context, *Env) ([]Row, error) {
	var rows []Row
	for _, rho := range []float64{.5, .7, .8, .9, .95, .99} {
		for _, c := range []int{1, 4, 16} {
			rows = append(rows, waitRow(c, rho))
		}
	}
	for _, row := range erlangRows() {
		row.Params = append(row.Params, Param{"table", "by servers"})
		rows = append(rows, row)
	}
	for _, s := range []struct {
		c   int
		rho float64
	}{{1, .333}, {2, .577}, {4, .747}, {8, .854}, {16, .918}, {32, .954}, {64, .975}} {
		rho, err := load10(s.c, .5).MaxUtilisation(s.c, capacity.Target{Wait: 5 * time.Millisecond})
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{
			Params:  []Param{{"c", s.c}, {"target_ms", 5.}},
			Metrics: []Metric{{"max_rho", rho}}, Checks: []Check{exactly("max_rho", s.rho)},
		})
	}
	return rows, nil
}

// erlangRows are the waits at 90 % by the number of servers.
func erlangRows() []Row {
	var rows []Row
	for i, want := range []float64{90, 42.6316, 19.6938, 8.7692, 3.6959, 1.4319} {
		row := waitRow(1<<i, .9)
		row.Checks = []Check{writtenAs("wait_ms", want, 1e-3)}
		rows = append(rows, row)
	}
	return rows
}

func waitRow(c int, rho float64) Row {
	mean, waiting := load10(c, rho).Wait(c)
	row := Row{Params: []Param{{"c", c}, {"rho", rho}}, Metrics: []Metric{{"wait_ms", 1e3 * mean}, {"waiting", waiting}}}
	want := written(c, rho)
	row.Checks = []Check{writtenAs("wait_ms", want, 1e-9*math.Max(1, want))}
	return row
}

// written is the wait in ms by the formula as it is usually written, with powers
// and factorials, for a few servers; above some 150 it overflows.
func written(c int, rho float64) float64 {
	a, term, sum := float64(c)*rho, 1.0, 0.0
	for k := range c {
		sum += term
		term *= a / float64(k+1)
	}
	term /= 1 - rho
	return term / (sum + term) * 10 / (float64(c) * (1 - rho))
}

func plotQueueing([]Row) map[string]Picture {
	var list []Series
	for _, c := range []int{1, 4, 16, 64} {
		s := Series{Name: fmt.Sprint(c, " servers")}
		for rho := .5; rho < .996; rho += .005 {
			mean, _ := load10(c, rho).Wait(c)
			s.X, s.Y = append(s.X, rho), append(s.Y, 1e3*mean)
		}
		list = append(list, s)
	}
	return pictureOf("utilisation", Picture{
		Title: "Wait by utilisation, 10 ms of service (M/M/c)", X: "utilisation", Y: "mean wait, ms", LogY: true, Series: list,
	})
}
