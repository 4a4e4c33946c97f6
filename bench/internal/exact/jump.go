package exact

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/internal/floorbench"
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/jump"
)

// hashes returns the hashes of the first n keys.
func hashes(n int) []uint64 {
	hs := make([]uint64, n)
	for i, k := range floorbench.Keys(n) {
		hs[i] = xxhash.Sum64String(k)
	}
	return hs
}

// samples is how many samples a million keys are taken as: enough that the
// figures settle, for the fewer nodes the more.
func samples(n int) int { return max(1, 1000/n) }

// sampled counts the keys of each sample by node and returns a row of the means
// beside what keys that fall at random would show. cv / random is a root mean
// square: within 3 % of 1, or something is wrong with the hash.
func sampled(name string, n int, hs []uint64, owner func(h uint64) int) []string {
	k := samples(n)
	size := len(hs) / k
	noise := shares.Noise(n, size)
	var peaks, squares []float64
	for part := range slices.Chunk(hs[:k*size], size) {
		counts := make([]int, n)
		for _, h := range part {
			counts[owner(h)]++
		}
		s := shares.Of(counts)
		peaks, squares = append(peaks, s.Peak), append(squares, s.CV*s.CV)
	}
	cv := math.Sqrt(mean(squares))
	return []string{name, count(n), fmt.Sprintf("%d x %d", k, size), f(mean(peaks), 4), f(multinomialPeak(n, size), 4), f(cv, 4), f(noise, 4), f(cv/noise, 3)}
}

// sampleHeader is that of a table of rows by sampled.
func sampleHeader() []string {
	return []string{"", "N", "samples x keys", "peak", "random: peak", "cv", "random: cv", "cv / random"}
}

// JumpBalance counts a million keys: by law all shares are equal.
func JumpBalance() (page.Table, error) {
	t := page.Table{Header: sampleHeader()}
	hs := hashes(floorbench.NumKeys)
	for _, v := range []struct {
		name string
		hash func(uint64, int) int
	}{{"classic", jump.Hash}, {"back", jump.BackHash}} {
		for _, n := range sizes {
			t.Add(sampled(v.name, n, hs, func(h uint64) int { return v.hash(h, n) })...)
		}
	}
	return t, nil
}

// stepKeys is how many keys the steps of a lookup are counted for.
const stepKeys = 100_000

// JumpSteps counts what a lookup does, beside the laws.
func JumpSteps() (page.Table, error) {
	t := page.Table{Header: []string{"buckets", "classic: steps", "law: H_n", "back: random values", "law: at most"}}
	for _, n := range []int{10, 16, 17, 100, 1000, 10_000, 65_536, 65_537, 1 << 20, 1<<20 + 1} {
		steps, values, err := jumpWork(n)
		if err != nil {
			return t, err
		}
		most := 5. / 3
		if n&(n-1) == 0 {
			most = 1
		}
		t.Add(count(n), f(steps, 3), f(harmonic(n), 3), f(values, 4), f(most, 4))
	}
	return t, nil
}

// JumpCurve is the number of steps by buckets, and the law.
func JumpCurve() (steps, law, values []Point, err error) {
	for k := 2; k <= 40; k++ {
		n := 1 << (k / 2)
		if k%2 == 1 {
			n += n / 2
		}
		s, v, err := jumpWork(n)
		if err != nil {
			return nil, nil, nil, err
		}
		x := float64(n)
		steps, law, values = append(steps, Point{x, s}), append(law, Point{x, harmonic(n)}), append(values, Point{x, v})
	}
	return steps, law, values, nil
}

// jumpWork is the mean number of steps of Hash and of random values of
// BackHash. Both are counted in the papers' own loops, which must find the
// package's buckets.
func jumpWork(n int) (steps, values float64, err error) {
	s, v := 0, 0
	for _, h := range hashes(stepKeys) {
		b, took := classicSteps(h, n)
		back, drew := backValues(h, n)
		if b != jump.Hash(h, n) || back != jump.BackHash(h, n) {
			return 0, 0, fmt.Errorf("exact: hash %d of %d buckets: %d and %d, not the package's %d and %d", h, n, b, back, jump.Hash(h, n), jump.BackHash(h, n))
		}
		s += took
		v += drew
	}
	return float64(s) / stepKeys, float64(v) / stepKeys, nil
}

// classicSteps is Lamping and Veach's figure 1 with a counter.
func classicSteps(h uint64, n int) (bucket, steps int) {
	b, j := int64(-1), int64(0)
	for j < int64(n) {
		b = j
		h = h*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(1<<31) / float64(int64(h>>33)+1)))
		steps++
	}
	return int(b), steps
}

// backValues is Ertl's JumpBackHash as a loop over the ranges, with a counter.
func backValues(h uint64, n int) (bucket, values int) {
	rng := splitmix.Source(h)
	v := rng.Next()
	values = 1
	u := uint32(v^v>>32) & uint32(1<<bits.Len(uint(n-1))-1)
	for u != 0 {
		q := uint32(1) << (bits.Len32(u) - 1)
		half := v >> (uint(bits.OnesCount32(u)) & 1 << 5)
		b := q + uint32(half)&(q-1)
		for b >= uint32(n) {
			w := rng.Next()
			values++
			if b = uint32(w) & (2*q - 1); b < uint32(n) {
				break
			}
			b = uint32(w>>32) & (2*q - 1)
		}
		if b >= q {
			return int(b), values
		}
		u ^= q
	}
	return 0, values
}

// JumpTraps is what Jump moves when node i is bucket i of a list, in the two
// ways that people close the gap which a node leaves, beside the array with
// holes. Multiples of the minimum 1/N, counted on a million keys.
func JumpTraps() (page.Table, error) {
	t := page.Table{Header: []string{"a node in the middle leaves", "N", "moved x minimum", "between unchanged"}}
	hs := hashes(floorbench.NumKeys)
	for _, trap := range []struct {
		name  string
		owner func(bucket, n int) int // after, as an index before
	}{
		{"position in a sorted list", func(b, n int) int {
			if b >= n/2 {
				return b + 1
			}
			return b
		}},
		{"the last bucket into the gap", func(b, n int) int {
			if b == n/2 {
				return n - 1
			}
			return b
		}},
	} {
		for _, n := range sizes {
			moved, needless := 0, 0
			for _, h := range hs {
				before, after := jump.Hash(h, n), trap.owner(jump.Hash(h, n-1), n)
				if before != after {
					moved++
					if before != n/2 {
						needless++
					}
				}
			}
			least := float64(len(hs)) / float64(n)
			t.Add(trap.name, count(n), f(float64(moved)/least, 2), f(float64(needless)/least, 2))
		}
	}
	return t, holes(&t)
}

// holes adds the rows of the array with holes, exactly by the package's law.
func holes(t *page.Table) error {
	for _, n := range sizes {
		ids, weights := names(n), ones(n)
		before, err := jump.Build(ids, weights, 1)
		if err != nil {
			return err
		}
		weights[n/2] = 0
		after, _, err := jump.Update(before, ids, weights, 1)
		if err != nil {
			return err
		}
		t.Add("a hole stays", count(n), f(jump.Movement(before, after)*float64(n), 2), f(0, 2))
	}
	return nil
}
