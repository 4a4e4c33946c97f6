package compat

import (
	"math"

	"github.com/shardd/shardd/topology"
)

// How many labels, or points, each server gets. In the C programs these are
// floating-point expressions whose rounding decides: every float32 conversion
// below rounds, and keeps the compiler from fusing two operations into one.

func each(n uint64) func(topology.Foreign, []server) []uint64 {
	return func(_ topology.Foreign, live []server) []uint64 {
		counts := make([]uint64, len(live))
		for i := range counts {
			counts[i] = n
		}
		return counts
	}
}

func byWeight(n uint64) func(topology.Foreign, []server) []uint64 {
	return func(_ topology.Foreign, live []server) []uint64 {
		counts := make([]uint64, len(live))
		for i, s := range live {
			counts[i] = n * uint64(s.weight)
		}
		return counts
	}
}

func total(live []server) (w uint64) {
	for _, s := range live {
		w += uint64(s.weight)
	}
	return w
}

// libmemcachedCount is floor(w/W * 160 / 4 * n + 1e-10) in single precision.
func libmemcachedCount(_ topology.Foreign, live []server) []uint64 {
	counts, sum := make([]uint64, len(live)), float32(total(live))
	for i, s := range live {
		x := float32(float32(s.weight) / sum)
		x = float32(x * 160)
		x = float32(x / 4)
		x = float32(x * float32(len(live)))
		x = float32(x + 1e-10)
		counts[i] = uint64(math.Floor(float64(x)))
	}
	return counts
}

// libmemcachedWeighted reports whether the ring is the weighted one: asked for,
// or switched on by any weight above 1.
func libmemcachedWeighted(f topology.Foreign, live []server) bool {
	if f.Distribution == "ketama_weighted" {
		return true
	}
	for _, s := range live {
		if s.weight > 1 {
			return true
		}
	}
	return false
}

// libketamaCount rounds the quotient to single precision, the product to it too.
func libketamaCount(_ topology.Foreign, live []server) []uint64 {
	counts, sum := make([]uint64, len(live)), float32(total(live))
	for i, s := range live {
		x := float64(float32(float32(s.weight) / sum))
		x = float64(x * 40)
		x = float64(x * float64(len(live)))
		counts[i] = uint64(math.Floor(float64(float32(x))))
	}
	return counts
}

// npmCount is in double precision, as all numbers of JavaScript.
func npmCount(_ topology.Foreign, live []server) []uint64 {
	counts, sum := make([]uint64, len(live)), float64(total(live))
	for i, s := range live {
		x := float64(float64(s.weight) / sum)
		x = float64(x * 40)
		counts[i] = uint64(math.Floor(float64(x * float64(len(live)))))
	}
	return counts
}

func serialxCount(_ topology.Foreign, live []server) []uint64 {
	counts, sum := make([]uint64, len(live)), total(live)
	for i, s := range live {
		counts[i] = 40 * uint64(len(live)) * uint64(s.weight) / sum
	}
	return counts
}

// goZeroCount is points x weight / 100, weights above 100 counting as 100.
func goZeroCount(f topology.Foreign, live []server) []uint64 {
	counts := make([]uint64, len(live))
	for i, s := range live {
		counts[i] = uint64(f.Points) * uint64(min(s.weight, 100)) / 100
	}
	return counts
}

// envoyCount deals points by running sums, so that fractions are not lost: host
// by host as many as bring the sum to its target.
func envoyCount(f topology.Foreign, live []server) []uint64 {
	return envoyPointCounts(f.MinRingSize, f.MaxRingSize, normalized(live))
}

// normalized returns weights that sum up to 1.
func normalized(live []server) []float64 {
	weights, sum := make([]float64, len(live)), float64(total(live))
	for i, s := range live {
		weights[i] = float64(s.weight) / sum
	}
	return weights
}

func envoyPointCounts(least, most uint32, weights []float64) []uint64 {
	smallest := math.Inf(1)
	for _, w := range weights {
		smallest = min(smallest, w)
	}
	scale := min(math.Ceil(float64(smallest*float64(least)))/smallest, float64(most))
	counts := make([]uint64, len(weights))
	current, target := 0.0, 0.0
	for i, w := range weights {
		target += float64(scale * w)
		for ; current < target; current++ {
			counts[i]++
		}
	}
	return counts
}
