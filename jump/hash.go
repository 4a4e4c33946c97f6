package jump

// lcg is the multiplier of the paper's generator: key = lcg x key + 1.
const lcg = 2862933555777941757

// Hash is Jump consistent hash: the bucket in [0, n) of a key's hash h, or -1
// for n < 1. n may be up to 2^31 - 1. When n grows by one, a key stays or moves
// to the new bucket n, which gets 1/(n+1) of all keys.
//
// The float operations are one division and one multiplication per step, no
// sum that a compiler could fuse, so the result is the same everywhere.
// Expected cost: H_n = ln n + 0.58 steps.
//
// Source: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash
// Algorithm", arXiv:1406.2294, figure 1.
func Hash(h uint64, n int) int {
	b, j := int64(-1), int64(0)
	for j < int64(n) {
		b = j
		h = h*lcg + 1
		j = int64(float64(b+1) * (float64(1<<31) / float64(int64(h>>33)+1)))
	}
	return int(b)
}

// lanes is how many keys HashBatch has under way at once.
const lanes = 4

// HashBatch sets dst[i] to Hash(hs[i], n) for every i; dst must be at least as
// long as hs. A step of one key waits for the step before it; four keys at once
// fill the wait, which takes half of Hash's time per key.
func HashBatch(dst []int, hs []uint64, n int) {
	dst = dst[:len(hs)]
	for len(hs) >= lanes {
		hash4((*[lanes]int)(dst), (*[lanes]uint64)(hs), int64(n))
		dst, hs = dst[lanes:], hs[lanes:]
	}
	for i, h := range hs {
		dst[i] = Hash(h, n)
	}
}

// hash4 is four Hash loops in step. A key that is done goes on from bucket n,
// from which every jump leads beyond n; its result b no longer changes. All
// choices are conditional moves: min, and the mask that keeps b.
func hash4(dst *[lanes]int, hs *[lanes]uint64, n int64) {
	k0, k1, k2, k3 := hs[0], hs[1], hs[2], hs[3]
	b0, b1, b2, b3 := int64(-1), int64(-1), int64(-1), int64(-1)
	var j0, j1, j2, j3 int64
	for min(j0, j1, j2, j3) < n {
		b0, b1, b2, b3 = keep(b0, j0, n), keep(b1, j1, n), keep(b2, j2, n), keep(b3, j3, n)
		k0, k1, k2, k3 = k0*lcg+1, k1*lcg+1, k2*lcg+1, k3*lcg+1
		j0, j1, j2, j3 = leap(k0, j0, n), leap(k1, j1, n), leap(k2, j2, n), leap(k3, j3, n)
	}
	dst[0], dst[1], dst[2], dst[3] = int(b0), int(b1), int(b2), int(b3)
}

// keep returns j if it is below n, else b.
func keep(b, j, n int64) int64 { return b ^ (b^j)&((j-n)>>63) }

// leap is one step from bucket j, or from n if j is beyond it.
func leap(k uint64, j, n int64) int64 {
	return int64(float64(min(j, n)+1) * (float64(1<<31) / float64(int64(k>>33)+1)))
}
