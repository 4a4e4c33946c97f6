// Package shares says how evenly keys are spread, and which of them moved.
package shares

import "math"

// Spread is how even the shares of nodes of equal weight are.
type Spread struct {
	// Peak is the largest share as a multiple of the mean.
	Peak float64
	// Least is the smallest share as a multiple of the mean.
	Least float64
	// CV is the coefficient of variation: standard deviation over mean.
	CV float64
}

// Of returns the spread of shares, or of counts; their sum does not matter. It
// is zero for none.
func Of[T int | float64](list []T) Spread {
	var sum, top float64
	low := math.Inf(1)
	for _, s := range list {
		sum += float64(s)
		top, low = max(top, float64(s)), min(low, float64(s))
	}
	mean := sum / float64(len(list))
	if sum == 0 {
		return Spread{}
	}
	var squares float64
	for _, s := range list {
		d := float64(s)/mean - 1
		squares += d * d
	}
	return Spread{Peak: top / mean, Least: low / mean, CV: math.Sqrt(squares / float64(len(list)))}
}

// Noise is the coefficient of variation that a sample of that many keys shows
// when every node's true share is the same: sqrt((N-1)/keys).
func Noise(nodes, keys int) float64 {
	return math.Sqrt(float64(nodes-1) / float64(keys))
}

// Without returns the coefficient of variation of the true shares, given that
// of the counts of a sample: the sample's own noise taken out, 0 if nothing is
// left of it.
func Without(cv, noise float64) float64 {
	return math.Sqrt(max(0, cv*cv-noise*noise))
}

// Moved is what a change did to a list of keys.
type Moved struct {
	// Keys is the share of the keys that have another owner.
	Keys float64
	// Needless is the share of the keys that went from one unchanged node to
	// another.
	Needless float64
}

// Move compares the owners of the same keys before and after a change of one
// node, by name.
func Move(before, after []string, changed string) Moved {
	moved, needless := 0, 0
	for i, b := range before {
		if a := after[i]; a != b {
			moved++
			if a != changed && b != changed {
				needless++
			}
		}
	}
	n := float64(max(1, len(before)))
	return Moved{Keys: float64(moved) / n, Needless: float64(needless) / n}
}
