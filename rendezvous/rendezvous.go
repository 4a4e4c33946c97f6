// Package rendezvous is weighted rendezvous hashing, also called highest random
// weight (Thaler and Ravishankar 1998, "Using Name-Based Mappings to Increase
// Hit Rates"; the weights as in Schindelhauer and Schomaker 2005, "Weighted
// Distributed Hash Tables", section 3, logarithmic method).
//
// Every node draws a number for a key, exponentially distributed with its
// weight as the rate, and the least number owns the key. The preference order
// of a key is the nodes by ascending number.
//
// # The mapping
//
// It is frozen: golden files hold it. Only integers take part, so it is the
// same on every machine. With h the hash of the key, for node id of weight w:
//
//	fold(a, b):  high word XOR low word of the 128-bit product a*b
//	mix(z):      z ^= z>>30; z *= 0xbf58476d1ce4e5b9; z ^= z>>27;
//	             z *= 0x94d049bb133111eb; z ^= z>>31           (mod 2^64)
//	seed         = mix(xxh64(id))                               seed 0
//	x            = fold(seed XOR h, fold(h, 0x9e3779b97f4a7c15) OR 1) >> 16
//	E            = -ln(1 - (2x+1)/2^49) in units of 2^-58, as expo computes it
//
// and the node with the least E/w owns the key, compared as fractions, without
// rounding. Equal fractions go to the smaller id. Within equal weights the least
// x has the least E, so that only one multiplication a node and one logarithm a
// distinct weight are needed. The half that 2x+1 adds keeps the logarithm away
// from 0 and from infinity.
//
// expo(x), with / and >> rounding down:
//
//	m = (2^49 - 2x - 1) << k, with k such that 2^63 <= m < 2^64
//	i = ((m-1) >> 55) + 1                                     256 to 512
//	R = (((i<<55) - m) << 9) / i                              r = R/2^64 <= 2^-8
//	p = 2^64/6;  p = 2^64/j + (p*R >> 64) for j = 5, 4, 3, 2
//	E = ((k-15)*LN2 >> 6) + LN[i] + ((R + (R*(R*p >> 64) >> 64)) >> 6)
//
// where LN2 is ln 2 in units of 2^-64 and LN[i] is -ln(i/512) in units of 2^-58,
// both rounded to the nearest. E is within 4 units of the logarithm; two values of
// x are at least 1023 units apart, so a smaller x never has a larger E.
//
// # Law
//
// The mapping depends on the nodes present and their weights alone. A node's
// expected share is its weight over the sum of the weights; the shares of a
// sample vary as in drawing at random. Every change of one node moves the least
// that the shares allow, and only to or from that node; no change moves more
// than 2d/(1+d) for a least of d.
//
// # Cost
//
// HRW: about 1 ns a node and lookup, and about 15 ns a distinct weight if there
// is more than one. Table: one load a lookup, for nodes by the thousand; it
// decides the owner for each of its slots rather than for each key, which is
// another mapping, with a cv of the shares of about sqrt(N/slots). Both are
// immutable: any number of goroutines may use them.
//
// # What it does not do
//
// It knows no health, load or zones, and does not hash keys.
package rendezvous

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// MaxNodes is the largest number of nodes: their indices have 16 bits, of which
// two values are left free.
const MaxNodes = 65534

// Errors that New and NewTable wrap; a refused input changes nothing.
var (
	// ErrOrder is returned when ids are not strictly ascending: sort them, and
	// remove duplicates.
	ErrOrder = errors.New("rendezvous: node ids are not strictly ascending")
	// ErrTooManyNodes is returned for more than MaxNodes ids.
	ErrTooManyNodes = errors.New("rendezvous: too many nodes")
	// ErrInput is returned for any other unusable argument.
	ErrInput = errors.New("rendezvous: bad input")
)

// HRW is rendezvous hashing for each key. Make one with New.
type HRW struct {
	classes []class
	ids     []string
	weights []uint32
	owners  int
}

// class is the nodes of one weight, in ascending order of their ids.
type class struct {
	weight uint64
	seeds  []uint64
	index  []uint16 // index[i] is the index of the node with seeds[i]
}

func (c *class) total() uint64 { return c.weight * uint64(len(c.seeds)) }

// New returns the mapping for the nodes ids, which must be strictly ascending,
// with their weights. A node of weight 0 owns nothing and is never returned. No
// nodes, or only nodes of weight 0, make a mapping in which every lookup finds
// nobody. The arguments are not kept.
//
// Errors wrap ErrOrder, ErrTooManyNodes or ErrInput. It takes O(N log N) time.
func New(ids []string, weights []uint32) (*HRW, error) {
	if err := check(ids, weights); err != nil {
		return nil, err
	}
	return build(slices.Clone(ids), slices.Clone(weights)), nil
}

// build is New of checked arguments, which it keeps.
func build(ids []string, weights []uint32) *HRW {
	t := &HRW{ids: ids, weights: weights}
	of := make(map[uint32]int) // weight to class
	for i, w := range weights {
		if w == 0 {
			continue
		}
		c, known := of[w]
		if !known {
			c = len(t.classes)
			of[w] = c
			t.classes = append(t.classes, class{weight: uint64(w)})
		}
		t.classes[c].seeds = append(t.classes[c].seeds, seed(ids[i]))
		t.classes[c].index = append(t.classes[c].index, uint16(i))
		t.owners++
	}
	// The class that most often has the owner comes first: it spares the others
	// their logarithm.
	slices.SortStableFunc(t.classes, func(a, b class) int { return cmp.Compare(b.total(), a.total()) })
	return t
}

// Len returns the number of nodes, those of weight 0 included: indices are
// 0 to Len-1.
func (t *HRW) Len() int { return len(t.ids) }

// Owners returns the number of nodes that can own something: weight above 0.
func (t *HRW) Owners() int { return t.owners }

// golden is 2^64 divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func seed(id string) uint64 { return mix(xxhash.Sum64String(id)) }

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// multiplier is what a key's draws have in common.
func multiplier(h uint64) uint64 { return fold(h, golden) | 1 }

// A draw is x<<16 with the position of the node in its class in the low bits:
// the least draw is the least x, and of equal ones that of the smaller id.
const positionBits = 0xffff

func draw(seed, h, g, position uint64) uint64 {
	return fold(seed^h, g)&^positionBits | position
}

// lowest returns the least draw of the class below least, or else least. Four
// draws at a time are compared without a branch, and then with the least so far,
// which few of them replace.
func lowest(s []uint64, h, g, least uint64) uint64 {
	i := uint64(0)
	for ; i+4 <= uint64(len(s)); i += 4 {
		q := s[i : i+4 : i+4]
		m := min(min(draw(q[0], h, g, 0), draw(q[1], h, g, 1)), min(draw(q[2], h, g, 2), draw(q[3], h, g, 3)))
		if m+i < least {
			least = m + i
		}
	}
	for ; i < uint64(len(s)); i++ {
		least = min(least, draw(s[i], h, g, i))
	}
	return least
}

// Locate returns the index of the node that owns h, or -1 if nobody owns
// anything. It allocates nothing.
func (t *HRW) Locate(h uint64) int {
	if len(t.classes) == 1 {
		c := &t.classes[0]
		return int(c.index[lowest(c.seeds, h, multiplier(h), math.MaxUint64)&positionBits])
	}
	return t.best(h).index
}

// best returns the least score for h; its index is -1 if there are no owners.
func (t *HRW) best(h uint64) score {
	g := multiplier(h)
	best, limit := score{index: -1}, uint64(math.MaxUint64)
	for i := range t.classes {
		c := &t.classes[i]
		if i > 0 {
			limit = best.limit(c.weight)
		}
		least := lowest(c.seeds, h, g, limit)
		if least == limit {
			continue
		}
		s := score{expo(least >> 16), c.weight, int(c.index[least&positionBits])}
		if i == 0 || s.less(best) {
			best = s
		}
	}
	return best
}
