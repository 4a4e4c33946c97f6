package compat

import (
	"math"
	"slices"

	"github.com/shardd/shardd/topology"
)

// SlotMove is one step of a plan: so many slots, the lowest ones of From, go to
// To. Nodes are indices.
type SlotMove struct {
	Count    int
	From, To int
}

// RedisCreate returns the owner of each slot after "redis-cli --cluster create"
// with n masters: stretches of equal length, borders rounded in single precision.
// Nil for n < 1.
func RedisCreate(n int) []uint16 {
	if n < 1 {
		return nil
	}
	owner := make([]uint16, topology.RedisSlots)
	each, cursor, first := float32(topology.RedisSlots)/float32(n), float32(0), 0
	for i := range n {
		last := int(math.Round(float64(float32(float32(cursor+each) - 1))))
		if last >= topology.RedisSlots || i == n-1 {
			last = topology.RedisSlots - 1
		}
		for s := first; s <= max(first, last) && s < topology.RedisSlots; s++ {
			owner[s] = uint16(i)
		}
		first = max(first, last) + 1
		cursor += each
	}
	return owner
}

// RedisOptions are those of "redis-cli --cluster rebalance".
type RedisOptions struct {
	// Threshold in percent: while no node is farther from its share nothing is
	// done. redis-cli's default is 2; 0 disables every move.
	Threshold float64
	// UseEmpty is --cluster-use-empty-masters: without it nodes that hold no
	// slot get none.
	UseEmpty bool
}

// RedisRebalance returns what "redis-cli --cluster rebalance" makes of owner,
// the node of each slot, and the moves it makes it by. Nodes are taken in order
// of index, which is the cli's: the one that is asked first, then the others as
// CLUSTER NODES lists them. owner is not changed.
func RedisRebalance(owner []uint16, weights []float64, o RedisOptions) (next []uint16, moves []SlotMove) {
	nodes, over := redisBalances(owner, weights, o)
	next = slices.Clone(owner)
	if !over {
		return next, nil
	}
	redisRound(nodes)
	slices.SortStableFunc(nodes, func(a, b redisNode) int { return a.balance - b.balance })
	for to, from := 0, len(nodes)-1; to < from; {
		n := min(-nodes[to].balance, nodes[from].balance)
		if n > 0 {
			moves = append(moves, SlotMove{Count: n, From: nodes[from].index, To: nodes[to].index})
			redisMove(next, uint16(nodes[from].index), uint16(nodes[to].index), n)
			nodes[to].balance += n
			nodes[from].balance -= n
		}
		done := nodes[to].balance >= 0
		if nodes[from].balance <= 0 {
			from--
		}
		if done {
			to++
		}
	}
	return next, moves
}

// redisNode is a master that takes part; balance is how many slots it has more
// than it should.
type redisNode struct{ index, balance int }

// redisBalances also reports whether any node is beyond the threshold.
func redisBalances(owner []uint16, weights []float64, o RedisOptions) (nodes []redisNode, over bool) {
	owned := make([]int, len(weights))
	for _, w := range owner {
		owned[w]++
	}
	total := float32(0)
	for i, w := range weights {
		if owned[i] > 0 || o.UseEmpty {
			total += float32(w)
		}
	}
	for i, w := range weights {
		if owned[i] == 0 && !o.UseEmpty {
			continue
		}
		expected := 0
		if total > 0 {
			expected = int(float32(float32(topology.RedisSlots)/total) * float32(w))
		}
		nodes = append(nodes, redisNode{i, owned[i] - expected})
		if o.Threshold > 0 && redisOver(owned[i], expected, o.Threshold) {
			over = true
		}
	}
	return nodes, over
}

func redisOver(owned, expected int, threshold float64) bool {
	if owned == 0 {
		return expected > 1
	}
	return math.Abs(100-100*float64(expected)/float64(owned)) > threshold
}

// redisRound hands the slots that truncation left over to nodes that are not
// above their share, one each in turn.
func redisRound(nodes []redisNode) {
	sum := 0
	for _, n := range nodes {
		sum += n.balance
	}
	for took := true; took && sum > 0; {
		took = false
		for i := range nodes {
			if nodes[i].balance <= 0 && sum > 0 {
				nodes[i].balance--
				sum--
				took = true
			}
		}
	}
}

// redisMove gives the n lowest slots of one node to another.
func redisMove(owner []uint16, from, to uint16, n int) {
	for s := 0; s < len(owner) && n > 0; s++ {
		if owner[s] == from {
			owner[s] = to
			n--
		}
	}
}
