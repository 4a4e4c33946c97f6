package exact

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/balance/bounded"
	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/ring"
)

// ringPaper is the table on rings in Lamping and Veach, "A Fast, Minimal Memory,
// Consistent Hash Algorithm", section 2: standard error and 99 % interval of the
// shares of 500 buckets.
var ringPaper = []struct {
	points           int
	cv, least, large float64
}{{1, .9979060, .005, 5.25}, {10, .3151810, .37, 1.98}, {100, .0996996, .76, 1.28}, {1000, .0315723, .92, 1.09}}

// RingPaper is the spread of 500 nodes over 20 sets of names beside what that
// paper measured.
func RingPaper() (page.Table, error) {
	const n, sets = 500, 20
	t := page.Table{Header: []string{"points a node", "cv", "paper", "law", "99 % of the shares", "paper"}}
	for _, p := range ringPaper {
		var cvs, all []float64
		for set := range sets {
			ids := make([]string, n)
			for i := range ids {
				ids[i] = fmt.Sprintf("paper%02d-node%05d", set, i)
			}
			owned, err := ringShares(ids, p.points)
			if err != nil {
				return t, err
			}
			cvs, all = append(cvs, shares.Of(owned).CV), append(all, owned...)
		}
		slices.Sort(all)
		at := func(q float64) float64 { return all[int(q*float64(len(all)))] }
		t.Add(count(p.points), f(mean(cvs), 4), f(p.cv, 4), f(ring.ExpectedCV(n, p.points), 4),
			fmt.Sprintf("%s to %s", f(at(.005), 3), f(at(.995), 3)), fmt.Sprintf("%v to %v", p.least, p.large))
	}
	return t, nil
}

// BoundedProbes is how many nodes bounded loads ask, in steady state: a request
// ends, another one begins, with ten in flight a node on average.
func BoundedProbes() (page.Table, error) {
	t := page.Table{Header: []string{"c", "N", "nodes asked", "1/(c-1)^2", "most asked", "at home", "largest / mean"}}
	for _, c := range []float64{1.05, 1.1, 1.25, 1.5, 2} {
		for _, n := range []int{100, 1000} {
			p, err := probe(n, c)
			if err != nil {
				return t, err
			}
			t.Add(f(c, 2), count(n), f(p.asked, 2), f(1/((c-1)*(c-1)), 0), count(p.most), percent(p.home, 1), f(p.largest, 3))
		}
	}
	return t, nil
}

// probed is what a steady state of bounded loads shows.
type probed struct {
	asked, home, largest float64
	most                 int
}

func probe(n int, c float64) (probed, error) {
	const flight, steps = 10, 20 // requests in flight, and steps, a node
	r, err := ring.New(names(n), ones(n), 160)
	if err != nil {
		return probed{}, err
	}
	g := bounded.NewGroup(bounded.Options{})
	members := make([]bounded.Member, n)
	for i := range members {
		members[i] = bounded.Member{Node: g.NewNode(), Weight: 1}
	}
	set, err := g.NewSet(members, c)
	if err != nil {
		return probed{}, err
	}
	g.Use(set)
	dice := splitmix.Source(1)
	var at []int // nodes of the requests in flight
	var p probed
	for step := range (flight + steps) * n {
		asked, i := admit(set, r, dice.Next())
		if at = append(at, i); step < flight*n {
			continue
		}
		p.asked += float64(asked) / float64(steps*n)
		p.most = max(p.most, asked)
		if asked == 1 {
			p.home += 1 / float64(steps*n)
		}
		k := int(dice.Below(uint64(len(at))))
		set.Node(at[k]).Release(1)
		at[k] = at[len(at)-1]
		at = at[:len(at)-1]
	}
	for i := range n {
		p.largest = max(p.largest, float64(set.Load(i))/flight)
	}
	return p, nil
}

// admit asks a key's nodes in their order until one takes the request.
func admit(set *bounded.Set, r order, h uint64) (asked, node int) {
	for want := 8; ; want *= 8 {
		order := r.AppendReplicas(nil, h, want)
		for k := asked; k < len(order); k++ {
			asked++
			if set.Admit(order[k], 1) {
				return asked, order[k]
			}
		}
		if len(order) < want {
			return asked, order[0] // cannot be: for c >= 1 some node admits
		}
	}
}
