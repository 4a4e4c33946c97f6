package capacity

import "math"

// spread returns the squared coefficient of variation of the waits of those that
// wait (Whitt's approximation: exact for one server and independent arrivals, with
// service of the third moment that is usual for its variance).
func (l Load) spread(nodes int) float64 {
	rho, v := min(l.Utilisation(nodes), 1), l.ServiceCV2
	third := 3 * v * (1 + v)
	if v < 1 {
		third = (1 + 2*v) * (1 + v)
	}
	return 2*rho - 1 + 4*(1-rho)*third/(3*(1+v)*(1+v))
}

// quantile is that of a wait which is 0 with probability 1 - waiting, and else has
// the squared coefficient of variation spread.
func quantile(mean, waiting, spread, q float64) float64 {
	if math.IsInf(mean, 1) {
		return mean
	}
	if waiting <= 1-q {
		return 0
	}
	return mean / waiting * beyond(spread, (1-q)/waiting)
}

// beyond returns what a share of the values of a distribution with mean 1 and the
// squared coefficient of variation v exceeds: one of two exponentials with balanced
// means for v > 1, the sum of two for v < 1, both equal for v of 1/2 and less.
func beyond(v, share float64) float64 {
	tail := tailOf(v)
	if tail == nil {
		return -math.Log(share)
	}
	low, high := 0.0, 1.0
	for tail(high) > share {
		low, high = high, 2*high
	}
	for range 60 {
		if mid := (low + high) / 2; tail(mid) > share {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// tailOf returns P(X > x) of that distribution; nil is e^-x.
func tailOf(v float64) func(x float64) float64 {
	const plain = 1e-6 // nearer to 1 is exponential
	switch {
	case v > 1+plain:
		p := (1 + math.Sqrt((v-1)/(v+1))) / 2
		return func(x float64) float64 { return p*math.Exp(-2*p*x) + (1-p)*math.Exp(-2*(1-p)*x) }
	case v > 1-plain:
		return nil
	case v > .5+plain:
		a := (1 + math.Sqrt(2*v-1)) / 2
		b := 1 - a
		return func(x float64) float64 { return (a*math.Exp(-x/a) - b*math.Exp(-x/b)) / (a - b) }
	}
	return func(x float64) float64 { return (1 + 2*x) * math.Exp(-2*x) }
}
