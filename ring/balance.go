package ring

import "math"

// ExpectedCV returns the expected coefficient of variation (standard deviation
// over mean) of the shares of nodes of equal weight with that many points each:
// sqrt((N-1)/(N*V+1)), the exact figure for random points. It is 0 for less than
// two nodes.
func ExpectedCV(nodes, points int) float64 {
	if nodes < 2 || points < 1 {
		return 0
	}
	n := float64(nodes)
	return math.Sqrt((n - 1) / (n*float64(points) + 1))
}

// ExpectedPeak returns the expected share of the largest of that many nodes of
// equal weight with that many points each, as a multiple of the mean: about 1.21
// for 100 nodes of 160 points, 1.08 for 1000 points. It is 1 for less than two
// nodes.
//
// It is an estimate, within 2 % from 40 points on: the share of a node is nearly
// gamma distributed, and the mean of the largest of N is near the quantile
// 1-exp(-g)/N, with g Euler's constant; the quantile of the gamma distribution
// is Wilson and Hilferty's (1931).
func ExpectedPeak(nodes, points int) float64 {
	if nodes < 2 || points < 1 {
		return 1
	}
	const euler = 0.57721566490153286
	tail := math.Exp(-euler) / float64(nodes)
	z := math.Sqrt2 * math.Erfinv(1-2*tail)
	a := 1 / (9 * float64(points))
	q := 1 - a + z*math.Sqrt(a)
	return q * q * q
}
