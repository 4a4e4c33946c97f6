package wrr

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// maxTurns is how many turns a request with an exclude list may take before it
// draws at random instead.
const maxTurns = 8

// counter is a turn counter on a cache line of its own, shared by a picker and
// its successors.
type counter struct {
	_ [64]byte
	n atomic.Uint32
	_ [60]byte
}

func newCounter(start uint32) *counter {
	c := new(counter)
	c.n.Store(start)
	return c
}

// next returns the current value and moves on.
func (c *counter) next() uint32 { return c.n.Add(1) - 1 }

// turns picks by a source of turns, and draws at random by weight when the
// turns' nodes are excluded.
func turns(set *balance.Set, next func() int, now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if set.Live() == 0 {
		return balance.Ticket{}, set.None(exclude)
	}
	for range maxTurns {
		if i := next(); !slices.Contains(exclude, set.Node(i)) {
			return set.Take(i, now), nil
		}
	}
	dice := splitmix.Source(seed)
	i, err := set.Draw(&dice, exclude)
	if err != nil {
		return balance.Ticket{}, err
	}
	return set.Take(i, now), nil
}

// RoundRobin picks one node after the other, in the order of the set. Weights
// other than 0 do not matter. O(1).
//
// Clients that start at the same place move in step and hit the nodes one after
// the other together: give each its own start.
type RoundRobin struct {
	set  *balance.Set
	turn *counter
}

// NewRoundRobin returns a round robin over set. start is the first turn (modulo
// the number of nodes); use a random number, as grpc-go does, unless the order
// matters.
func NewRoundRobin(set *balance.Set, start uint32) *RoundRobin {
	return &RoundRobin{set: set.Observed(nil), turn: newCounter(start)}
}

func (r *RoundRobin) next() int {
	return r.set.LiveIndex(int(r.turn.next() % uint32(r.set.Live())))
}

// Pick returns the node whose turn it is.
func (r *RoundRobin) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if len(exclude) == 0 && r.set.Live() > 0 {
		return r.set.Take(r.next(), now), nil
	}
	return turns(r.set, r.next, now, seed, exclude)
}

// Next returns a round robin over set that goes on counting; it cannot fail.
func (r *RoundRobin) Next(set *balance.Set) (balance.Picker, error) {
	return &RoundRobin{set: set.Observed(nil), turn: r.turn}, nil
}

// Set returns the set the picker was made of.
func (r *RoundRobin) Set() *balance.Set { return r.set }
