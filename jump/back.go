package jump

import (
	"math/bits"

	"github.com/shardd/shardd/internal/splitmix"
)

// BackHash is JumpBackHash: another mapping with Hash's law, by integers only
// and at a cost that does not grow with n. It returns the bucket in [0, n) of a
// key's hash h, or -1 for n < 1. n may be up to 2^31 - 1. The generator is
// SplitMix64 seeded with h.
//
// Each set bit q of u stands for a range [q, 2q) in which the key changes its
// bucket at least once as n grows through it; the last change below n, looked
// for backwards from the highest range, is the key's bucket. Expected cost: at
// most 5/3 random values.
//
// Source: Ertl, "JumpBackHash: Say Goodbye to the Modulo Operation to
// Distribute Keys Uniformly to Buckets", arXiv:2403.18682.
func BackHash(h uint64, n int) int {
	if n < 1 {
		return -1
	}
	g := newGrowth(n)
	v := first(h)
	u := g.changes(v)
	b := lastChange(v, u)
	if b >= g.end {
		b = g.redraw(h, v, u)
	}
	return int(b)
}

// growth is what BackHash needs to know of the number of buckets.
type growth struct {
	end  uint32 // the number of buckets n
	mask uint32 // all ranges that reach below n: 2^k - 1 >= n - 1
	top  uint32 // the highest of them, the only one that n may cut
}

func newGrowth(n int) growth {
	k := bits.Len32(uint32(n - 1))
	return growth{end: uint32(n), mask: 1<<k - 1, top: 1 << k >> 1}
}

// first returns the first random value of a key.
func first(h uint64) uint64 { return splitmix.Mix(h + splitmix.Golden) }

// changes returns the ranges, each a power of two, in which the key changes.
func (g *growth) changes(v uint64) uint32 { return uint32(v^v>>32) & g.mask }

// lastChange returns the last change of bucket within the highest range q of u:
// q + x mod q, with x one half of v. It is 0 if u is. The parity of u chooses the
// half, which makes the draws of the ranges independent although all come from v.
// Without a branch: the loop over the bits of u, with its mispredictions, took
// 1.2 to 1.3 times as long for a lookup.
func lastChange(v uint64, u uint32) uint32 {
	below := uint32(1)<<(bits.Len32(u|1)-1) - 1 // q - 1
	return u ^ (u^uint32(v>>(bits.OnesCount32(u)&1<<5)))&below
}

// redraw goes on where the last change in the top range is not below n: it
// draws the changes before it, backwards, until one is below n or below the
// range. In the latter case the next lower range of u decides, which n does not
// cut.
func (g *growth) redraw(h, v uint64, u uint32) uint32 {
	lower := lastChange(v, u^g.top)
	rng := splitmix.Source(h + splitmix.Golden) // v was the first value
	for {
		w := rng.Next()
		b := uint32(w>>32) & g.mask
		b ^= (b ^ uint32(w)&g.mask) & ifBelow(uint32(w)&g.mask, g.end) // the low half if it is below n
		if b < g.end {
			return b ^ (b^lower)&ifBelow(b, g.top)
		}
	}
}

// ifBelow returns all ones if a < b, else 0; both are below 2^31. The compiler
// would make a branch of it that no predictor can know.
func ifBelow(a, b uint32) uint32 { return uint32(int32(a-b) >> 31) }
