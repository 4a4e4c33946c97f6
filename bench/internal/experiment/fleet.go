package experiment

import (
	"context"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/bench/sim"
)

// warmup is how long a run goes before requests are counted.
const warmup = 5000 * sim.Unit

// units returns x units as a time.
func units(x float64) time.Duration { return time.Duration(x * float64(sim.Unit)) }

// cell is a row to be: play returns its metrics under one seed.
type cell struct {
	row  Row
	play func(seed uint64) ([]Metric, error)
}

// medians plays every cell under every seed; each metric of a row is the median.
func (e *Env) medians(ctx context.Context, cells []cell) ([]Row, error) {
	return e.mediansOf(ctx, cells, e.Seeds)
}

func (e *Env) mediansOf(ctx context.Context, cells []cell, seeds int) ([]Row, error) {
	measured := make([][]Metric, len(cells)*seeds)
	err := e.each(ctx, len(measured), func(i int) (err error) {
		measured[i], err = cells[i/seeds].play(e.Seed + uint64(i%seeds))
		return err
	})
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(cells))
	for c := range cells {
		rows[c] = cells[c].row
		for k, m := range measured[c*seeds] {
			values := make([]float64, seeds)
			for s := range values {
				values[s] = measured[c*seeds+s][k].Value
			}
			rows[c].Metrics = append(rows[c].Metrics, Metric{m.Name, median(values)})
		}
	}
	return rows, nil
}

// sojourn are the metrics of most experiments.
func sojourn(r *sim.Result) []Metric {
	return []Metric{{"mean", r.Mean}, {"p99", r.Quantile(.99)}, {"peak", float64(r.Peak)}, {"longest", r.MeanLongest}}
}

// fleet is a run in the making: the simulator with the pickers of its clients
// and what they need of the servers.
type fleet struct {
	cfg sim.Config
	sim *sim.Sim
}

// client adds a balancer over all servers, or the given ones.
func (f *fleet) client(policy string, o setting, servers []int, weights ...float64) error {
	n := len(f.cfg.Servers)
	if servers != nil {
		n = len(servers)
	}
	set, err := sim.NewSet(n, weights...)
	if err != nil {
		return err
	}
	p, err := newPicker(policy, set, o)
	if err != nil {
		return err
	}
	f.cfg.Clients = append(f.cfg.Clients, sim.Client{Picker: p, Servers: servers})
	return nil
}

// run plays it.
func (f *fleet) run() (*sim.Result, error) {
	if err := f.start(); err != nil {
		return nil, err
	}
	return f.sim.Run(), nil
}

// start makes the simulator and gives policies the servers' half.
func (f *fleet) start() (err error) {
	f.probes()
	if f.sim, err = sim.New(f.cfg); err != nil {
		return err
	}
	return nil
}

// probes lets Prequal's clients probe after each pick; a probe takes no time.
func (f *fleet) probes() {
	clients := make([]*prequal.Picker, len(f.cfg.Clients))
	found := false
	for i, c := range f.cfg.Clients {
		p, ok := c.Picker.(*prequal.Picker)
		clients[i], found = p, found || ok
	}
	if !found {
		return
	}
	servers := make([]*prequal.Server, len(f.cfg.Servers))
	for i := range servers {
		servers[i] = prequal.NewServer()
	}
	dice := sim.NewDice(f.cfg.Seed, 100)
	f.cfg.Arrived = func(server int) int64 { return servers[server].Begin() }
	ended := f.cfg.Ended
	f.cfg.Ended = func(e sim.End) {
		servers[e.Server].End(e.Token, e.Took)
		if ended != nil {
			ended(e)
		}
	}
	var buf []int
	f.cfg.Sent = func(client, _ int) {
		p := clients[client]
		buf = p.Probes(dice.Bits(), buf[:0])
		for _, i := range buf {
			rif, latency := servers[f.cfg.Clients[client].Server(i)].Load()
			p.Report(i, f.sim.Now(), rif, latency)
		}
	}
}

// report lets servers report their load to gRPC's policy every period: requests
// and utilisation, averaged over the time smooth.
func (f *fleet) report(period, smooth time.Duration) {
	f.reportUse(period, smooth, func(int) float64 { return 1 })
}

// reportUse is report with utilisation as a multiple of the time in use: what is
// full may be a part of the machine.
func (f *fleet) reportUse(period, smooth time.Duration, multiple func(server int) float64) {
	var clients []*wrr.Reported
	for _, c := range f.cfg.Clients {
		if p, ok := c.Picker.(*wrr.Reported); ok {
			clients = append(clients, p)
		}
	}
	if clients == nil {
		return
	}
	m := newMeter(f.sim, len(f.cfg.Servers), smooth)
	f.sim.Every(period, func() {
		for i := range f.cfg.Servers {
			load := m.read(i)
			load.Utilization *= multiple(i)
			for _, p := range clients {
				p.Report(i, f.sim.Now(), load)
			}
		}
	})
}

// board is a cost that shows the queues as they were at the last copy; with bump
// the dispatcher counts what it has sent since.
type board struct {
	shown []float64
	bump  bool
}

func newBoard(n int, bump bool) *board { return &board{make([]float64, n), bump} }

// Cost implements balance.Cost.
func (b *board) Cost(i int, _ time.Duration) float64 { return b.shown[i] }

// Bind implements balance.Cost.
func (b *board) Bind(*balance.Set, []int) balance.Cost { return b }

// Start implements balance.Starter.
func (b *board) Start(i int, _ time.Duration) {
	if b.bump {
		b.shown[i]++
	}
}

// Observe implements balance.Observer: departures do not touch the board.
func (b *board) Observe(int, time.Duration, time.Duration, balance.Outcome) {}

// copyEvery copies the queues of s to the board at 0, period, 2 period...
func (b *board) copyEvery(s *sim.Sim, period time.Duration) {
	s.Every(period, func() {
		for i := range b.shown {
			b.shown[i] = float64(s.Load(i))
		}
	})
}
