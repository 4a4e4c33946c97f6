package rendezvous

import (
	"math"
	"math/bits"
)

// score is a node's number for a key, e/weight, kept as a fraction.
type score struct {
	e, weight uint64 // weight is below 2^32
	index     int
}

// less is the order of preference: by number, then by id.
func (s score) less(t score) bool {
	h1, l1 := bits.Mul64(s.e, t.weight)
	h2, l2 := bits.Mul64(t.e, s.weight)
	switch {
	case h1 != h2:
		return h1 < h2
	case l1 != l2:
		return l1 < l2
	}
	return s.index < t.index
}

// limit returns a draw such that no node of that weight with this or a greater
// draw comes before s, or math.MaxUint64 if every draw might. It needs no
// logarithm: expo(x) is more than x<<10, because -ln(1-u) is more than u.
func (s score) limit(weight uint64) uint64 {
	hi, lo := bits.Mul64(s.e/s.weight+1, weight)
	if x := lo>>10 + 1; hi == 0 && x < 1<<48 {
		return x << 16
	}
	return math.MaxUint64
}

// expo returns -ln(1 - (2x+1)/2^49) in units of 2^-58 for x below 2^48: x drawn
// uniformly becomes exponentially distributed. The package comment has the
// formula, which other implementations have to follow to the last bit.
func expo(x uint64) uint64 {
	m := 1<<49 - 2*x - 1
	k := uint(bits.LeadingZeros64(m))
	m <<= k
	// m/2^64 lies in [1/2, 1): (1-r) * i/512, with r >= 0 as small as i allows.
	i := (m-1)>>55 + 1
	r := (i<<55 - m) << 9 / i
	return high(uint64(k-15)<<58, ln2) + negLog[i-256] + negLog1(r)>>6
}

// negLog1 returns -ln(1-r) for r up to 2^-8: r + r^2/2 + r^3/3 + ... + r^6/6,
// r and the result in units of 2^-64. What is left out is below 2^-58.
func negLog1(r uint64) uint64 {
	const one = 1 << 64
	p := uint64(one / 6)
	p = one/5 + high(p, r)
	p = one/4 + high(p, r)
	p = one/3 + high(p, r)
	p = one/2 + high(p, r)
	return r + high(r, high(r, p))
}

func high(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}
