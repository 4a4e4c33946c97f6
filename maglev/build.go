package maglev

import (
	"fmt"
	"math"
	"slices"

	"github.com/shardd/shardd/internal/quota"
)

// Moves is what an Update changed.
type Moves struct {
	// Moved is the number of entries that got another owner, or one for the
	// first time.
	Moved int
	// Bound is the least that any table with every quota within one entry of
	// its exact share must move. Update moves exactly that.
	Bound int
}

// Build returns the table of size entries for nodes without a past: the paper's
// fill, by quotas. ids must be strictly ascending; weights run parallel, and a
// node of weight 0 owns nothing. Without any weight nobody owns an entry.
//
// Build refuses (ErrSize) a size that is not a prime from 2 to MaxSize, and one
// that cannot give every node with weight an entry at quotas within one entry
// of the exact share; more nodes than entries are an instance of that.
//
// The result is a function of the arguments alone and is frozen. Cost: about
// 1 ms at size 65537 and 100 nodes.
func Build(ids []string, weights []uint32, size uint32) ([]uint16, error) {
	if err := checkSize(uint64(size)); err != nil {
		return nil, err
	}
	if err := quota.CheckNodes("maglev", ids, weights); err != nil {
		return nil, err
	}
	entries, _, err := refill(unowned(int(size)), ids, weights)
	return entries, err
}

func unowned(size int) []uint16 {
	entries := make([]uint16, size)
	for i := range entries {
		entries[i] = NoOwner
	}
	return entries
}

// Update returns the table that follows prev when the nodes are now ids with
// weights. prev holds indices into the new ids, and NoOwner where the owner is
// gone; it is not changed. The size stays that of prev, and the arguments are
// refused for the same reasons as Build's; an error changes nothing.
//
// Quotas: the exact share M w_i / W rounded down or up. Units on top of the
// floors go first to nodes whose floor is 0, then to those that hold more than
// their floor, then by largest fraction, ties to the lower index. Nodes above
// their quota release the entries that come last in their own permutation;
// nodes below it take turns, by credit of weight, at the free entry that comes
// first in theirs. No other entry changes.
func Update(prev []uint16, ids []string, weights []uint32) ([]uint16, Moves, error) {
	if err := checkSize(uint64(len(prev))); err != nil {
		return nil, Moves{}, err
	}
	if err := quota.CheckNodes("maglev", ids, weights); err != nil {
		return nil, Moves{}, err
	}
	if err := quota.CheckEntries("maglev", len(ids), prev); err != nil {
		return nil, Moves{}, err
	}
	return refill(slices.Clone(prev), ids, weights)
}

// refill is Update on checked arguments; it takes entries over.
func refill(entries []uint16, ids []string, weights []uint32) ([]uint16, Moves, error) {
	old := make([]int, len(ids))
	for _, e := range entries {
		if e != NoOwner {
			old[e]++
		}
	}
	total := len(entries)
	if !slices.ContainsFunc(weights, func(w uint32) bool { return w > 0 }) {
		return unowned(total), Moves{}, nil
	}
	quotas := quota.Round(quota.Proportional(total, weights), total, quota.Given{Old: old})
	if i, bad := quota.Starved(quotas, weights); bad {
		return nil, Moves{}, starved(ids[i], weights, i, total)
	}
	f := newFill(entries, ids)
	if f.left < total {
		f.release(old, quotas)
	}
	moves := Moves{Moved: f.left, Bound: quota.Bound(quotas, old)}
	f.fill(turns(deficits(quotas, old), weights))
	return f.entries, moves, nil
}

// starved explains that a node would own nothing, and what size would do.
func starved(id string, weights []uint32, i, size int) error {
	var sum, least uint64
	for _, w := range weights {
		if sum += uint64(w); w > 0 && (least == 0 || uint64(w) < least) {
			least = uint64(w)
		}
	}
	enough := (sum + least - 1) / least // then the smallest exact share is at least 1
	if enough > MaxSize {
		return fmt.Errorf("%w: node %q of weight %d would own none of %d entries, and no table is large enough for weights from %d in a sum of %d; raise the weight or set it to 0", ErrSize, id, weights[i], size, least, sum)
	}
	return fmt.Errorf("%w: node %q of weight %d would own none of %d entries; raise the weight, set it to 0, or take a table of %d", ErrSize, id, weights[i], size, NextPrime(uint32(enough)))
}

func deficits(quotas, old []int) []int {
	need := make([]int, len(quotas))
	for i, q := range quotas {
		need[i] = max(0, q-old[i])
	}
	return need
}

// turns lists who takes an entry when: need[i] turns of each node i, by rounds.
// The k-th turn of a node falls into round 1 + ceil((k - 1) max/weight), where
// max is the largest weight of those in need; within a round the lower index
// is first. With equal weights that is the paper's order. Cost: O(turns), by a
// counting sort over the rounds, of which there are at most M.
func turns(need []int, weights []uint32) []uint16 {
	var most uint64
	least := uint64(math.MaxUint64)
	for i, n := range need {
		if n > 0 {
			most, least = max(most, uint64(weights[i])), min(least, uint64(weights[i]))
		}
	}
	if most == least {
		return inTurn(need)
	}
	total, last := 0, uint64(0)
	for i, n := range need {
		if n > 0 {
			total += n
			last = max(last, ceilDiv(uint64(n-1)*most, uint64(weights[i])))
		}
	}
	rounds := make([]uint32, 0, total)
	for i, n := range need {
		rounds = appendRounds(rounds, n, most, uint64(weights[i]))
	}
	start := make([]uint32, last+2) // start[r]: where round r's turns begin
	for _, r := range rounds {
		start[r+1]++
	}
	for r := range last + 1 {
		start[r+1] += start[r]
	}
	order := make([]uint16, total)
	for i, n := range need {
		for _, r := range rounds[:n] {
			order[start[r]] = uint16(i)
			start[r]++
		}
		rounds = rounds[n:]
	}
	return order
}

// inTurn is turns for equal weights: everybody in need takes one a round.
func inTurn(need []int) []uint16 {
	total := 0
	var active []uint16
	for i, n := range need {
		if n > 0 {
			active = append(active, uint16(i))
			total += n
		}
	}
	order := make([]uint16, 0, total)
	for round := 0; len(active) > 0; {
		until := math.MaxInt // the round after which the first of them is content
		for _, i := range active {
			until = min(until, need[i])
		}
		for ; round < until; round++ {
			order = append(order, active...)
		}
		active = slices.DeleteFunc(active, func(i uint16) bool { return need[i] == round })
	}
	return order
}

// appendRounds appends the rounds, counted from 0, of n turns of a node: the
// ceilings of 0, most/w, 2 most/w, ..., without dividing each time.
func appendRounds(dst []uint32, n int, most, w uint64) []uint32 {
	if n == 0 {
		return dst
	}
	step, part := most/w, most%w
	round, rest := uint64(0), uint64(0) // (k - 1) most = round w + rest
	for range n {
		r := round
		if rest > 0 {
			r++
		}
		dst = append(dst, uint32(r))
		round += step
		if rest += part; rest >= w {
			rest -= w
			round++
		}
	}
	return dst
}

func ceilDiv(a, b uint64) uint64 { return (a + b - 1) / b }
