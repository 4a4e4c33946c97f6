package experiment

import (
	"context"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/latency"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/subset"
	"github.com/shardd/shardd/bench/sim"
)

// clients: many balancers that each see only their own requests in flight.
func clients() *Experiment {
	return &Experiment{
		Name: "clients", Page: "policies-subset.md", About: "many clients that see their own requests only, and what helps",
		Uses:     []string{"m", "policies", "seeds", "units"},
		Defaults: Params{M: []int{1, 10, 100}, Seeds: 3, Units: 20000, Policies: []string{"p2c", "least"}},
		Run:      runClients,
		Plot:     plotClients,
	}
}

// view is what a client looks at, and over which servers.
type view struct {
	name   string
	policy string
	make   func(f *fleet, client int) error
}

func runClients(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("random", "rr", "p2c", "p2c-repl", "d3", "least", "pewma", "ewma-inflight2", "c3", "prequal", "prequal-rif"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, slow := range []bool{false, true} {
		for _, m := range e.M {
			for _, policy := range e.Policies {
				cells = append(cells, clientsCell(e, m, slow, ownView(policy, m)))
			}
		}
		if slices.Contains(e.M, 100) && slices.Equal(e.Policies, e.defaults.Policies) {
			for _, v := range remedies() {
				cells = append(cells, clientsCell(e, 100, slow, v))
			}
		}
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return e.skips(c.row) })
	return e.mediansOf(ctx, cells, e.seeds(1))
}

func clientsCell(e *Env, m int, slow bool, v view) cell {
	servers := "equal"
	if slow {
		servers = "20 slow"
	}
	row := Row{Params: []Param{{"servers", servers}, {"m", m}, {"view", v.name}}, Policy: v.policy}
	if v.name == "own" {
		row.Checks = clientsChecks(v.policy, m, slow)
	}
	return cell{row, func(seed uint64) ([]Metric, error) {
		f := fleet{cfg: sim.Config{
			Seed: seed, Servers: sim.Equal(100, sim.Server{}), Rate: 90, Warmup: warmup, Window: units(e.window(6000)),
		}}
		if slow {
			f.cfg.Servers, f.cfg.Rate = heteroServers(), heteroArrivals
		}
		for c := range m {
			if err := v.make(&f, c); err != nil {
				return nil, err
			}
		}
		r, err := f.run()
		if err != nil {
			return nil, err
		}
		return sojourn(r), nil
	}}
}

// ownView is a policy on the client's own requests.
func ownView(policy string, m int) view {
	return view{"own", policy, func(f *fleet, _ int) error {
		return f.client(policy, setting{tau: 10 * sim.Unit, clients: m, prequal: prequalSetting}, nil)
	}}
}

// prequalSetting lets answers live for some service times, as in the paper,
// whose second is a dozen of them.
var prequalSetting = prequal.Config{MaxAge: 12 * sim.Unit}

// remedies are what a fleet of many clients can do.
func remedies() []view {
	list := []view{
		{"reply", "p2c", func(f *fleet, _ int) error {
			cost, err := latency.NewServerQueue(latency.QueueConfig{Decay: 3 * sim.Unit})
			if err != nil {
				return err
			}
			return f.client("p2c", setting{cost: cost}, nil)
		}},
		{"subset 10", "p2c", subsetView(10)},
		{"subset 20", "p2c", subsetView(20)},
		{"aperture", "p2c", apertureView},
	}
	for _, policy := range []string{"prequal", "prequal-rif", "c3", "ewma-inflight2", "pewma"} {
		v := ownView(policy, 100)
		v.name = map[string]string{"prequal": "probes", "prequal-rif": "probes", "c3": "reply"}[policy]
		if v.name == "" {
			v.name = "own latency"
		}
		list = append(list, v)
	}
	return list
}

func subsetView(k int) func(f *fleet, client int) error {
	return func(f *fleet, client int) error {
		list, err := subset.Deterministic(len(f.cfg.Servers), k, client)
		if err != nil {
			return err
		}
		return f.client("p2c", setting{}, list)
	}
}

// apertureView gives each client the servers in an order of its own.
func apertureView(f *fleet, client int) error {
	n := len(f.cfg.Servers)
	order := make([]int, n)
	for i := range order {
		order[i] = (i + client) % n
	}
	set, err := sim.NewSet(n)
	if err != nil {
		return err
	}
	p, err := subset.NewAperture(set, subset.ApertureConfig{Smooth: 15 * time.Second})
	if err != nil {
		return err
	}
	f.cfg.Clients = append(f.cfg.Clients, sim.Client{Picker: balance.Picker(p), Servers: order})
	return nil
}

func clientsChecks(policy string, m int, slow bool) []Check {
	part := .04
	if slow {
		part = .06
	}
	means := func(mean, p99 float64) []Check {
		list := []Check{within("mean", mean, part)}
		if p99 > 0 {
			list = append(list, within("p99", p99, .06))
		}
		return list
	}
	switch {
	case policy == "p2c" && m == 1 && !slow:
		return means(2.64, 8.91)
	case policy == "p2c" && m == 100 && !slow:
		return means(7.08, 25.6)
	case policy == "least" && m == 1 && !slow:
		return means(1.07, 0)
	case policy == "least" && m == 100 && !slow:
		return means(7.01, 0)
	case policy == "p2c" && m == 1:
		return means(2.41, 11.4)
	case policy == "p2c" && m == 100:
		return means(15.2, 117)
	}
	return nil
}
