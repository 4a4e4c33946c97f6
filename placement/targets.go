package placement

import (
	"cmp"
	"math"
	"slices"
)

// targets returns the copies of a key that each node should hold on average by
// its weight: with one replica its part of the weights; with several the water
// level under which no node holds more than one copy of a key and, with the zone
// rule, every zone as many as the rule demands and allows. The sum is replicas,
// or the number of owners if that is less. O(n log n).
func targets(nodes []node, replicas int, zoneAware bool) []float64 {
	weights, capacity := make([]float64, len(nodes)), make([]float64, len(nodes))
	owners := 0
	for i, n := range nodes {
		weights[i], capacity[i] = float64(n.weight), 1
		if n.weight > 0 {
			owners++
		}
	}
	replicas = min(replicas, owners)
	if zoneAware && replicas > 1 {
		return zoneTargets(nodes, replicas)
	}
	return waterFill(weights, capacity, float64(replicas))
}

// zoneTargets settles what each zone holds, then fills each zone by itself.
func zoneTargets(nodes []node, replicas int) []float64 {
	zones := groupZones(nodes)
	limitZones(zones, replicas)
	// The zones' copies rise with the level; the level at which they add up to
	// replicas is found by halving, to the last bit.
	low, high := 0.0, math.MaxFloat64
	for range 2100 { // more than the range of exponents and bits takes
		level := middle(low, high)
		if level == low || level == high {
			break
		}
		if copiesAt(zones, level) < float64(replicas) {
			low = level
		} else {
			high = level
		}
	}
	out := make([]float64, len(nodes))
	for _, z := range zones {
		capacity := slices.Repeat([]float64{1}, len(z.weights))
		for k, x := range waterFill(z.weights, capacity, z.copiesAt(high)) {
			out[z.members[k]] = x
		}
	}
	return out
}

// middle halves the exponent while the bounds are far apart, then the rest.
func middle(low, high float64) float64 {
	if low*4 < high {
		return math.Sqrt(max(low, math.SmallestNonzeroFloat64)) * math.Sqrt(high)
	}
	return low + (high-low)/2
}

// zoneFill is one zone with owners.
type zoneFill struct {
	members []int
	weights []float64
	lo, hi  float64 // copies of a key
}

func groupZones(nodes []node) []*zoneFill {
	at := make(map[string]*zoneFill)
	var zones []*zoneFill
	for i, n := range nodes {
		if n.weight == 0 {
			continue
		}
		z := at[n.zone]
		if z == nil {
			z = &zoneFill{}
			at[n.zone], zones = z, append(zones, z)
		}
		z.members, z.weights = append(z.members, i), append(z.weights, float64(n.weight))
	}
	return zones
}

// limitZones says how many copies of a key each zone must and may hold: with c
// the smallest number such that c a zone suffice, c - 1 to c, as far as it has
// nodes.
func limitZones(zones []*zoneFill, replicas int) {
	for c, room := 1, 0; room < replicas; c++ {
		room = 0
		for _, z := range zones {
			n := len(z.members)
			z.lo, z.hi = float64(min(c-1, n)), float64(min(c, n))
			room += min(c, n)
		}
	}
}

func (z *zoneFill) copiesAt(level float64) float64 {
	held := 0.0
	for _, w := range z.weights {
		held += min(1, w*level)
	}
	return min(max(held, z.lo), z.hi)
}

func copiesAt(zones []*zoneFill, level float64) float64 {
	held := 0.0
	for _, z := range zones {
		held += z.copiesAt(level)
	}
	return held
}

// waterFill returns min(capacity[i], level * weights[i]) for the level at which
// they add up to total. What has weight 0 gets nothing.
func waterFill(weights, capacity []float64, total float64) []float64 {
	order := make([]int, 0, len(weights))
	rest := 0.0
	for i, w := range weights {
		if w > 0 {
			order = append(order, i)
			rest += w
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(capacity[a]/weights[a], capacity[b]/weights[b]), a-b)
	})
	out := make([]float64, len(weights))
	for k, i := range order {
		if level := total / rest; level*weights[i] < capacity[i] {
			for _, j := range order[k:] { // from here on nothing is full
				out[j] = level * weights[j]
			}
			break
		}
		out[i] = capacity[i]
		total -= capacity[i]
		rest -= weights[i]
	}
	return out
}
