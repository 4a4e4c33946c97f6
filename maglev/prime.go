package maglev

import "fmt"

// NextPrime returns the smallest prime that is at least n, or 0 if none fits
// into 32 bits (n above 4,294,967,291). Cost: about 10 numbers are tried, each
// with up to sqrt(n)/3 divisions: under 1 ms.
func NextPrime(n uint32) uint32 {
	for m := uint64(n); m <= 4_294_967_291; m++ {
		if isPrime(m) {
			return uint32(m)
		}
	}
	return 0
}

func isPrime(m uint64) bool {
	if m < 4 {
		return m >= 2
	}
	if m%2 == 0 || m%3 == 0 {
		return false
	}
	for d := uint64(5); d*d <= m; d += 6 {
		if m%d == 0 || m%(d+2) == 0 {
			return false
		}
	}
	return true
}

// checkSize refuses sizes with which a permutation would not reach every entry,
// and sizes without bound.
func checkSize(m uint64) error {
	if m > MaxSize {
		return fmt.Errorf("%w: %d is more than %d, the largest; take %d or more entries per node, not more than that", ErrSize, m, MaxSize, 100)
	}
	if !isPrime(m) {
		return fmt.Errorf("%w: %d is not a prime, so a node's permutation would miss entries; the next prime is %d", ErrSize, m, NextPrime(uint32(m)))
	}
	return nil
}

// inverse returns x with a x = 1 mod m, for a prime m and 0 < a < m, by
// Euclid's algorithm.
func inverse(a, m uint32) uint32 {
	r0, r1 := int64(m), int64(a)
	t0, t1 := int64(0), int64(1)
	for r1 != 0 {
		q := r0 / r1
		r0, r1 = r1, r0-q*r1
		t0, t1 = t1, t0-q*t1
	}
	if t0 < 0 {
		t0 += int64(m)
	}
	return uint32(t0)
}
