package exact

import (
	"fmt"
	"math"
	"slices"

	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/ring"
)

// LargeRing is the ring of the LRH paper's table, 5000 nodes of 256 points, over
// sets of names.
func LargeRing() (page.Table, error) {
	const n, points, sets = 5000, 256, 10
	t := page.Table{Header: []string{"5000 nodes, 256 points", "peak"}}
	var peaks []float64
	for set := range sets {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("large%02d-node%05d", set, i)
		}
		s, err := ringSpread(ids, points)
		if err != nil {
			return t, err
		}
		peaks = append(peaks, s.Peak)
	}
	slices.Sort(peaks)
	t.Add("ring, mean of 10 sets of names", f(mean(peaks), 4))
	t.Add("ring, least and largest of them", f(peaks[0], 4)+" to "+f(peaks[sets-1], 4))
	t.Add("ring, law", f(ring.ExpectedPeak(n, points), 4))
	for _, p := range []struct {
		name string
		peak float64
	}{{"ring, in the paper", 1.2785}, {"LRH of 8 candidates, in the paper", 1.0947}, {"multi-probe of 8, in the paper", 1.0697}} {
		t.Add(p.name, f(p.peak, 4))
	}
	return t, nil
}

// JumpHoles is how often a key draws where a part of a thousand buckets are holes.
func JumpHoles() (page.Table, error) {
	const n = 1000
	t := page.Table{Header: []string{"of 1000 nodes left", "buckets", "classic: draws", "back: draws", "law: buckets / live"}}
	hs := hashes(stepKeys)
	for _, gone := range []int{0, 100, 500, 900} {
		b, err := withHoles(n, gone)
		if err != nil {
			return t, err
		}
		row := []string{count(gone), count(b.Len())}
		for _, v := range []jump.Variant{jump.Classic, jump.Back} {
			draws, err := drawn(n, b, v, hs)
			if err != nil {
				return t, err
			}
			row = append(row, f(draws, 3))
		}
		t.Add(append(row, f(float64(b.Len())/float64(n-gone), 3))...)
	}
	return t, nil
}

// withHoles are the buckets of n nodes of which some left, one after the other and
// drawn at random.
func withHoles(n, gone int) (jump.Buckets, error) {
	ids, weights := names(n), ones(n)
	b, err := jump.Build(ids, weights, 1)
	dice := splitmix.Source(1)
	for range gone {
		i := int(dice.Below(uint64(n)))
		for weights[i] == 0 {
			i = int(dice.Below(uint64(n)))
		}
		weights[i] = 0
		if err == nil {
			b, _, err = jump.Update(b, ids, weights, 1)
		}
	}
	return b, err
}

// drawn is the mean number of draws. They are counted in a loop beside the
// package's, which must find its nodes.
func drawn(n int, b jump.Buckets, v jump.Variant, hs []uint64) (float64, error) {
	table, err := jump.New(n, b, v)
	if err != nil {
		return 0, err
	}
	draw := jump.Hash
	if v == jump.Back {
		draw = jump.BackHash
	}
	total := 0
	for _, h := range hs {
		k, owner := h, b.Owner[draw(h, b.Len())]
		total++
		for tries := 1; owner == math.MaxUint16 && tries < jump.Draws; tries++ {
			k = splitmix.Mix(k + splitmix.Golden)
			owner = b.Owner[draw(k, b.Len())]
			total++
		}
		if owner != math.MaxUint16 && int(owner) != table.Locate(h) {
			return 0, fmt.Errorf("exact: hash %d: node %d, not the package's %d", h, owner, table.Locate(h))
		}
	}
	return float64(total) / float64(len(hs)), nil
}

// order lists a key's nodes in the order in which they are asked.
type order interface {
	AppendReplicas(dst []int, h uint64, n int) []int
}

// BoundedFill puts requests that do not end on a hundred nodes under a bound.
func BoundedFill() (page.Table, error) {
	t := page.Table{Header: []string{"order", "c", "largest / mean", "at home", "nodes asked", "most asked"}}
	const n = 100
	one, err := ring.New(names(n), ones(n), 1)
	if err != nil {
		return t, err
	}
	hundred, err := ring.New(names(n), ones(n), 100)
	if err != nil {
		return t, err
	}
	hrw, err := rendezvous.New(names(n), ones(n))
	if err != nil {
		return t, err
	}
	for _, o := range []struct {
		name string
		order
	}{{"ring, 1 point", one}, {"ring, 100 points", hundred}, {"rendezvous", hrw}} {
		for _, c := range []float64{1.25, 1.1, 1.05, 1.01} {
			p, err := fill(o.order, n, c)
			if err != nil {
				return t, err
			}
			t.Add(o.name, f(c, 2), f(p.largest, 3), percent(p.home, 1), f(p.asked, 2), count(p.most))
		}
	}
	return t, nil
}

func fill(o order, n int, c float64) (p probed, err error) {
	const requests = 200_000
	g := bounded.NewGroup(bounded.Options{})
	members := make([]bounded.Member, n)
	for i := range members {
		members[i] = bounded.Member{Node: g.NewNode(), Weight: 1}
	}
	set, err := g.NewSet(members, c)
	if err != nil {
		return p, err
	}
	g.Use(set)
	dice := splitmix.Source(1)
	for range requests {
		asked, _ := admit(set, o, dice.Next())
		p.asked += float64(asked) / requests
		p.most = max(p.most, asked)
		if asked == 1 {
			p.home += 1. / requests
		}
	}
	for i := range n {
		p.largest = max(p.largest, float64(set.Load(i))*float64(n)/requests)
	}
	return p, nil
}

// SmallCache is what a cache of the hottest keys in front of a hundred nodes leaves
// of the busiest node's load.
func SmallCache() (page.Table, error) {
	const n, keys = 100, 1_000_000
	sizes := []int{0, 100, 460, 920}
	t := page.Table{Header: []string{"keys asked for"}}
	for _, k := range sizes {
		t.Header = append(t.Header, fmt.Sprintf("%d cached", k))
	}
	owners := make([]int, keys)
	for i, h := range hashes(min(keys, floorbench.NumKeys)) {
		owners[i] = jump.Hash(h, n)
	}
	for _, s := range []float64{.9, .99, 1.2} {
		row := []string{fmt.Sprintf("Zipf, exponent %v", s)}
		for _, k := range sizes {
			row = append(row, f(zipfPeak(owners, n, s, k), 2))
		}
		t.Add(row...)
	}
	row := []string{"evenly, as many as hurt most"}
	for _, k := range sizes {
		row = append(row, f(worstPeak(owners, n, k), 2))
	}
	t.Add(row...)
	return t, nil
}

// zipfPeak is the busiest node's load, in parts of an even share of the load without
// the cache.
func zipfPeak(owners []int, n int, s float64, cached int) float64 {
	load, all := make([]float64, n), 0.0
	for i, o := range owners {
		w := math.Pow(float64(i+1), -s)
		all += w
		if i >= cached {
			load[o] += w
		}
	}
	return slices.Max(load) / all * float64(n)
}

// worstPeak is that of the number of keys, asked for equally often, at which it is
// largest.
func worstPeak(owners []int, n, cached int) float64 {
	count, most, worst := make([]int, n), 0, 0.0
	for i, o := range owners {
		if i < cached {
			continue
		}
		count[o]++
		most = max(most, count[o])
		worst = max(worst, float64(most)/float64(i+1)*float64(n))
	}
	return worst
}
