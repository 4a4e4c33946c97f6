package compat

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
	"github.com/spaolacci/murmur3"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/ring"
)

// permutation is a node's order of the entries of a Maglev table (Eisenbud et
// al. 2016, section 3.4), taken step by step.
type permutation struct{ at, skip uint64 }

func newPermutation(h1, h2 uint64, size uint32) permutation {
	return permutation{h1 % uint64(size), h2%uint64(size-1) + 1}
}

// take gives the next free entry of table to node.
func (p *permutation) take(table []int, node int) {
	for table[p.at] >= 0 {
		p.step(len(table))
	}
	table[p.at] = node
	p.step(len(table))
}

func (p *permutation) step(size int) { p.at = (p.at + p.skip) % uint64(size) }

func newMaglevTable(size uint32) []int { return slices.Repeat([]int{-1}, int(size)) }

// checkMaglev refuses more nodes than entries: some would own nothing, and the
// foreign programs do not say so.
func checkMaglev(size uint32, live []server) error {
	if len(live) > int(size) {
		return fmt.Errorf("%w: %d nodes for a table of %d entries; enlarge it", ErrNodes, len(live), size)
	}
	return nil
}

// envoyMaglev is Envoy's table: a host whose weighted turns have not reached its
// target sits a round out.
func envoyMaglev(size uint32, live []server) ([]int, error) {
	if err := checkMaglev(size, live); err != nil {
		return nil, err
	}
	names := make([]string, len(live))
	for i, s := range live {
		names[i] = s.name
	}
	return envoyMaglevTable(size, names, normalized(live)), nil
}

func envoyMaglevTable(size uint32, names []string, weights []float64) []int {
	nodes, target := make([]permutation, len(names)), make([]float64, len(names))
	for i, name := range names {
		seeded := xxhash.NewWithSeed(1)
		_, _ = seeded.WriteString(name) // never fails
		nodes[i] = newPermutation(xxhash.Sum64String(name), seeded.Sum64(), size)
	}
	table, most := newMaglevTable(size), slices.Max(weights)
	for round, filled := 1, 0; ; round++ {
		for i := range nodes {
			if float64(float64(round)*weights[i]) < target[i] {
				continue
			}
			target[i] += most
			nodes[i].take(table, i)
			if filled++; filled == len(table) {
				return table
			}
		}
	}
}

// kkdaiMaglev is kkdai/maglev: plain turns, SipHash under two keys.
func kkdaiMaglev(size uint32, live []server) ([]int, error) {
	if err := checkMaglev(size, live); err != nil {
		return nil, err
	}
	nodes := make([]permutation, len(live))
	for i, s := range live {
		nodes[i] = newPermutation(siphash.Hash(0xdeadbabe, 0, []byte(s.name)), siphash.Hash(0xdeadbeef, 0, []byte(s.name)), size)
	}
	table := newMaglevTable(size)
	for n := range table {
		i := n % len(nodes)
		nodes[i].take(table, i)
	}
	return table, nil
}

// ciliumMaglev is Cilium's: turns pass over backends that had theirs, by a counter
// in double precision, if the mean weight, in integers, is above 1.
func ciliumMaglev(size uint32, seed string, live []server) ([]int, error) {
	if err := checkMaglev(size, live); err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(seed)
	if err != nil || len(key) < 4 {
		return nil, fmt.Errorf("compat: seed %q is not base 64", seed)
	}
	murmurSeed := binary.BigEndian.Uint32(key)
	count, sum := uint64(len(live)), total(live)
	nodes, done := make([]permutation, len(live)), make([]float64, len(live))
	for i, s := range live {
		h1, h2 := murmur3.Sum128WithSeed([]byte(s.name), murmurSeed)
		nodes[i] = newPermutation(h1, h2, size)
		done[i] = float64(s.weight) / float64(count)
	}
	table := newMaglevTable(size)
	for n := range uint64(size) {
		i := n % count
		if sum/count > 1 {
			for (n+1)*uint64(live[i].weight) < uint64(done[i]) {
				i = (i + 1) % count
			}
			done[i] += float64(sum)
		}
		nodes[i].take(table, int(i))
	}
	return table, nil
}

func partitionHash(p int) uint64 {
	return keyhash.XXH64.Wide(string(binary.LittleEndian.AppendUint64(nil, uint64(p))))
}

func ceilMul(n uint64, by float64) float64 { return math.Ceil(float64(float64(n) * by)) }

// firstWithRoom returns the first point not before h whose owner is free.
func firstWithRoom(points []ring.Point, h uint64, free func(owner uint16) bool) (int, error) {
	i, _ := slices.BinarySearchFunc(points, h, func(p ring.Point, h uint64) int {
		if p.Place < h {
			return -1
		}
		return 1
	})
	for range points {
		if i >= len(points) {
			i = 0
		}
		if free(points[i].Owner) {
			return i, nil
		}
		i++
	}
	return 0, ErrNodes
}
