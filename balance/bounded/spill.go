package bounded

import "math"

// Spill computes the shares of requests that nodes turn away, for a control loop
// that sees the load of all clients every now and then and publishes what comes
// out (Node.SetSpill). Where thresholds on old loads would let all clients turn
// away at once, shares move a little each time, so that even a loop as slow as
// ten service times keeps the longest queue near the target.
//
// The law: a node whose requests by preference are offered = accepted / (1 - s),
// accepted being what it took of them, should turn away what is above its target
// (1 + c) / 2 times its share of all; s moves there by Gain.
type Spill struct {
	// Factor is c, 1 or more.
	Factor float64
	// Gain is the part of the way that one step makes, 0 to 1; 0 means 0.5.
	Gain float64
}

// Next returns the shares that follow shares. own is the load that each node has
// of requests for its own keys, all its whole load, weights its weight; all slices
// have one length. What is not a number counts as 0. O(n).
func (s Spill) Next(shares, own, all, weights []float64) []float64 {
	gain := s.Gain
	if gain == 0 {
		gain = 0.5
	}
	total, sum := 0.0, 0.0
	for i := range all {
		total += number(all[i])
		sum += number(weights[i])
	}
	next := make([]float64, len(shares))
	for i := range shares {
		if sum == 0 {
			break
		}
		at := min(number(shares[i]), 0.99)
		offered := number(own[i]) / (1 - at)
		// What others turned away to this node leaves so much less for its own keys.
		target := (1+s.Factor)/2*total*number(weights[i])/sum - (number(all[i]) - number(own[i]))
		want := 0.0
		if offered > 0 {
			want = max(0, min(1-target/offered, 0.99))
		}
		next[i] = at + gain*(want-at)
	}
	return next
}

func number(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
