package experiment

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// cacheFleet: the hit rate of twenty caches through changes of their nodes, window
// by window, and the old values that they serve.
func cacheFleet() *Experiment {
	return &Experiment{
		Name: "cachefleet", Page: "fleet-changes.md", About: "hit rate and old values through add, remove, replace, restarts and returns of cache nodes",
		Uses:     []string{"n", "seeds"},
		Least:    3, // one leaves
		Most:     mostNodes,
		Defaults: Params{N: []int{20}, Seeds: 3},
		Run:      runCacheFleet,
		Plot:     plotCaches,
	}
}

const (
	cacheKeys    = 50_000
	cacheSkew    = .9
	cacheHolds   = 1250 // of them a node
	cacheWrites  = .02  // of the requests
	windowSize   = 10_000
	warmWindows  = 30
	afterWindows = 50
	rampWindows  = 20
	rampSteps    = 10
	awayWindows  = 10
)

// change is one scenario: what happens, and how.
type change struct {
	what, how string
	algorithm topology.Algorithm
	// fence takes for a miss what a node stored under an earlier tenure of the key
	// (placement.Table.OwnedSince).
	fence bool
	// step is called before each window after the warm-up, with its number.
	step func(f *cacheRun, window int) error
}

// changes are the scenarios, each without the fence and then with it.
func changes() []change {
	ring, slots := topology.Ring, topology.Slots
	var list []change
	for _, c := range []change{
		{what: "add", how: "at once", algorithm: slots, step: once((*cacheRun).add)},
		{what: "add", how: "ramp", algorithm: slots, step: ramp((*cacheRun).added)},
		{what: "remove", how: "at once", algorithm: slots, step: once((*cacheRun).remove)},
		{what: "remove", how: "ramp", algorithm: slots, step: ramp((*cacheRun).drained)},
		{what: "remove", how: "at once", algorithm: ring, step: once((*cacheRun).remove)},
		{what: "replace", how: "at once", algorithm: slots, step: once((*cacheRun).replace)},
		{what: "replace", how: "at once", algorithm: ring, step: once((*cacheRun).replace)},
		{what: "replace", how: "ramp", algorithm: ring, step: ramp((*cacheRun).replaced)},
		{what: "restart", how: "all at once", algorithm: slots, step: func(f *cacheRun, w int) error { return f.restart(w, len(f.caches)) }},
		{what: "restart", how: "one a window", algorithm: slots, step: func(f *cacheRun, w int) error { return f.restart(w, 1) }},
		{what: "return", how: "at once", algorithm: slots, step: back(once((*cacheRun).returning))},
		{what: "return", how: "ramp", algorithm: slots, step: back(ramp((*cacheRun).returned))},
		{what: "return", how: "at once", algorithm: ring, step: back(once((*cacheRun).returning))},
		{what: "outage", how: "as it was", algorithm: slots, step: func(f *cacheRun, w int) error { return f.outage(w, false) }},
		{what: "outage", how: "emptied", algorithm: slots, step: func(f *cacheRun, w int) error { return f.outage(w, true) }},
	} {
		list = append(list, c)
		c.fence = true
		list = append(list, c)
	}
	return list
}

func runCacheFleet(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		without := unchanged{n: n}
		for _, c := range changes() {
			row := Row{Params: []Param{{"n", n}, {"change", c.what}, {"how", c.how}, {"algorithm", string(c.algorithm)}, {"fence", c.fence}}}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playCaches(c, n, seed, &without) }})
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(1))
	for i := range rows {
		r := &rows[i]
		if n, _ := r.Param("n"); n != 20 {
			continue
		}
		fence, _ := r.flag("fence")
		what, how := r.paramText("change"), r.paramText("how")
		switch {
		case how == "emptied", what != "outage" && (fence || what != "return"):
			r.Checks = []Check{exactly("stale", 0)}
		case what == "outage" || r.paramText("algorithm") == string(topology.Ring):
			// A node that comes back to its keys, and nothing that tells old values; the fence
			// knows of ownership, not of outages. On slots it mostly gets others.
			r.Checks = []Check{atLeast("stale", 1e-6)}
		}
		if how == "ramp" || how == "one a window" { // gentler than at once, two rows before it
			dip, _ := rows[i-2].Get("dip")
			r.Checks = append(r.Checks, atMost("dip", dip))
		}
	}
	return rows, err
}

// unchanged plays the requests without a change, once a seed and algorithm.
type unchanged struct {
	n    int
	mu   sync.Mutex
	hits map[string]func() ([]float64, error)
}

func (u *unchanged) get(a topology.Algorithm, seed uint64) ([]float64, error) {
	u.mu.Lock()
	key := fmt.Sprint(a, seed)
	if u.hits == nil {
		u.hits = map[string]func() ([]float64, error){}
	}
	if u.hits[key] == nil {
		u.hits[key] = sync.OnceValues(func() ([]float64, error) {
			run, _, err := playWindows(change{algorithm: a}, u.n, seed)
			if err != nil {
				return nil, err
			}
			return run.hits, nil
		})
	}
	hits := u.hits[key]
	u.mu.Unlock()
	return hits()
}

// playCaches plays a change beside the same requests without it: what the two
// differ by is the change, and not chance.
func playCaches(c change, n int, seed uint64, without *unchanged) ([]Metric, error) {
	still, err := without.get(c.algorithm, seed)
	if err != nil {
		return nil, err
	}
	run, start, err := playWindows(c, n, seed)
	if err != nil {
		return nil, err
	}
	report, err := placement.Movement(start, run.table)
	if err != nil {
		return nil, err
	}
	var before, after, stale, last float64
	lost := make([]float64, afterWindows) // hit rate
	for w := range lost {
		before, after, stale = before+still[w]/afterWindows, after+run.hits[w]/afterWindows, stale+run.stale[w]/afterWindows
		lost[w] = still[w] - run.hits[w]
		if w >= afterWindows-10 {
			last += lost[w] / 10
		}
	}
	worst, recovered := slices.Max(lost), 0
	for w, x := range lost {
		if x > last+.005 {
			recovered = w + 1
		}
	}
	return []Metric{
		{"moved", report.Ratio}, {"hits", before}, {"hits_with", after}, {"dip", worst - max(0, last)},
		{"origin_load", (1 - before + worst) / (1 - before)}, {"windows_to_recover", float64(recovered)}, {"stale", stale},
	}, nil
}
