package maglev

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/splitmix"
)

// permutation is a node's order of the table: entry (offset + k skip) mod M at
// rank k. Both come from the id's XXH64 h as the paper has them: offset = h mod
// M, skip = h' mod (M - 1) + 1, with h' = Mix(h + Golden) for the second hash.
// M is prime, so the walk reaches every entry once.
type permutation struct{ offset, skip uint32 }

func permute(id string, m uint32) permutation {
	h := xxhash.Sum64String(id)
	return permutation{
		offset: uint32(h % uint64(m)),
		skip:   uint32(splitmix.Mix(h+splitmix.Golden)%uint64(m-1)) + 1,
	}
}

// fill is a table in the making. An entry is free iff its bit is set.
type fill struct {
	entries []uint16
	free    []uint64
	left    int // free entries
	size    uint32
	ids     []string
}

func newFill(entries []uint16, ids []string) *fill {
	f := &fill{entries: entries, free: make([]uint64, (len(entries)+63)/64), size: uint32(len(entries)), ids: ids}
	for i := range f.free {
		var word uint64
		for j, o := range entries[i*64 : min(i*64+64, len(entries))] {
			if o == NoOwner {
				word |= 1 << j
			}
		}
		f.free[i] = word
		f.left += bits.OnesCount64(word)
	}
	return f
}

func (f *fill) setFree(e uint32) {
	f.free[e>>6] |= 1 << (e & 63)
	f.entries[e] = NoOwner
	f.left++
}

func (f *fill) take(e uint32, node uint16) {
	f.free[e>>6] &^= 1 << (e & 63)
	f.entries[e] = node
	f.left--
}

// release frees the entries that nodes hold above their quotas, each the last
// of its own permutation. An entry's rank is (e - offset) / skip mod M.
func (f *fill) release(old, quotas []int) {
	held := make([][]uint64, len(old)) // rank<<32 | entry, of the nodes above quota
	rank := make([]ranker, len(old))
	for i, n := range old {
		if n > quotas[i] {
			held[i] = make([]uint64, 0, n)
			p := permute(f.ids[i], f.size)
			rank[i] = newRanker(p.offset, p.skip, f.size)
		}
	}
	for e, o := range f.entries {
		if o != NoOwner && held[o] != nil {
			held[o] = append(held[o], uint64(rank[o].of(uint32(e)))<<32|uint64(e))
		}
	}
	for i, h := range held {
		for _, v := range largest(h, len(h)-quotas[i]) {
			f.setFree(uint32(v))
		}
	}
}

// ranker tells how many steps of a walk lead from one entry to another: the
// distance times the inverse of skip, mod M. The product is below 2^44, so the
// quotient by the reciprocal 2^64/M is at most one too small.
type ranker struct {
	from, inv, size uint32
	reciprocal      uint64
}

func newRanker(from, skip, size uint32) ranker {
	return ranker{from: from, inv: inverse(skip, size), size: size, reciprocal: math.MaxUint64 / uint64(size)}
}

func (r *ranker) of(e uint32) uint32 {
	d := e - r.from
	d += r.size & uint32(int32(d)>>31) // e - from mod M
	x := uint64(d) * uint64(r.inv)
	q, _ := bits.Mul64(x, r.reciprocal)
	s := uint32(x - q*uint64(r.size)) // below 2M
	s -= r.size
	return s + r.size&uint32(int32(s)>>31)
}

// largest returns the k largest values of x, which are distinct, in no
// particular order, and reorders x (quickselect, falling back to sorting when
// the pivots are bad).
func largest(x []uint64, k int) []uint64 {
	if k <= 0 {
		return nil
	}
	lo, hi := 0, len(x) // the border of the k largest is within x[lo:hi]
	border := len(x) - k
	for budget := 2 * bits.Len(uint(len(x))); hi-lo > 16; budget-- {
		if budget == 0 {
			break
		}
		if mid := lo + partition(x[lo:hi]); mid > border {
			hi = mid
		} else {
			lo = mid
		}
		if lo == border {
			return x[border:]
		}
	}
	slices.Sort(x[lo:hi])
	return x[border:]
}

// partition puts values below a pivot in front and returns their number, which
// is at least 1 and below len(x) for distinct values.
func partition(x []uint64) int {
	a, b, c := x[0], x[len(x)/2], x[len(x)-1]
	pivot := max(min(a, b), min(max(a, b), c)) // the median: something is below it
	n := 0
	for i, v := range x {
		if v < pivot {
			x[i], x[n] = x[n], v
			n++
		}
	}
	return n
}

// walk is a node's place in its permutation.
type walk struct{ at, skip uint32 }

// fill lets the nodes of turns take their most preferred free entries in that
// order, one entry a turn; there are as many turns as free entries.
//
// A walk's next free entry is found by walking while many are free and by rank
// when few are: with f entries free a walk takes M/f steps of about 1 ns and
// ranking all free entries takes f steps of about 4 ns, so the last sqrt(M)
// entries go by rank. At M = 65537 that saves half of the time.
func (f *fill) fill(turns []uint16) {
	walks := make([]walk, len(f.ids))
	byRank := int(math.Sqrt(float64(f.size)))
	for k, node := range turns {
		w := &walks[node]
		if w.skip == 0 {
			p := permute(f.ids[node], f.size)
			*w = walk{at: p.offset, skip: p.skip}
		}
		if f.left <= byRank {
			f.fillByRank(turns[k:], walks)
			return
		}
		e := f.next(*w)
		f.take(e, node)
		w.at = e
	}
}

// next returns the first free entry of the walk. It looks at four at a time:
// the steps do not wait for each other, and most calls end in the first round,
// where a step by step loop ends somewhere else each time and the processor
// guesses wrong (a third of the whole build).
func (f *fill) next(w walk) uint32 {
	m, free := f.size, f.free
	two := step(w.skip, w.skip, m)
	four := step(two, two, m)
	a, b := w.at, step(w.at, w.skip, m)
	c, d := step(a, two, m), step(b, two, m)
	for {
		found := free[a>>6]>>(a&63)&1 | free[b>>6]>>(b&63)&1<<1 |
			free[c>>6]>>(c&63)&1<<2 | free[d>>6]>>(d&63)&1<<3
		if found != 0 {
			k := uint32(bits.TrailingZeros64(found))
			e := a + k*w.skip // below 4M < 2^24
			e -= 2 * m & ^uint32(int32(e-2*m)>>31)
			return e - m&^uint32(int32(e-m)>>31)
		}
		a, b, c, d = step(a, four, m), step(b, four, m), step(c, four, m), step(d, four, m)
	}
}

// step returns at + by mod m for at and by below m.
func step(at, by, m uint32) uint32 {
	at += by - m // at + by < 2M < 2^31: negative iff it stays below M
	return at + m&uint32(int32(at)>>31)
}

// fillByRank is fill for the last entries. The entries that a walk has passed
// are taken and stay taken, so the free entry of least rank in the node's
// permutation is the one that the walk would reach first.
func (f *fill) fillByRank(turns []uint16, walks []walk) {
	free := f.freeEntries()
	for _, node := range turns {
		w := &walks[node]
		if w.skip == 0 {
			p := permute(f.ids[node], f.size)
			*w = walk{at: p.offset, skip: p.skip}
		}
		rank := newRanker(w.at, w.skip, f.size)
		best, least := 0, uint32(math.MaxUint32)
		for j, e := range free {
			if s := rank.of(e); s < least {
				best, least = j, s
			}
		}
		f.take(free[best], node)
		free[best] = free[len(free)-1]
		free = free[:len(free)-1]
	}
}

func (f *fill) freeEntries() []uint32 {
	list := make([]uint32, 0, f.left)
	for i, word := range f.free {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return list
}
