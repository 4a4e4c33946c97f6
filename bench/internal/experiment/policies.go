package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/c3"
	"github.com/shardd/shardd/balance/lalb"
	"github.com/shardd/shardd/balance/latency"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/wrr"
)

// Policies are the names of policies in rows and flags.
func Policies() []string {
	return []string{"random", "rr", "p2c", "p2c-repl", "d3", "d5", "jsq", "left2", "left3", "swrr", "wrr-expanded", "edf",
		"pewma", "ewma-inflight2", "least", "lalb", "prequal", "prequal-rif", "c3", "grpc-wrr"}
}

// setting is what a policy is made with.
type setting struct {
	cost    balance.Cost // nil: requests in flight
	tau     time.Duration
	errors  balance.ErrorLoad
	clients int // for C3
	prequal prequal.Config
}

// makers make the policies over a set.
var makers = map[string]func(*balance.Set, setting) (balance.Picker, error){
	"random": func(s *balance.Set, _ setting) (balance.Picker, error) { return balance.NewRandom(s), nil },
	"rr":     func(s *balance.Set, _ setting) (balance.Picker, error) { return wrr.NewRoundRobin(s, 0), nil },
	"p2c": func(s *balance.Set, o setting) (balance.Picker, error) {
		return balance.NewP2C(s, o.load())
	},
	"p2c-repl": choices(2, true),
	"d3":       choices(3, false),
	"d5":       choices(5, false),
	"jsq": func(s *balance.Set, o setting) (balance.Picker, error) {
		return balance.NewFullScan(s, o.load())
	},
	"least": func(s *balance.Set, o setting) (balance.Picker, error) {
		return balance.NewFullScan(s, o.load())
	},
	"left2": goLeft(2),
	"left3": goLeft(3),
	"swrr": func(s *balance.Set, _ setting) (balance.Picker, error) {
		return wrr.NewSmooth(s, wrr.SmoothConfig{})
	},
	"wrr-expanded": func(s *balance.Set, _ setting) (balance.Picker, error) { return wrr.NewExpanded(s, 0) },
	"edf":          func(s *balance.Set, _ setting) (balance.Picker, error) { return wrr.NewEDF(s), nil },
	"pewma": func(s *balance.Set, o setting) (balance.Picker, error) {
		cost, err := latency.NewPeakEWMA(latency.PeakConfig{Decay: o.tau, Errors: o.errors})
		if err != nil {
			return nil, err
		}
		return balance.NewP2C(s, cost)
	},
	"ewma-inflight2": func(s *balance.Set, o setting) (balance.Picker, error) {
		cost, err := latency.NewSquaredEWMA(latency.SquaredConfig{Errors: o.errors})
		if err != nil {
			return nil, err
		}
		return balance.NewP2C(s, cost)
	},
	"lalb": func(s *balance.Set, _ setting) (balance.Picker, error) { return lalb.New(s, lalb.Config{}) },
	"prequal": func(s *balance.Set, o setting) (balance.Picker, error) {
		return prequal.New(s, o.probing())
	},
	"prequal-rif": func(s *balance.Set, o setting) (balance.Picker, error) {
		o.prequal.RIFOnly = true
		return prequal.New(s, o.probing())
	},
	"c3": func(s *balance.Set, o setting) (balance.Picker, error) {
		return c3.New(s, c3.Config{Clients: o.clients, Errors: o.errors})
	},
	"grpc-wrr": func(s *balance.Set, _ setting) (balance.Picker, error) {
		return wrr.NewReported(s, wrr.ReportedConfig{Blackout: -1}, 0), nil
	},
}

func choices(d int, replace bool) func(*balance.Set, setting) (balance.Picker, error) {
	return func(s *balance.Set, o setting) (balance.Picker, error) {
		return balance.NewLeastRequest(s, balance.Choices{D: d, Replace: replace, Cost: o.load()})
	}
}

func goLeft(d int) func(*balance.Set, setting) (balance.Picker, error) {
	return func(s *balance.Set, o setting) (balance.Picker, error) { return balance.NewGoLeft(s, d, o.load()) }
}

// load is the cost that policies on requests in flight compare.
func (o setting) load() balance.Cost {
	if o.cost == nil && o.errors.Each > 0 {
		return &balance.InFlight{Errors: o.errors}
	}
	return o.cost
}

func (o setting) probing() prequal.Config {
	c := o.prequal
	c.Errors = o.errors
	return c
}

func newPicker(name string, set *balance.Set, o setting) (balance.Picker, error) {
	f, ok := makers[name]
	if !ok {
		return nil, fmt.Errorf("%w: policy %q: want one of %v", ErrParam, name, Policies())
	}
	return f(set, o)
}

// checkPolicies refuses names that are not known, or that the experiment has no
// use for.
func (e *Env) checkPolicies(known ...string) error {
	for _, p := range e.Policies {
		if !slices.Contains(known, p) {
			return fmt.Errorf("%w: policy %q: want some of %v", ErrParam, p, known)
		}
	}
	return nil
}
