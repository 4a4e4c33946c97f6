// Package nearest finds, in a circle of places that each belong to an owner, the
// next place of every owner: the rest of a preference order where walking the
// circle would take long, because one owner has nearly all of it.
//
// # Cost
//
// The places are sorted by owner the first time somebody asks: four bytes a place
// and some 5 ns, kept from then on. A search is a binary search for each owner.
//
// # What it does not do
//
// It is no substitute for the walk, which finds a few owners among even ones in as
// many steps: see Patience.
package nearest

import (
	"cmp"
	"slices"
	"sync"
)

// Patience is the number of steps after which a search for the rest is quicker
// than going on walking, for so many owners. A step takes about 1 ns, a search 60
// ns an owner; an even circle has shown all n owners in n ln n steps, so that it
// comes here in one of a thousand walks to the end, and never for a few owners.
func Patience(owners int) int { return 64 + 16*owners }

// Few is the number of owners up to which Append looks for one after the other,
// without allocating.
const Few = 16

// Index is the places of each owner. The zero Index is ready; it must not be
// copied after its first use and is safe for concurrent use.
type Index struct {
	once   sync.Once
	starts []uint32 // of each owner in places
	places []uint32 // ascending for each owner
}

// Append appends owners to dst until there are n after dst[:base]: those whose
// next place from at on is nearest, none twice. circle has owner + shift at each
// place, below owners + shift; n is at most the number of owners with a place.
// dst[base:] are the first of the order already. O(owners log places) for n up to
// Few one each.
func (x *Index) Append(dst []int, base, n, at int, circle []uint16, shift, owners int) []int {
	x.once.Do(func() { x.sort(circle, shift, owners) })
	if n > Few {
		return x.appendMany(dst, base, n, at)
	}
	for len(dst) < base+n {
		best, least := -1, 0
		for o := range owners {
			if d := x.distance(o, at); d >= 0 && (best < 0 || d < least) && !slices.Contains(dst[base:], o) {
				best, least = o, d
			}
		}
		dst = append(dst, best)
	}
	return dst
}

func (x *Index) appendMany(dst []int, base, n, at int) []int {
	type next struct{ distance, owner int }
	var rest []next
	found := make([]bool, len(x.starts)-1)
	for _, o := range dst[base:] {
		found[o] = true
	}
	for o := range found {
		if d := x.distance(o, at); d >= 0 && !found[o] {
			rest = append(rest, next{d, o})
		}
	}
	slices.SortFunc(rest, func(a, b next) int { return cmp.Compare(a.distance, b.distance) })
	for _, r := range rest[:base+n-len(dst)] {
		dst = append(dst, r.owner)
	}
	return dst
}

// distance returns how many steps from at on owner o's next place is, -1 if it
// has none.
func (x *Index) distance(o, at int) int {
	own := x.places[x.starts[o]:x.starts[o+1]]
	if len(own) == 0 {
		return -1
	}
	if i, _ := slices.BinarySearch(own, uint32(at)); i < len(own) {
		return int(own[i]) - at
	}
	return int(own[0]) + len(x.places) - at
}

// sort groups the places by owner, counting.
func (x *Index) sort(circle []uint16, shift, owners int) {
	x.starts, x.places = make([]uint32, owners+1), make([]uint32, len(circle))
	for _, o := range circle {
		x.starts[int(o)-shift+1]++
	}
	for o := range owners {
		x.starts[o+1] += x.starts[o]
	}
	next := slices.Clone(x.starts)
	for i, o := range circle {
		k := int(o) - shift
		x.places[next[k]] = uint32(i)
		next[k]++
	}
}

// First returns the owner for which ok whose next place from at on is nearest, -1
// if there is none: the rest of a walk in which nobody was ok. The arguments are
// those of Append. O(owners) and a binary search for each that is ok.
func (x *Index) First(at int, circle []uint16, shift, owners int, ok func(owner int) bool) int {
	x.once.Do(func() { x.sort(circle, shift, owners) })
	best, least := -1, 0
	for o := range owners {
		if !ok(o) {
			continue
		}
		if d := x.distance(o, at); d >= 0 && (best < 0 || d < least) {
			best, least = o, d
		}
	}
	return best
}
