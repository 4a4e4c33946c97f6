package placement

import (
	"cmp"
	"math"
	"slices"
)

// hrwMovement is the movement of exact weighted rendezvous from weights w to
// weights v, over one roster; a node that is not there has weight 0.
//
// A key gives each node j an exponential variable E_j and goes to the least
// E_j/w_j; after the change to the least E_j/v_j. Let t_j = w_j/v_j and
// D(r) = sum_j max(w_j, r v_j). Integrating over the two minima, of which the
// ratio is r, a key of a goes to b with probability
//
//	w_a v_b * (G(t_a) - G(t_b)) if t_a > t_b, else 0;  G(x) = integral from 0 to x of dr / D(r)^2
//
// and the sum of what stays is sum_i 1 / sum_j max(w_j/w_i, v_j/v_i), the
// probability Jaccard index of Moulton and Jiang (2018). Nodes of unchanged
// weight have t = 1 and never exchange a key. D is piecewise linear with the
// t_j as its corners, so G is a sum over the corners: O(N log N), and O(1) for
// each flow that is not 0.
func hrwMovement(r *roster, maxFlows int) *sheet {
	before, after := make([]float64, len(r.ids)), make([]float64, len(r.ids))
	for i := range r.ids {
		before[i], after[i] = float64(r.from[i].weight), float64(r.to[i].weight)
	}
	g := corners(before, after)
	w, v := sum(before), sum(after)
	l := newLawSheet(r, scaled(before, 1/w), scaled(after, 1/v), maxFlows)
	// Corners ascend, so a loses keys only to the nodes of corners before its own.
	for i, ca := range g {
		for _, cb := range g[:i] {
			if cb.t == ca.t {
				break
			}
			l.move(ca.node, cb.node, before[ca.node]*after[cb.node]*(ca.g-cb.g))
		}
	}
	return l.done()
}

// corner is one node's corner of D, and G there.
type corner struct {
	node int
	t, g float64
}

// corners returns the nodes with any weight, ascending by t.
func corners(w, v []float64) []corner {
	var cs []corner
	for i := range w {
		switch {
		case v[i] > 0:
			cs = append(cs, corner{node: i, t: w[i] / v[i]})
		case w[i] > 0:
			cs = append(cs, corner{node: i, t: math.Inf(1)})
		}
	}
	slices.SortFunc(cs, func(a, b corner) int { return cmp.Or(cmp.Compare(a.t, b.t), a.node-b.node) })
	// Between corners D(r) = alpha + beta r, where alpha sums the w of the
	// corners ahead and beta the v of those behind.
	alpha, beta := sum(w), 0.0
	at, g := 0.0, 0.0
	for i := range cs {
		c := &cs[i]
		switch {
		case math.IsInf(c.t, 1) && !math.IsInf(at, 1):
			g += 1 / (beta * (alpha + beta*at))
		case c.t > at && !math.IsInf(c.t, 1):
			g += (c.t - at) / ((alpha + beta*at) * (alpha + beta*c.t))
		}
		at, c.g = c.t, g
		alpha -= w[c.node]
		beta += v[c.node]
	}
	return cs
}

func sum(x []float64) float64 {
	total := 0.0
	for _, v := range x {
		total += v
	}
	return total
}

func scaled(x []float64, by float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * by
	}
	return y
}
