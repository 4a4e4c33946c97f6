package ring

import "math/bits"

// group is how many keys LocateBatch has under way at once.
const group = 16

// LocateBatch sets dst[i] to Locate(hs[i]) for every i. dst must be at least as
// long as hs. It allocates nothing.
//
// It first touches the cache lines of a group of keys, then reads them, so that
// the waits for memory overlap: with 10,000 nodes of 160 points it takes less
// than half of the time of Locate, with 1000 four fifths; on a ring that fits
// the cache it gains nothing.
func (r *Ring) LocateBatch(dst []int, hs []uint64) {
	dst = dst[:len(hs)]
	for len(hs) >= group {
		r.locateGroup((*[group]int)(dst), (*[group]uint64)(hs))
		hs, dst = hs[group:], dst[group:]
	}
	for i, h := range hs {
		dst[i] = r.Locate(h)
	}
}

func (r *Ring) locateGroup(dst *[group]int, hs *[group]uint64) {
	var rng [group]uint32
	var kk, cuts0 [group]uint64
	n := uint64(len(r.lines))
	for i, h := range hs {
		hi, low := bits.Mul64(h, n)
		rng[i] = uint32(hi)
		kk[i] = low >> (64 - fracBits) * laneLow
		cuts0[i] = r.lines[hi].cuts[0]
	}
	for i, k := range kk { // as in Locate
		l := &r.lines[rng[i]]
		rank := 16 - bits.OnesCount64((cuts0[i]-k)&laneHigh|(l.cuts[1]-k)&laneHigh>>1|
			(l.cuts[2]-k)&laneHigh>>2|(l.cuts[3]-k)&laneHigh>>3)
		o := l.owner[rank&15]
		cut := l.cuts[rank>>2&3] >> (rank & 3 * 16) & 0x7fff
		dst[i] = int(o)
		if o == unknown || cut == k&0x7fff {
			dst[i] = r.locateExact(hs[i], uint64(rng[i]))
		}
	}
}
