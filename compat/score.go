package compat

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

// Score is highest random weight (Thaler and Ravishankar 1998) by a hash of the
// key that is mixed with, or goes on over, each node's. Of equal scores the
// first of the list wins.
type Score struct {
	rule   scoreRule
	nodes  []uint16
	hashes []uint64 // mixed: of the names, through shifts
	names  []string // the others
	weight []float64
}

type scoreRule uint8

const (
	mixed    scoreRule = iota // xorshift* of both xxHashes: go-redis, dgryski
	crc32c                    // CRC-32C of key and name: tysonmote
	fnv32                     // FNV-1a of key and name: Caddy 2.6
	logFNV64                  // weight / -ln of FNV-1a of key and name: Traefik
)

var scoreRules = map[topology.Mode]scoreRule{topology.ModeGoRedisRing: mixed, topology.ModeDgryski: mixed, topology.ModeTysonmote: crc32c,
	topology.ModeCaddy: fnv32, topology.ModeTraefik: logFNV64}

func newScore(f topology.Foreign, live []server) *Score {
	s := &Score{rule: scoreRules[f.Mode]}
	for _, v := range live {
		s.nodes = append(s.nodes, uint16(v.index))
		s.hashes = append(s.hashes, shifts(xxhash.Sum64String(v.name)))
		s.names = append(s.names, v.name)
		s.weight = append(s.weight, float64(v.weight))
	}
	return s
}

// Locate returns the node of hash h, -1 without nodes. It asks every node.
func (s *Score) Locate(h uint64) int {
	if len(s.nodes) == 0 {
		return -1
	}
	switch s.rule {
	case mixed:
		return s.locateMixed(h)
	case logFNV64:
		return int(s.nodes[firstLargest(len(s.nodes), func(i int) float64 { return s.logScore(h, i) })])
	}
	return int(s.nodes[firstLargest(len(s.nodes), func(i int) uint64 { return s.score(h, i) })])
}

// locateMixed is the loop of the live mode. Shifts and exclusive ors are linear,
// so those of key and node are done apart, and an exclusive or and a multiplication
// are left for each node. The maximum comes first, its place after: a place that
// changes with the maximum costs a branch that no predictor knows, and 10 nodes take
// 57 ns in place of 33, 100 nodes 240 in place of 160.
func (s *Score) locateMixed(h uint64) int {
	h = shifts(h)
	var most, most1, most2, most3 uint64
	list := s.hashes
	for ; len(list) >= 4; list = list[4:] {
		most = max(most, (h^list[0])*xorshiftStar)
		most1 = max(most1, (h^list[1])*xorshiftStar)
		most2 = max(most2, (h^list[2])*xorshiftStar)
		most3 = max(most3, (h^list[3])*xorshiftStar)
	}
	for _, n := range list {
		most = max(most, (h^n)*xorshiftStar)
	}
	most = max(most, most1, most2, most3)
	for i, n := range s.hashes {
		if (h^n)*xorshiftStar == most {
			return int(s.nodes[i])
		}
	}
	return -1 // not reached: most is one of them
}

// shifts and xorshiftStar are xorshift64* (Vigna 2016), which go-rendezvous mixes
// with: the state's next value, times a constant.
func shifts(x uint64) uint64 {
	x ^= x >> 12
	x ^= x << 25
	return x ^ x>>27
}

const xorshiftStar = 2685821657736338717

func (s *Score) score(h uint64, i int) uint64 {
	switch s.rule {
	case crc32c:
		return uint64(keyhash.CRC32CFrom(uint32(h>>32), s.names[i]))
	case fnv32:
		return uint64(keyhash.FNV1A32From(uint32(h>>32), s.names[i]))
	}
	return (shifts(h) ^ s.hashes[i]) * xorshiftStar
}

func (s *Score) logScore(h uint64, i int) float64 {
	x := float64(keyhash.FNV1AFrom(h, s.names[i])) / (1 << 64)
	return s.weight[i] * (1 / -math.Log(x))
}

func firstLargest[T cmp.Ordered](n int, score func(i int) T) int {
	best, most := 0, score(0)
	for i := 1; i < n; i++ {
		if v := score(i); v > most {
			best, most = i, v
		}
	}
	return best
}

// AppendReplicas appends the first n nodes of h's order to dst: by falling score.
func (s *Score) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, len(s.nodes))
	if n <= 0 {
		return dst
	}
	if n == 1 {
		return append(dst, s.Locate(h))
	}
	order := make([]int, len(s.nodes))
	for i := range order {
		order[i] = i
	}
	if s.rule == logFNV64 {
		fallingBy(order, func(i int) float64 { return s.logScore(h, i) })
	} else {
		fallingBy(order, func(i int) uint64 { return s.score(h, i) })
	}
	for _, i := range order[:n] {
		dst = append(dst, int(s.nodes[i]))
	}
	return dst
}

// fallingBy sorts order by falling score, equal ones by place.
func fallingBy[T cmp.Ordered](order []int, score func(i int) T) {
	scores := make([]T, len(order))
	for i := range scores {
		scores[i] = score(i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), a-b) })
}

// SameRule reports whether both score in the same way.
func (s *Score) SameRule(t *Score) bool { return s.rule == t.rule }

// Lawful reports whether the scores of different nodes behave as independent
// random numbers, so that shares and movement follow the law of highest random
// weight. The others hash the node behind the key, by functions that carry a
// key's difference to all nodes alike: there only a sample tells.
func (s *Score) Lawful() bool { return s.rule == mixed }

// Rule names the way of scoring: it stands in mapping digests.
func (s *Score) Rule() string {
	return [...]string{mixed: "xorshift", crc32c: "crc32c", fnv32: "fnv1a32", logFNV64: "log-fnv1a64"}[s.rule]
}

// Each yields the nodes in the foreign order: the name that is hashed, and the
// weight, 1 where the rule knows none.
func (s *Score) Each(yield func(node int, name string, weight float64)) {
	for i, n := range s.nodes {
		w := 1.0
		if s.rule == logFNV64 {
			w = s.weight[i]
		}
		yield(int(n), s.names[i], w)
	}
}
