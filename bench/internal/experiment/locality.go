package experiment

import (
	"context"
	"time"

	"github.com/shardd/shardd/bench/sim"
)

// locality: fifty closed-loop threads on servers of 1, 2 and 3 ms, which change
// places at 20 s.
func locality() *Experiment {
	return &Experiment{
		Name: "lalb", Page: "policies-latency.md", About: "50 threads on servers of 1, 2 and 3 ms, reversed at 20 s",
		Uses:     []string{"policies", "seeds"},
		Defaults: Params{Seeds: 5, Policies: []string{"lalb", "rr", "random", "p2c", "pewma"}},
		Run:      runLocality,
	}
}

const (
	localitySeconds  = 60
	localityReversal = 20
	localityThreads  = 50
)

func runLocality(ctx context.Context, e *Env) ([]Row, error) {
	if err := e.checkPolicies("lalb", "rr", "random", "p2c", "p2c-repl", "pewma", "ewma-inflight2", "least"); err != nil {
		return nil, err
	}
	var cells []cell
	for _, policy := range e.Policies {
		row := Row{Policy: policy}
		switch policy {
		case "lalb":
			// The range holds for any number of seeds.
			row.Checks = []Check{atLeast("share", .999), {Metric: "overtakes_s", Expected: 25, Tolerance: 15, Fixed: true}}
		case "rr", "random":
			row.Checks = []Check{within("qps_before", 25000, .02)}
		}
		cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playLocality(policy, seed) }})
	}
	return e.mediansOf(ctx, cells, e.seeds(1))
}

func playLocality(policy string, seed uint64) ([]Metric, error) {
	var picks [localitySeconds + 1][3]int
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(3, sim.Server{Discipline: sim.Delay}), Window: localitySeconds * time.Second,
	}}
	second := func() int { return min(localitySeconds, int(f.sim.Now()/time.Second)) }
	f.cfg.Work = func(server, _ int, _ *sim.Dice) float64 {
		if second() >= localityReversal {
			server = 2 - server
		}
		return float64(server+1) * 1e-3
	}
	f.cfg.Sent = func(_, server int) { picks[second()][server]++ }
	f.cfg.Ended = func(sim.End) {
		if second() < localitySeconds {
			f.sim.Send(0, 0)
		}
	}
	if err := f.client(policy, setting{}, nil); err != nil {
		return nil, err
	}
	if err := f.start(); err != nil {
		return nil, err
	}
	for i := range localityThreads {
		f.sim.At(time.Duration(7*i)*time.Microsecond, func() { f.sim.Send(0, 0) })
	}
	f.sim.Run()
	return localityMetrics(picks[:localitySeconds]), nil
}

func localityMetrics(picks [][3]int) []Metric {
	var before [3]int
	for _, p := range picks[10:20] {
		for i := range before {
			before[i] += p[i]
		}
	}
	all := before[0] + before[1] + before[2]
	overtakes := float64(localitySeconds)
	for s := localityReversal; s < localitySeconds; s++ {
		if picks[s][2] > picks[s][0] {
			overtakes = float64(s - localityReversal)
			break
		}
	}
	worst, last := all, picks[localitySeconds-1]
	for _, p := range picks[localityReversal+1:] {
		worst = min(worst, p[0]+p[1]+p[2])
	}
	return []Metric{
		{"share", float64(before[0]) / float64(max(1, all))}, {"qps_before", float64(all) / 10}, {"qps_worst", float64(worst)},
		{"overtakes_s", overtakes}, {"share_at_end", float64(last[2]) / float64(max(1, last[0]+last[1]+last[2]))},
	}
}

// localityCurve: two servers whose latency rises with their load.
func localityCurve() *Experiment {
	return &Experiment{
		Name: "lalb-curve", Page: "policies-latency.md", About: "two servers of 30 and 60 ms that slow down over 30 requests at a time",
		Uses:     []string{"seeds"},
		Defaults: Params{Seeds: 3},
		Run:      runLocalityCurve,
		Plot:     plotLocalityCurve,
	}
}

// knee is the number of requests from which on latency rises with it: the first
// server answers up to 1,000 a second in 30 ms, the second up to 500 in 60.
const knee = 30

func runLocalityCurve(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, rate := range []float64{200, 400, 600, 1100, 1200, 1300} {
		row := Row{Params: []Param{{"rate", rate}}, Policy: "lalb"}
		if rate < knee/.03 {
			row.Checks = []Check{atLeast("share", .95)}
		} else {
			row.Checks = []Check{plus("ratio", 1, .1)}
		}
		cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playLocalityCurve(rate, seed) }})
	}
	return e.mediansOf(ctx, cells, e.seeds(1))
}

func playLocalityCurve(rate float64, seed uint64) ([]Metric, error) {
	var took [2]float64
	var count [2]float64
	f := fleet{cfg: sim.Config{
		Seed: seed, Servers: sim.Equal(2, sim.Server{Discipline: sim.Delay}), Rate: rate, Warmup: time.Minute, Window: 5 * time.Minute,
	}}
	f.cfg.Work = func(server, load int, dice *sim.Dice) float64 {
		return .03 * float64(server+1) * max(1, float64(load+1)/knee) * (.9 + .2*dice.Unit())
	}
	f.cfg.Ended = func(e sim.End) {
		if e.At > time.Minute {
			took[e.Server] += e.Took.Seconds()
			count[e.Server]++
		}
	}
	if err := f.client("lalb", setting{}, nil); err != nil {
		return nil, err
	}
	r, err := f.run()
	if err != nil {
		return nil, err
	}
	first, second := took[0]/max(1, count[0]), took[1]/max(1, count[1])
	return []Metric{{"share", r.Share(0)}, {"mean_ms_1", 1e3 * first}, {"mean_ms_2", 1e3 * second}, {"ratio", first / second}}, nil
}
