package placement

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

// hashOf returns the key hash of a valid topology.
func hashOf(t *topology.Topology) keyhash.Func {
	h, _ := newHash(t.Spec()) // a topology's key hash has been checked
	return h
}

// cut cuts the mapping before into slots, so that a table refilled from it moves
// little though the algorithm is another: row 0 gets the node that owns most of
// the slot, the rows after it those that hold most copies of it. It returns nil
// where the old mapping decides key by key, so that a slot's keys lie
// everywhere: jump and exact rendezvous under a 64-bit hash.
func (r *refill) cut(rows, size int) []uint16 {
	c := newCutter(r, rows, size)
	switch p := r.prev.pieces(); {
	case c.prev.hash.Few():
		c.values()
	case p != nil:
		merge(p, slotPieces(size), func(first, last uint64, _, slot int) {
			c.book(slot, last, width(first, last).float())
		})
	default:
		return nil
	}
	c.close()
	return c.out
}

// cutter adds up what each node holds of one slot after the other.
type cutter struct {
	prev   *Table
	rows   int
	size   int
	at     []uint16 // node index before -> after, NoOwner if it owns nothing
	slot   int
	owned  map[uint16]float64 // of the current slot
	held   map[uint16]float64
	out    []uint16
	list   []int
	copies int
}

func newCutter(r *refill, rows, size int) *cutter {
	c := &cutter{prev: r.prev, rows: rows, size: size, at: make([]uint16, r.prev.Len()),
		owned: map[uint16]float64{}, held: map[uint16]float64{}, copies: max(1, min(rows, r.prev.copies()))}
	for i, n := range r.prev.topo.Nodes() {
		c.at[i] = r.index(n.ID)
	}
	c.out = slices.Repeat([]uint16{topology.NoOwner}, rows*size)
	return c
}

// values books every value of a narrow hash, in slot order.
func (c *cutter) values() {
	for _, h := range slices.Sorted(c.prev.hash.Values()) {
		slot, _ := bits.Mul64(h, uint64(c.size))
		c.book(int(slot), h, 1)
	}
}

// book adds amount of keys like h to slot; slots come in ascending order.
func (c *cutter) book(slot int, h uint64, amount float64) {
	if slot != c.slot {
		c.close()
		c.slot = slot
	}
	c.list = c.prev.AppendReplicas(c.list[:0], h, c.copies)
	for k, x := range c.list {
		i := c.at[x]
		if i == topology.NoOwner {
			continue
		}
		if k == 0 {
			c.owned[i] += amount
		}
		c.held[i] += amount
	}
}

// close writes the current slot's nodes.
func (c *cutter) close() {
	first, any := largest(c.owned)
	if any {
		c.out[c.slot] = first
		delete(c.held, first)
	}
	for row := 1; row < c.rows; row++ {
		next, any := largest(c.held)
		if !any {
			break
		}
		c.out[row*c.size+c.slot] = next
		delete(c.held, next)
	}
	clear(c.owned)
	clear(c.held)
}

// largest returns the node with the largest amount, ties to the lower index.
func largest(amounts map[uint16]float64) (node uint16, any bool) {
	best := 0.0
	for n, amount := range amounts {
		if !any || cmp.Or(cmp.Compare(amount, best), cmp.Compare(node, n)) > 0 {
			node, best, any = n, amount, true
		}
	}
	return node, any
}
