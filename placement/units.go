package placement

import "math/bits"

// units is an exact amount: a part of the key space in units of 2^-64, or a
// number of table entries, hash values or samples. 128 bits, because a whole
// key space held by 16 replicas takes 68.
type units struct{ hi, lo uint64 }

// width returns the number of hashes from first to last, both included.
func width(first, last uint64) units {
	lo, carry := bits.Add64(last-first, 1, 0)
	return units{carry, lo}
}

func (u *units) add(v units) {
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, v.lo, 0)
	u.hi, _ = bits.Add64(u.hi, v.hi, carry)
}

// above returns max(0, u - v).
func (u units) above(v units) units {
	lo, borrow := bits.Sub64(u.lo, v.lo, 0)
	hi, borrow := bits.Sub64(u.hi, v.hi, borrow)
	if borrow != 0 {
		return units{}
	}
	return units{hi, lo}
}

// float returns the nearest floating-point number.
func (u units) float() float64 { return float64(u.hi)*(1<<64) + float64(u.lo) }
