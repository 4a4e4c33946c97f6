package experiment

import (
	"math"

	"github.com/shardd/shardd/bench/sim"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// cacheRun is one run of caches through a change.
type cacheRun struct {
	*cluster
	keys    *keys
	hash    []uint64
	version []int32 // of each key's value
	caches  map[string]*lru
	fence   bool
	down    string        // the node that does not answer
	gone    topology.Node // the node that left, and comes back
	dice    *sim.Dice
	buf     []int

	hits, stale []float64 // by window after the warm-up
}

// playWindows plays the windows of one run and returns it with the mapping that it
// started with.
func playWindows(c change, n int, seed uint64) (*cacheRun, *placement.Table, error) {
	cl := &cluster{draft: topology.Draft{Cluster: "sim", ID: topology.ClusterID{1}, History: 1, Spec: topology.Spec{Algorithm: c.algorithm}}, tenure: true}
	if err := cl.publish(clusterNodes(n)); err != nil {
		return nil, nil, err
	}
	f := &cacheRun{
		cluster: cl, keys: newKeys(seed, cacheKeys, cacheSkew), version: make([]int32, cacheKeys), caches: map[string]*lru{},
		fence: c.fence, dice: sim.NewDice(seed, 500),
	}
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
		i := f.node(k)
		e, hit := f.cache(i).get(k)
		var since topology.Version
		if f.fence {
			since = f.table.OwnedSince(f.hash[k], i)
			// As the SDK's memcached client: what carries an earlier version is a miss, and
			// so is all that a node has which does not own the key.
			hit = hit && !since.IsZero() && e.since.Compare(since) >= 0
		}
		if f.dice.Unit() < cacheWrites {
			f.version[k]++
			e.version, e.since = f.version[k], since
			continue
		}
		reads++
		switch {
		case !hit: // from the origin
			e.version, e.since = f.version[k], since
		case e.version < f.version[k]:
			stale++
			hits++
		default:
			hits++
		}
	}
	return hits / reads, stale / reads
}

// node returns the node of a key: its owner, or the next in order if the owner does
// not answer.
func (f *cacheRun) node(k int) int {
	i := f.table.Locate(f.hash[k])
	if f.table.Topology().Node(i).ID == f.down {
		f.buf = f.table.AppendReplicas(f.buf[:0], f.hash[k], 2)
		i = f.buf[1]
	}
	return i
}

func (f *cacheRun) cache(node int) *lru {
	id := f.table.Topology().Node(node).ID
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
		if window != 0 {
			return nil
		}
		return f(r)
	}
}

// back lets the last node leave with what it holds, and makes a change some windows
// later, which is to bring it back.
func back(step func(*cacheRun, int) error) func(*cacheRun, int) error {
	return func(f *cacheRun, window int) error {
		if window == 0 {
			list := f.nodes()
			f.gone = list[len(list)-1]
			return f.remove()
		}
		if window < awayWindows {
			return nil
		}
		return step(f, window-awayWindows)
	}
}

func (f *cacheRun) nodes() []topology.Node { return f.table.Topology().Draft().Nodes }

// added are the nodes with one more, drained those of which the last gives up its
// keys, replaced those with another one in its place, returned those with the one
// that left.
func (f *cacheRun) added() []topology.Node {
	return append(f.nodes(), topology.Node{ID: nodeID(f.table.Len()), Addr: "10.1.0.0:11211", Weight: 1})
}

func (f *cacheRun) drained() []topology.Node {
	list := f.nodes()
	list[len(list)-1].State = topology.StateDraining
	return list
}

func (f *cacheRun) replaced() []topology.Node {
	return append(f.drained(), topology.Node{ID: "replacement", Addr: "10.1.0.0:11211", Weight: 1})
}

func (f *cacheRun) returned() []topology.Node { return append(f.nodes(), f.gone) }

func (f *cacheRun) add() error { return f.publish(f.added()) }

func (f *cacheRun) returning() error { return f.publish(f.returned()) }

func (f *cacheRun) remove() error {
	list := f.nodes()
	return f.publish(list[:len(list)-1])
}

// replace puts a new node, with an empty cache, in the place of the last.
func (f *cacheRun) replace() error {
	list := f.nodes()
	old := list[len(list)-1].ID
	list[len(list)-1].ID = "replacement"
	o := placement.UpdateOptions{Replace: map[string]string{old: "replacement"}, Tenure: f.tenure}
	table, err := placement.UpdateWith(f.table, f.next(list), o)
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

// outage lets a node not answer for some windows, without a word of it in the
// topology; then it comes back with what it held, or empty.
func (f *cacheRun) outage(window int, emptied bool) error {
	id := f.table.Topology().Node(0).ID
	switch window {
	case 0:
		f.down = id
	case awayWindows:
		f.down = ""
		if emptied {
			f.caches[id] = nil
		}
	}
	return nil
}
