package experiment

import (
	"context"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/resilience/backoff"
)

// herd: all clients lose their watch at once and come back to three servers that
// each send 1,000 whole topologies a second and hold 200 requests.
func herd() *Experiment {
	return &Experiment{
		Name: "herd", Page: "fleet-changes.md", About: "10,000 watches are cut at once: how they come back, by the pause between tries",
		Uses:     []string{"n", "seeds"},
		Defaults: Params{N: []int{10000}, Seeds: 3},
		Run:      runHerd,
	}
}

const (
	watchServers = 3
	watchWork    = 2e-3 // s of one of two workers
	watchHeld    = 200
)

// pauses are how long a client waits: before the first try, and before further
// ones.
type pauses struct {
	name         string
	first, later backoff.Config
}

func watchPauses() []pauses {
	none := backoff.Config{Base: 1, Max: 1, Jitter: backoff.None}
	return []pauses{
		{"none, then 100 ms doubling to 1 s", none, backoff.Config{Base: 100 * time.Millisecond, Max: time.Second, Jitter: backoff.None}},
		{"none, then full jitter", none, backoff.Config{Base: 100 * time.Millisecond, Max: time.Second}},
		{"none, then decorrelated", none, backoff.Config{Base: 100 * time.Millisecond, Max: time.Second, Jitter: backoff.Decorrelated}},
		// sdk/httpsource: clients that lost a server together spread over half a
		// second, and pause over the upper half of 100 ms to 1 s between rounds.
		{"httpsource", backoff.Config{Base: 500 * time.Millisecond, Max: 500 * time.Millisecond},
			backoff.Config{Base: 100 * time.Millisecond, Max: time.Second, Jitter: backoff.Equal}},
		{"spread over 5 s", backoff.Config{Base: 5 * time.Second, Max: 5 * time.Second}, backoff.Config{Base: 100 * time.Millisecond, Max: time.Second, Jitter: backoff.Equal}},
	}
}

func runHerd(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		for _, p := range watchPauses() {
			row := Row{Params: []Param{{"n", n}, {"pause", p.name}}, Policy: "random"}
			row.Checks = []Check{exactly("back", 1)}
			if p.name == "httpsource" && n == 10000 {
				// 3,000 a second can be served: all are back soon after 10,000 / 3,000 s.
				row.Checks = append(row.Checks, atMost("all_back_s", 6))
			}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playHerd(p, n, seed) }})
		}
	}
	return e.mediansOf(ctx, cells, e.seeds(1))
}

// watcher is one client.
type watcher struct {
	tries int
	pause time.Duration
	back  time.Duration // when it was back
}

func playHerd(p pauses, n int, seed uint64) ([]Metric, error) {
	dice := sim.NewDice(seed, 400)
	p.first.Rand, p.later.Rand = dice.Unit, dice.Unit
	first, err := backoff.New(p.first)
	if err != nil {
		return nil, err
	}
	later, err := backoff.New(p.later)
	if err != nil {
		return nil, err
	}
	watchers := make([]watcher, n)
	tries, refused := map[time.Duration]int{}, 0
	f := fleet{cfg: sim.Config{
		Seed: seed, Window: time.Minute, Service: sim.Constant(watchWork),
		Servers: sim.Equal(watchServers, sim.Server{Slots: 2, Limit: watchHeld}),
	}}
	f.cfg.Ended = func(e sim.End) {
		w := &watchers[e.Class]
		if e.Result == balance.Success {
			w.back = e.At
			return
		}
		refused++
		w.pause = later.Next(w.tries, w.pause)
		w.tries++
		f.sim.At(e.At+w.pause, func() { f.try(tries, e.Class) })
	}
	if err := f.client("random", setting{}, nil); err != nil {
		return nil, err
	}
	if err := f.start(); err != nil {
		return nil, err
	}
	for i := range watchers {
		f.sim.At(first.Next(0, 0), func() { f.try(tries, int32(i)) })
	}
	f.sim.Run()
	return herdMetrics(watchers, tries, refused), nil
}

// try sends one client's request and counts it in its tenth of a second.
func (f *fleet) try(tries map[time.Duration]int, client int32) {
	tries[f.sim.Now()/(100*time.Millisecond)]++
	f.sim.Send(0, client)
}

func herdMetrics(watchers []watcher, tries map[time.Duration]int, refused int) []Metric {
	var back []time.Duration
	for _, w := range watchers {
		if w.back > 0 {
			back = append(back, w.back)
		}
	}
	slices.Sort(back)
	at := func(q float64) float64 {
		if len(back) == 0 {
			return 0
		}
		return back[min(len(back)-1, int(q*float64(len(back))))].Seconds()
	}
	peak, all := 0, 0
	for _, c := range tries {
		peak, all = max(peak, c), all+c
	}
	return []Metric{
		{"back", float64(len(back)) / float64(len(watchers))}, {"peak_tries_per_s", 10 * float64(peak)}, {"tries/client", float64(all) / float64(len(watchers))},
		{"refused", float64(refused) / float64(max(1, all))}, {"half_back_s", at(.5)}, {"p99_back_s", at(.99)}, {"all_back_s", at(1)},
	}
}
