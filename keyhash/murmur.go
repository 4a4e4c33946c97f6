package keyhash

import "math/bits"

// The MurmurHash functions of Appleby that the modules at hand do not have, or
// have only for one seed.

// murmur2 is MurmurHash2.
func murmur2(s string, seed uint32) uint32 {
	const m = 0x5bd1e995
	h := seed ^ uint32(len(s))
	for ; len(s) >= 4; s = s[4:] {
		k := le32(s) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(s) {
	case 3:
		h ^= uint32(s[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(s[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(s[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// murmur64A is MurmurHash64A.
func murmur64A(s string, seed uint64) uint64 {
	const m = 0xc6a4a7935bd1e995
	h := seed ^ uint64(len(s))*m
	for ; len(s) >= 8; s = s[8:] {
		k := le64(s) * m
		k ^= k >> 47
		h = (h ^ k*m) * m
	}
	if len(s) > 0 {
		for i := range len(s) {
			h ^= uint64(s[i]) << (8 * i)
		}
		h *= m
	}
	h = (h ^ h>>47) * m
	return h ^ h>>47
}

// murmur3x86 is MurmurHash3_x86_32.
func murmur3x86(s string, seed uint32) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h, n := seed, uint32(len(s))
	for ; len(s) >= 4; s = s[4:] {
		h ^= bits.RotateLeft32(le32(s)*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	k := uint32(0)
	for i := range len(s) {
		k |= uint32(s[i]) << (8 * i)
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
