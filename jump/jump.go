// Package jump places keys by Jump consistent hash on an array of buckets with
// holes, so that any node can leave, not only the last, nodes can have weights,
// and each change moves the minimum.
//
// # Law
//
// A key draws a bucket; if the bucket is a hole, it draws again from a fresh
// hash. So a bucket that leaves gives its keys to all others evenly, and one
// that comes takes an even part of each; no key moves between buckets that
// stay. The owner depends on the array alone, not on how it came about, but the
// array is the result of the changes so far: it is published, and a client
// never makes it from the list of nodes.
//
// A node of weight w owns w x unit whole buckets. Its former buckets are kept
// for it while nobody else needs them: a node that returns gets all of its keys
// back.
//
// # Cost
//
// Locate: (buckets / live buckets) draws on average, each about ln(buckets)
// steps with Classic, about constant with Back. [Table] holds 6 bytes a bucket.
// [Update] is O(buckets).
//
// # Source
//
// Hash: Lamping and Veach, arXiv:1406.2294. BackHash: Ertl, arXiv:2403.18682.
// Drawing again until a live bucket is met: DxHash (Dong and Wang,
// arXiv:2107.07930) does so with a modulus; with Jump the array may also grow.
//
// # Not here
//
// Fractions of buckets: a bucket taken with some probability moves keys between
// nodes that did not change. And zones: replicas are distinct nodes, wherever
// they stand. Use slots or rendezvous where they must be in distinct zones.
package jump

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/shardd/shardd/internal/quota"
	"github.com/shardd/shardd/internal/splitmix"
)

// NoOwner marks a bucket that nobody owns, or a hole that nobody held.
const NoOwner = quota.NoOwner

// MaxBuckets is the largest number of buckets: 4 MiB as published state, and a
// draw of 15 steps.
const MaxBuckets = 1 << 20

// Draws is how many buckets a key draws before the rest of its preference order
// is completed by highest random weight. It is part of the mapping. With half
// of the buckets holes, one key in 2^128 comes to that; with nine of ten, one
// in 700,000.
const Draws = 128

// Variant is the function that draws a bucket. It is part of the mapping.
type Variant uint8

// The variants.
const (
	Classic Variant = iota // Hash
	Back                   // BackHash: 2 to 5 times as fast
)

// Table is an immutable lookup table, safe for concurrent use.
type Table struct {
	// owner holds owner + 1 of each bucket, 0 for a hole.
	owner []uint16
	// live has the buckets that are no holes, those of a node together and
	// ascending; node o's begin at starts[o].
	live   []uint32
	starts []uint32
	nodes  int
	owners int

	variant Variant
	growth  growth // of the number of buckets, for Back
}

// New returns the lookup object of buckets whose entries index a list of n
// nodes. The buckets come from Build, Update or a published object and are
// copied. It refuses entries beyond n and rows of different or excessive
// length; an array of holes only is valid. Cost: O(buckets).
func New(n int, b Buckets, v Variant) (*Table, error) {
	if v > Back {
		return nil, fmt.Errorf("jump: unknown variant %d; want Classic or Back", v)
	}
	if n < 0 || n > quota.MaxNodes {
		return nil, fmt.Errorf("jump: %d nodes: want 0 to %d", n, quota.MaxNodes)
	}
	if err := b.check(n); err != nil {
		return nil, err
	}
	t := &Table{owner: make([]uint16, len(b.Owner)), nodes: n, variant: v}
	if len(b.Owner) > 0 {
		t.growth = newGrowth(len(b.Owner))
	}
	for i, o := range b.Owner {
		t.owner[i] = o + 1
	}
	t.group()
	return t, nil
}

// group sorts the live buckets by owner (counting).
func (t *Table) group() {
	t.starts = make([]uint32, t.nodes+1)
	for _, o := range t.owner {
		t.starts[o]++ // holes count at 0, node o at o + 1
	}
	t.starts[0] = 0
	for o := range t.nodes {
		if t.starts[o+1] > 0 {
			t.owners++
		}
		t.starts[o+1] += t.starts[o]
	}
	// starts[o] is where node o's begin; filling moves it to where they end.
	t.live = make([]uint32, t.starts[t.nodes])
	for b, o := range t.owner {
		if o != 0 {
			t.live[t.starts[o-1]] = uint32(b)
			t.starts[o-1]++
		}
	}
	copy(t.starts[1:], t.starts)
	t.starts[0] = 0
}

// of returns the buckets of node o.
func (t *Table) of(o int) []uint32 { return t.live[t.starts[o]:t.starts[o+1]] }

// Len returns the number of nodes, those that own nothing included.
func (t *Table) Len() int { return t.nodes }

// Locate returns the index of the node that owns hash h, or -1 if none does.
//
// BackHash is written out here, because for it a further call would show.
func (t *Table) Locate(h uint64) int {
	if t.variant == Classic {
		return t.locateClassic(h)
	}
	v := first(h)
	u := t.growth.changes(v)
	b := lastChange(v, u)
	if b >= t.growth.end {
		if t.growth.end == 0 {
			return -1
		}
		b = t.growth.redraw(h, v, u)
	}
	if o := t.owner[b]; o != 0 {
		return int(o) - 1
	}
	return t.locateBeyond(h)
}

func (t *Table) locateClassic(h uint64) int {
	if b := Hash(h, len(t.owner)); uint(b) < uint(len(t.owner)) {
		if o := t.owner[b]; o != 0 {
			return int(o) - 1
		}
	}
	return t.locateBeyond(h)
}

// draw returns the bucket of h; there is at least one.
func (t *Table) draw(h uint64) int {
	if t.variant == Back {
		return BackHash(h, len(t.owner))
	}
	return Hash(h, len(t.owner))
}

// locateBeyond is Locate for a key whose first draw is a hole.
func (t *Table) locateBeyond(h uint64) int {
	if len(t.live) == 0 {
		return -1
	}
	k := h
	for range Draws - 1 {
		k = again(k)
		if o := t.owner[t.draw(k)]; o != 0 {
			return int(o) - 1
		}
	}
	return t.heaviest(h, func(int) bool { return true })
}

// again returns the hash for a key's next draw.
func again(k uint64) uint64 { return splitmix.Mix(k + splitmix.Golden) }

// LocateBatch sets dst[i] to Locate(hs[i]) for every i; dst must be at least as
// long as hs. With Classic it takes about half of Locate's time per key.
func (t *Table) LocateBatch(dst []int, hs []uint64) {
	dst = dst[:len(hs)]
	if t.variant == Back || len(t.owner) == 0 {
		for i, h := range hs {
			dst[i] = t.Locate(h)
		}
		return
	}
	HashBatch(dst, hs, len(t.owner))
	for i, b := range dst {
		if o := t.owner[b]; o != 0 {
			dst[i] = int(o) - 1
		} else {
			dst[i] = t.locateBeyond(hs[i])
		}
	}
}

// AppendReplicas appends the first n nodes of h's preference order to dst, or
// all owners if there are fewer: the owners of the buckets that the key draws,
// each once, up to Draws draws; then the others by highest random weight of
// their best bucket. A change of one bucket changes the order by that bucket's
// node only. It allocates nothing but room in dst for n up to 32.
//
// Cost: about n draws for n well below the number of nodes; where the draws do
// not suffice (n near that number, very uneven weights, nearly all holes) a
// pass over the live buckets of the nodes that are still missing, for n up to 32
// one for each of them.
func (t *Table) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, t.owners)
	if n <= 0 {
		return dst
	}
	dst = slices.Grow(dst, n)
	base, k := len(dst), h
	for range Draws {
		if o := int(t.owner[t.draw(k)]) - 1; o >= 0 && !slices.Contains(dst[base:], o) {
			if dst = append(dst, o); len(dst)-base == n {
				return dst
			}
		}
		k = again(k)
	}
	if n > smallReplicas {
		return t.appendByWeight(dst, base, h, n)
	}
	for len(dst)-base < n {
		dst = append(dst, t.heaviest(h, func(o int) bool { return !slices.Contains(dst[base:], o) }))
	}
	return dst
}

// smallReplicas is the number of replicas up to which the completion allocates nothing.
const smallReplicas = 32

// score is a bucket's random weight for h.
func score(h uint64, bucket uint32) uint64 {
	return splitmix.Mix(h ^ splitmix.Mix((uint64(bucket)+1)*splitmix.Golden))
}

// heaviest returns the owner, of those that are ok, of the live bucket with the
// highest score, ties to the lower bucket; -1 if there is none. It looks at the
// buckets of those only: who has not been drawn by then has few.
func (t *Table) heaviest(h uint64, ok func(node int) bool) int {
	best, bucket, most := -1, uint32(0), uint64(0)
	for o := range t.nodes {
		if len(t.of(o)) == 0 || !ok(o) {
			continue
		}
		for _, b := range t.of(o) {
			if s := score(h, b); best < 0 || s > most || s == most && b < bucket {
				best, bucket, most = o, b, s
			}
		}
	}
	return best
}

// First returns the first node of h's preference order for which ok, -1 if there
// is none. ok may be asked about one node more than once. It allocates nothing.
func (t *Table) First(h uint64, ok func(node int) bool) int {
	if t.owners == 0 {
		return -1
	}
	k := h
	for range Draws {
		if o := int(t.owner[t.draw(k)]) - 1; o >= 0 && ok(o) {
			return o
		}
		k = again(k)
	}
	return t.heaviest(h, ok)
}

// appendByWeight is the completion for many replicas: it ranks all nodes.
func (t *Table) appendByWeight(dst []int, base int, h uint64, n int) []int {
	type ranked struct {
		score  uint64
		bucket uint32 // the first with that score
		node   int
	}
	var rest []ranked
	for o := range t.nodes {
		own := t.of(o)
		if len(own) == 0 || slices.Contains(dst[base:], o) {
			continue
		}
		best := ranked{score: score(h, own[0]), bucket: own[0], node: o}
		for _, b := range own[1:] {
			if s := score(h, b); s > best.score {
				best.score, best.bucket = s, b
			}
		}
		rest = append(rest, best)
	}
	slices.SortFunc(rest, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.bucket, b.bucket))
	})
	for _, r := range rest[:n-(len(dst)-base)] {
		dst = append(dst, r.node)
	}
	return dst
}
