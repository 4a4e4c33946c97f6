// Package theory has the formulas that simulated figures are compared with.
package theory

import "math"

// Tail returns the share of servers with i requests or more in the supermarket
// model with d choices at utilisation lambda, in the limit of many servers:
// lambda^((d^i - 1) / (d - 1)), and lambda^i for d = 1. Source: Vvedenskaya,
// Dobrushin, Karpelevich 1996; Mitzenmacher 1996.
func Tail(lambda float64, d, i int) float64 {
	if d == 1 {
		return math.Pow(lambda, float64(i))
	}
	exponent := (math.Pow(float64(d), float64(i)) - 1) / float64(d-1)
	return math.Pow(lambda, exponent)
}

// Sojourn returns the mean time in the system of the supermarket model, in
// service times: the sum of Tail over i >= 1, by lambda.
func Sojourn(lambda float64, d int) float64 {
	if d == 1 {
		return 1 / (1 - lambda)
	}
	sum := 0.0
	for i := 1; i < 10_000; i++ {
		s := Tail(lambda, d, i)
		sum += s
		if s < 1e-17 {
			break
		}
	}
	return sum / lambda
}

// levels of the differential equations; higher ones hold nothing.
const levels = 40

// FromEmpty returns the shares of servers with i requests or more, i = 0..39, at
// times 0, step, 2 step ... of the supermarket model that starts with empty
// servers:
//
//	ds_i/dt = lambda (s_{i-1}^d - s_i^d) - (s_i - s_{i+1})
//
// by Runge and Kutta's method of fourth order.
func FromEmpty(lambda float64, d int, step float64, count int) [][]float64 {
	const inner = 200 // steps of the method in a step
	s := make([]float64, levels)
	s[0] = 1
	list := [][]float64{append([]float64(nil), s...)}
	for range count {
		for range inner {
			s = rungeKutta(s, lambda, d, step/inner)
		}
		list = append(list, append([]float64(nil), s...))
	}
	return list
}

func rungeKutta(s []float64, lambda float64, d int, h float64) []float64 {
	k1 := slope(s, lambda, d)
	k2 := slope(moved(s, k1, h/2), lambda, d)
	k3 := slope(moved(s, k2, h/2), lambda, d)
	k4 := slope(moved(s, k3, h), lambda, d)
	next := make([]float64, len(s))
	for i := range s {
		next[i] = s[i] + h/6*(k1[i]+2*k2[i]+2*k3[i]+k4[i])
	}
	return next
}

func slope(s []float64, lambda float64, d int) []float64 {
	k := make([]float64, len(s))
	for i := 1; i < len(s); i++ {
		above := 0.0
		if i+1 < len(s) {
			above = s[i+1]
		}
		k[i] = lambda*(power(s[i-1], d)-power(s[i], d)) - (s[i] - above)
	}
	return k
}

func power(x float64, d int) float64 {
	y := 1.0
	for range d {
		y *= x
	}
	return y
}

func moved(s, k []float64, h float64) []float64 {
	m := make([]float64, len(s))
	for i := range s {
		m[i] = s[i] + h*k[i]
	}
	return m
}
