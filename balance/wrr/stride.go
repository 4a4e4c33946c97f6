package wrr

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance"
)

// maxStride is the largest scaled weight: weights are held in 16 bits.
const maxStride = math.MaxUint16

// Stride is the static stride scheduler of gRPC's weighted_round_robin: turn t
// of generation g = t div n looks at node i = t mod n, and passes it over if
//
//	(w_i * g + i * 32767) mod 65535 < 65535 - w_i
//
// with weights scaled so that the largest is 65535. O(largest / mean weight)
// turns a pick expected; at most 2n, since the heaviest node is never passed
// over.
//
// Shares are exact over 65535 generations and smooth to about one pick; no state
// but one counter. Weights are clamped to 1/65535 of the largest, so that nobody
// starves (grpc-go rounds ratios above 131070 to 0). Use Smooth for few nodes
// where the order matters. Source: gRPC A58; grpc-go balancer/weightedroundrobin.
type Stride struct {
	set *balance.Set
	stride
}

// stride is the schedule over the live members of a set. The left side of the
// rule above is the part of a node's turn that has passed; credits replace the
// i * 32767 when a schedule goes on from another one, so that it is not lost.
type stride struct {
	weights []uint16
	credits []uint16
	turn    *counter
}

// NewStride returns a static stride picker over set, starting at turn start;
// use a random number unless the order matters.
func NewStride(set *balance.Set, start uint32) *Stride {
	return &Stride{set: set.Observed(nil), stride: newStride(liveWeights(set), start)}
}

// liveWeights returns the weights of the members that may be picked.
func liveWeights(set *balance.Set) []float64 {
	weights := make([]float64, set.Live())
	for k := range weights {
		weights[k] = set.Member(set.LiveIndex(k)).Weight
	}
	return weights
}

func newStride(weights []float64, start uint32) stride {
	s := stride{weights: scale(weights), credits: make([]uint16, len(weights)), turn: newCounter(start)}
	for k := range s.credits {
		s.credits[k] = firstCredit(k)
	}
	return s
}

// firstCredit spreads the first turns of equal nodes over a generation.
func firstCredit(k int) uint16 { return uint16(uint64(k) * (maxStride / 2) % maxStride) }

// scale returns weights as parts of the largest, which becomes maxStride.
func scale(weights []float64) []uint16 {
	largest := 0.0
	for _, w := range weights {
		largest = max(largest, w)
	}
	scaled := make([]uint16, len(weights))
	for k, w := range weights {
		scaled[k] = uint16(max(1, math.Round(w/largest*maxStride)))
	}
	return scaled
}

// next takes turns until one is not passed over.
func (s *stride) next() int {
	n := uint32(len(s.weights))
	for {
		t := s.turn.next()
		k := t % n
		if w := uint64(s.weights[k]); s.passed(k, t/n) >= maxStride-w {
			return int(k)
		}
	}
}

// passed returns how much of node k's turn has passed in a generation, in parts
// of maxStride.
func (s *stride) passed(k, generation uint32) uint64 {
	return (uint64(s.weights[k])*uint64(generation) + uint64(s.credits[k])) % maxStride
}

// carry returns the schedule for other weights: node k of it was node from[k]
// here, -1 if it is new.
func (s *stride) carry(weights []float64, from []int) stride {
	next := newStride(weights, 0)
	if len(s.weights) == 0 {
		return next
	}
	n := uint32(len(s.weights))
	generation, at := s.turn.n.Load()/n, s.turn.n.Load()%n
	start := 0
	for k, j := range from {
		if j < 0 {
			continue
		}
		visited := generation
		if uint32(j) < at {
			visited++
			start = k + 1 // whoever comes first has not had his turn
		}
		next.credits[k] = uint16(s.passed(uint32(j), visited))
	}
	next.turn.n.Store(uint32(start % max(1, len(weights))))
	for k := range next.credits[:next.turn.n.Load()] { // seen next in generation 1
		next.credits[k] = uint16((uint32(next.credits[k]) + maxStride - uint32(next.weights[k])) % maxStride)
	}
	return next
}

func (s *Stride) index() int { return s.set.LiveIndex(s.next()) }

// Pick returns the node whose turn it is.
func (s *Stride) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if len(exclude) == 0 && len(s.weights) > 0 {
		return s.set.Take(s.index(), now), nil
	}
	return turns(s.set, s.index, now, seed, exclude)
}

// Next returns a static stride picker over set that goes on counting; it
// cannot fail.
func (s *Stride) Next(set *balance.Set) (balance.Picker, error) {
	return &Stride{set: set.Observed(nil), stride: s.carry(liveWeights(set), liveFrom(set, s.set))}, nil
}

// liveFrom returns for each live member of set its place among old's, or -1.
func liveFrom(set, old *balance.Set) []int {
	place := make([]int, old.Len())
	for i := range place {
		place[i] = -1
	}
	for k := range old.Live() {
		place[old.LiveIndex(k)] = k
	}
	all := set.From(old)
	from := make([]int, set.Live())
	for k := range from {
		if from[k] = all[set.LiveIndex(k)]; from[k] >= 0 {
			from[k] = place[from[k]]
		}
	}
	return from
}

// Set returns the set the picker was made of.
func (s *Stride) Set() *balance.Set { return s.set }
