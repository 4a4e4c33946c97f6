// Package splitmix is the SplitMix64 generator and its finalizer: the integer
// mixing that placement uses wherever it needs a second hash, an independent
// probe or a reproducible draw.
//
// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014; the finalizer is Stafford's variant 13. It is
// frozen: placement's golden files depend on it. It is not for secrets.
package splitmix

import "math/bits"

// Golden is the increment of the generator: 2^64 divided by the golden ratio,
// made odd.
const Golden = 0x9e3779b97f4a7c15

// Mix is the finalizer: a bijection of 64 bits in which every input bit
// reaches every output bit. Mix(0) is 0.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Source is a generator; its value is its state, and any value is a valid seed.
type Source uint64

// Next returns the next 64 bits.
func (s *Source) Next() uint64 {
	*s += Golden
	return Mix(uint64(*s))
}

// Below returns a number in [0, n), n > 0, by multiply-high. The bias is below
// n / 2^64.
func (s *Source) Below(n uint64) uint64 {
	hi, _ := bits.Mul64(s.Next(), n)
	return hi
}

// Shuffle permutes x in place (Fisher and Yates).
func Shuffle[T any](s *Source, x []T) {
	for i := len(x) - 1; i > 0; i-- {
		j := s.Below(uint64(i) + 1)
		x[i], x[j] = x[j], x[i]
	}
}
