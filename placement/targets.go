package placement

import (
	"cmp"
	"slices"
)

// targets returns the copies of a key that each node should hold on average by
// its weight: with one replica its part of the weights; with several the water
// level under which no node holds more than one copy of a key and, where the
// zone rule holds, no zone either. The sum is replicas, or the number of owners
// if that is less. O(n log n).
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
		if zones := zoneWeights(nodes); len(zones) >= replicas {
			return zoneTargets(nodes, zones, replicas)
		}
	}
	return waterFill(weights, capacity, float64(replicas))
}

// zoneWeights sums the weights of the zones that have any.
func zoneWeights(nodes []node) map[string]float64 {
	zones := make(map[string]float64)
	for _, n := range nodes {
		if n.weight > 0 {
			zones[n.zone] += float64(n.weight)
		}
	}
	return zones
}

// zoneTargets fills zones first, then gives each node its part of its zone.
func zoneTargets(nodes []node, zones map[string]float64, replicas int) []float64 {
	names := sortedKeys(zones)
	weights, capacity := make([]float64, len(names)), make([]float64, len(names))
	for i, name := range names {
		weights[i], capacity[i] = zones[name], 1
	}
	level := waterFill(weights, capacity, float64(replicas))
	at := make(map[string]float64, len(names))
	for i, name := range names {
		at[name] = level[i]
	}
	out := make([]float64, len(nodes))
	for i, n := range nodes {
		if n.weight > 0 {
			out[i] = at[n.zone] * float64(n.weight) / zones[n.zone]
		}
	}
	return out
}

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
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
