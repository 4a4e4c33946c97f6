package capacity

import "math"

// ErlangB returns the share of requests that c servers without a queue turn
// away under an offered load of a servers. a below 0 counts as 0. O(c).
func ErlangB(c int, a float64) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = max(0, a) * b / (float64(k) + max(0, a)*b)
	}
	return b
}

// ErlangC returns the share of requests that must wait for one of c servers
// under an offered load of a servers; 1 if a is c or more. O(c).
func ErlangC(c int, a float64) float64 {
	if a >= float64(c) {
		return 1
	}
	b := ErlangB(c, a)
	return b / (1 - a/float64(c)*(1-b))
}

// factor returns by what the mean wait of exponential service is to be
// multiplied for other variances.
func factor(c int, rho, arrivals, service float64) float64 {
	plain := (arrivals + service) / 2
	if c < 2 || rho <= 0 || plain <= 0 {
		return plain
	}
	// Kimura's harmonic interpolation between exponential and constant service,
	// scaled to what Allen and Cunneen say for any arrivals.
	constant := (1 + cosmetatos(c, rho)) / 2
	return (arrivals + service) / (2*service + (1-service)/constant)
}

// cosmetatos returns the correction of constant service with c servers. It grows
// without end as the load falls; the limit of light traffic, where constant service
// waits c/(c+1) of what exponential does, bounds it.
func cosmetatos(c int, rho float64) float64 {
	n := float64(c)
	return min((1-rho)*(n-1)*(math.Sqrt(4+5*n)-2)/(16*rho*n), (n-1)/(n+1))
}
