package experiment

import (
	"context"
	"math"
	"slices"

	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// cacheFleet: the hit rate of twenty caches through changes of their nodes, window
// by window.
func cacheFleet() *Experiment {
	return &Experiment{
		Name: "cachefleet", Page: "fleet-changes.md", Short: "hit rate through add, remove, replace, restarts and returns of cache nodes",
		Uses:     []string{"n", "seeds"},
		Defaults: Params{N: []int{20}, Seeds: 3},
		Run:      runCacheFleet,
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
)

// change is one scenario: what happens, and how.
type change struct {
	what, how string
	algorithm topology.Algorithm
	// step is called before each window after the warm-up, with its number.
	step func(f *cacheRun, window int) error
}

func changes() []change {
	ring, slots := topology.Ring, topology.Slots
	return []change{
		{"add", "at once", slots, once((*cacheRun).add)},
		{"add", "ramp", slots, ramp((*cacheRun).added)},
		{"remove", "at once", slots, once((*cacheRun).remove)},
		{"remove", "ramp", slots, ramp((*cacheRun).drained)},
		{"replace", "at once", slots, once((*cacheRun).replace)},
		{"replace", "at once", ring, once((*cacheRun).replace)},
		{"restart", "all at once", slots, func(f *cacheRun, w int) error { return f.restart(w, len(f.caches)) }},
		{"restart", "one a window", slots, func(f *cacheRun, w int) error { return f.restart(w, 1) }},
		{"return", "as it was", slots, func(f *cacheRun, w int) error { return f.away(w, false) }},
		{"return", "fence", slots, func(f *cacheRun, w int) error { return f.away(w, true) }},
	}
}

func runCacheFleet(ctx context.Context, e *Env) ([]Row, error) {
	var cells []cell
	for _, n := range e.N {
		for _, c := range changes() {
			row := Row{Params: []Param{{"n", n}, {"change", c.what}, {"how", c.how}, {"algorithm", string(c.algorithm)}}}
			cells = append(cells, cell{row, func(seed uint64) ([]Metric, error) { return playCaches(c, n, seed) }})
		}
	}
	rows, err := e.mediansOf(ctx, cells, e.seeds(1))
	for i := range rows {
		r := &rows[i]
		switch r.paramText("how") {
		case "ramp", "one a window": // gentler than the row before it
			dip, _ := rows[i-1].Get("dip")
			r.Checks = []Check{atMost("dip", dip)}
		case "fence":
			r.Checks = []Check{exactly("stale", 0)}
		case "as it was":
			r.Checks = []Check{atLeast("stale", 1e-6)} // that is what the fence is for
		}
	}
	return rows, err
}

// cacheRun is one run.
type cacheRun struct {
	*cluster
	keys    *keys
	hash    []uint64
	version []int32 // of each key's value
	caches  map[string]*lru
	down    string // the node that does not answer
	dice    *sim.Dice
	buf     []int

	hits, stale []float64 // by window after the warm-up
}

// playCaches plays a change, and the same requests without it: what the two differ
// by is the change, and not chance.
func playCaches(c change, n int, seed uint64) ([]Metric, error) {
	still, _, err := playWindows(change{algorithm: c.algorithm}, n, seed)
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
		before, after, stale = before+still.hits[w]/afterWindows, after+run.hits[w]/afterWindows, stale+run.stale[w]/afterWindows
		lost[w] = still.hits[w] - run.hits[w]
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

// playWindows plays the windows of one run and returns it with the mapping that it
// started with.
func playWindows(c change, n int, seed uint64) (*cacheRun, *placement.Table, error) {
	cl, err := newCluster(topology.Spec{Algorithm: c.algorithm}, n)
	if err != nil {
		return nil, nil, err
	}
	f := &cacheRun{cluster: cl, keys: newKeys(seed, cacheKeys, cacheSkew), version: make([]int32, cacheKeys), caches: map[string]*lru{}, dice: sim.NewDice(seed, 500)}
	for _, name := range f.keys.names {
		f.hash = append(f.hash, cl.table.Hash(name))
	}
	start := cl.table
	for range warmWindows {
		f.window()
	}
	for w := range afterWindows {
		if c.step != nil {
			if err := c.step(f, w); err != nil {
				return nil, nil, err
			}
		}
		hits, stale := f.window()
		f.hits, f.stale = append(f.hits, hits), append(f.stale, stale)
	}
	return f, start, nil
}

// window plays one window and returns the share of reads that hit, and of those
// that got an old value.
func (f *cacheRun) window() (hits, stale float64) {
	reads := 0.
	for range windowSize {
		k := f.keys.draw(f.dice)
		e, hit := f.cache(k).get(k)
		if f.dice.Unit() < cacheWrites {
			f.version[k]++
			e.version = f.version[k]
			continue
		}
		reads++
		switch {
		case !hit:
			e.version = f.version[k] // from the origin
		case e.version < f.version[k]:
			stale++
			hits++
		default:
			hits++
		}
	}
	return hits / reads, stale / reads
}

// cache returns the cache of a key: its owner's, or that of the next in order if
// the owner does not answer.
func (f *cacheRun) cache(k int) *lru {
	t := f.table.Topology()
	id := t.Node(f.table.Locate(f.hash[k])).ID
	if id == f.down {
		f.buf = f.table.AppendReplicas(f.buf[:0], f.hash[k], 2)
		id = t.Node(f.buf[1]).ID
	}
	c := f.caches[id]
	if c == nil {
		c = newLRU(cacheHolds)
		f.caches[id] = c
	}
	return c
}

// once makes a change before the first window.
func once(f func(*cacheRun) error) func(*cacheRun, int) error {
	return func(r *cacheRun, window int) error {
		if window > 0 {
			return nil
		}
		return f(r)
	}
}

func (f *cacheRun) nodes() []topology.Node { return f.table.Topology().Draft().Nodes }

// added are the nodes with one more, drained those of which the last gives up its
// keys.
func (f *cacheRun) added() []topology.Node {
	return append(f.nodes(), topology.Node{ID: nodeID(f.table.Len()), Addr: "10.1.0.0:11211", Weight: 1})
}

func (f *cacheRun) drained() []topology.Node {
	list := f.nodes()
	list[len(list)-1].State = topology.StateDraining
	return list
}

func (f *cacheRun) add() error { return f.publish(f.added()) }

func (f *cacheRun) remove() error {
	list := f.nodes()
	return f.publish(list[:len(list)-1])
}

// replace puts a new node, with an empty cache, in the place of the last.
func (f *cacheRun) replace() error {
	list := f.nodes()
	old := list[len(list)-1].ID
	list[len(list)-1].ID = "replacement"
	table, err := placement.UpdateWith(f.table, f.next(list), placement.UpdateOptions{Replace: map[string]string{old: "replacement"}})
	if err == nil {
		f.table = table
	}
	return err
}

// ramp makes a change in steps: each moves the keys of another part of the ranks.
func ramp(nodes func(*cacheRun) []topology.Node) func(*cacheRun, int) error {
	return func(f *cacheRun, window int) (err error) {
		step := window*rampSteps/rampWindows + 1
		if window*rampSteps%rampWindows != 0 || step > rampSteps {
			return nil
		}
		d := f.next(f.nodes())
		threshold := uint64(float64(step) / rampSteps * math.MaxUint64)
		var table *placement.Table
		switch step {
		case 1:
			d = f.next(nodes(f))
			table, err = placement.Begin(f.table, d, topology.Transition{ID: 1, Kind: topology.TransitionNone, Thresholds: []uint64{threshold}})
		case rampSteps:
			table, err = placement.Settle(f.table, d)
		default:
			table, err = placement.Step(f.table, d, threshold)
		}
		if err == nil {
			f.table = table
		}
		return err
	}
}

// restart empties the caches of some nodes a window, until all had their turn.
func (f *cacheRun) restart(window, count int) error {
	for i := window * count; i < min((window+1)*count, f.table.Len()); i++ {
		f.caches[f.table.Topology().Node(i).ID] = nil
	}
	return nil
}

// away keeps a node away for ten windows; then it comes back with what it held,
// or behind a fence: what it took before is not used.
func (f *cacheRun) away(window int, fence bool) error {
	id := f.table.Topology().Node(0).ID
	switch window {
	case 0:
		f.down = id
	case 10:
		f.down = ""
		if fence {
			f.caches[id] = nil
		}
	}
	return nil
}
