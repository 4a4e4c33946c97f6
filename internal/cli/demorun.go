package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/topology"
)

// demoNodes are there from the beginning, demoAdded comes later.
var demoNodes = []string{"cache-a", "cache-b", "cache-c"}

const demoAdded = "cache-d"

// demoRun is the main job under one algorithm.
type demoRun struct {
	client  *api.Client
	url     string
	cluster string
	keys    []string

	sdk           *sdk.Client
	taken         chan time.Time // when lookups went by the second version
	before, after []string       // owner of each key
}

func (d *demoRun) run(ctx context.Context, algorithm topology.Algorithm) (demoRow, error) {
	declared := topology.Declared{Cluster: d.cluster, Spec: topology.Spec{Algorithm: algorithm}}
	for _, id := range demoNodes {
		declared.Nodes = append(declared.Nodes, topology.Node{ID: id, Weight: 1})
	}
	r, err := d.client.PutSpec(ctx, declared, api.EditOptions{})
	if err == nil && !r.Published {
		err = errNotPublished
	}
	if err != nil {
		return demoRow{}, err
	}
	if err := d.follow(ctx); err != nil {
		return demoRow{}, err
	}
	defer d.sdk.Close()
	if d.before, err = d.routeAll(); err != nil {
		return demoRow{}, err
	}
	edit, sent, err := d.addWhileRouting(ctx)
	if err != nil {
		return demoRow{}, err
	}
	if d.after, err = d.routeAll(); err != nil {
		return demoRow{}, err
	}
	row := countDemo(string(algorithm), d.before, d.after)
	row.TakenMS = float64((<-d.taken).Sub(sent)) / float64(time.Millisecond)
	row.Exact, row.Minimum, row.Excess = edit.Movement.Ratio, edit.Movement.Minimum, edit.Movement.Excess
	if row.NSPerRoute, err = d.nsPerRoute(); err != nil {
		return demoRow{}, err
	}
	return row, checkDemo(row, edit, len(d.keys))
}

var errNotPublished = errors.New("the edit was accepted, but not published in time")

// follow starts the SDK's client and waits for its first topology.
func (d *demoRun) follow(ctx context.Context) error {
	source, err := httpsource.New(d.cluster, []string{d.url})
	if err != nil {
		return err
	}
	d.taken = make(chan time.Time, 1)
	hooks := sdk.Hooks{OnTaken: func(_, to topology.Ref, _ time.Duration) {
		if to.Version.Seq == 2 {
			d.taken <- time.Now()
		}
	}}
	if d.sdk, err = sdk.New(source, sdk.WithHooks(hooks)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := d.sdk.WaitReady(ctx); err != nil {
		d.sdk.Close()
		return err
	}
	return nil
}

func (d *demoRun) routeAll() ([]string, error) {
	owners := make([]string, len(d.keys))
	for i, key := range d.keys {
		r, err := d.sdk.Route(key)
		if err != nil {
			return nil, err
		}
		owners[i] = r.ID()
	}
	return owners, nil
}

// addWhileRouting adds the fourth node in the midst of the keys and goes on
// routing until the new version has arrived. No key may fail, no version may go
// back, and no owner may change while the version does not.
func (d *demoRun) addWhileRouting(ctx context.Context) (api.EditResult, time.Time, error) {
	type outcome struct {
		result api.EditResult
		err    error
	}
	edited := make(chan outcome, 1)
	var sent time.Time
	first := d.sdk.Topology().Version()
	last := first
	for pass := 0; last == first; pass++ {
		if pass == 1000 {
			return api.EditResult{}, sent, fmt.Errorf("no new version after %d routes", pass*len(d.keys))
		}
		for i, key := range d.keys {
			if pass == 0 && i == len(d.keys)/4 {
				sent = time.Now()
				go func() {
					r, err := d.client.EditNode(ctx, d.cluster, demoAdded, api.VerbAdd, api.NodeEdit{}, api.EditOptions{})
					edited <- outcome{r, err}
				}()
			}
			r, err := d.sdk.Route(key)
			if err != nil {
				return api.EditResult{}, sent, err
			}
			switch v := r.Version(); {
			case v.Compare(last) < 0:
				return api.EditResult{}, sent, fmt.Errorf("promise broken: version %s after %s", v, last)
			case v == first && r.ID() != d.before[i]:
				return api.EditResult{}, sent, fmt.Errorf("promise broken: key %q went to %s and then to %s under version %s", key, d.before[i], r.ID(), v)
			default:
				last = v
			}
		}
		if ctx.Err() != nil {
			return api.EditResult{}, sent, ctx.Err()
		}
	}
	o := <-edited
	if o.err == nil && (!o.result.Published || o.result.Movement == nil) {
		o.err = errNotPublished
	}
	return o.result, sent, o.err
}

// nsPerRoute is the least of three passes: other work on the machine only adds.
func (d *demoRun) nsPerRoute() (float64, error) {
	best := math.Inf(1)
	for range 3 {
		began := time.Now()
		length := 0
		for _, key := range d.keys {
			r, err := d.sdk.Route(key)
			if err != nil {
				return 0, err
			}
			length += len(r.ID())
		}
		best = min(best, float64(time.Since(began).Nanoseconds())/float64(len(d.keys)))
		if length != len(d.keys)*len(demoAdded) {
			return 0, fmt.Errorf("ids of %d bytes in all, want %d", length, len(d.keys)*len(demoAdded))
		}
	}
	return best, nil
}

// countDemo counts what moved from one list of owners to the other.
func countDemo(algorithm string, before, after []string) demoRow {
	row := demoRow{Algorithm: algorithm}
	moved := 0
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		moved++
		if after[i] != demoAdded {
			row.Needless++
		}
	}
	row.Moved = float64(moved) / float64(len(before))
	row.PeakBefore = countPeak(before, len(demoNodes))
	row.PeakAfter = countPeak(after, len(demoNodes)+1)
	return row
}

func countPeak(owners []string, nodes int) float64 {
	count := map[string]int{}
	most := 0
	for _, id := range owners {
		count[id]++
		most = max(most, count[id])
	}
	return float64(most) * float64(nodes) / float64(len(owners))
}

// checkDemo holds a row to what is promised of every algorithm: nothing moves
// between nodes that did not change, no more moves than the new shares ask for,
// and what was counted is what was published, within what chance allows.
func checkDemo(row demoRow, edit api.EditResult, keys int) error {
	m := edit.Movement.Summary
	sigma := math.Sqrt(m.Ratio * (1 - m.Ratio) / float64(keys))
	switch {
	case row.Needless > 0 || m.BetweenUnchanged > 0:
		return fmt.Errorf("promise broken: %d keys moved between nodes that did not change", row.Needless)
	case m.Ratio > m.MinimumRealised+1e-6:
		return fmt.Errorf("promise broken: %g of the keys moved, where the new shares ask for %g", m.Ratio, m.MinimumRealised)
	case math.Abs(row.Moved-m.Ratio) > 6*sigma:
		return fmt.Errorf("promise broken: %g of %d keys moved, but %g was published", row.Moved, keys, m.Ratio)
	}
	return nil
}

// demoModulo is the row of hash(key) mod nodes, on the same keys.
func demoModulo(keys []string) demoRow {
	nodes := append(slices.Clone(demoNodes), demoAdded)
	lists := [2][]string{}
	for k, n := range []int{len(demoNodes), len(nodes)} {
		lists[k] = make([]string, len(keys))
		for i, key := range keys {
			lists[k][i] = nodes[xxhash.Sum64String(key)%uint64(n)]
		}
	}
	row := countDemo("modulo", lists[0], lists[1])
	row.NSPerRoute = moduloNS(keys, nodes)
	residues := len(demoNodes) * len(nodes) // of which all are equally likely
	for x := range residues {
		if nodes[x%len(demoNodes)] != nodes[x%len(nodes)] {
			row.Exact += 1 / float64(residues)
		}
	}
	row.Minimum = 1 / float64(len(nodes))
	row.Excess = row.Exact - row.Minimum
	return row
}

func moduloNS(keys, nodes []string) float64 {
	best := math.Inf(1)
	for range 3 {
		began := time.Now()
		length := 0
		for _, key := range keys {
			length += len(nodes[xxhash.Sum64String(key)%uint64(len(nodes))])
		}
		best = min(best, float64(time.Since(began).Nanoseconds())/float64(len(keys)))
		if length == 0 {
			return 0
		}
	}
	return best
}
