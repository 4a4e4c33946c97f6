package placement

import (
	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/topology"
)

// Shares returns each node's share of the key space as its owner, 0..1, parallel
// to the topology's nodes: exact for ring, maglev, slots and a rendezvous table,
// and for any algorithm under crc16 (all 65,536 hashes are looked at); under jump
// and exact rendezvous it is the law that the hash follows. O(points + entries),
// 65,536 lookups under crc16.
func (t *Table) Shares() []float64 {
	one := *t
	one.replicas = 1
	return one.heldShares()
}

// heldShares returns the copies of a key that each node holds on average:
// exact if the table is countable, else estimated by a sample.
func (t *Table) heldShares() []float64 {
	if t.kind == kindSteps {
		return t.steps.shares(t.replicas)
	}
	held := make([]units, t.Len())
	if t.owners == 0 {
		return make([]float64, len(held))
	}
	identity := make([]int, t.Len())
	for i := range identity {
		identity[i] = i
	}
	l := newLister(t, identity)
	book := func(amount units, list []int) {
		for _, x := range list {
			held[x].add(amount)
		}
	}
	total := 0.0
	switch p := t.pieces(); {
	case t.hash.Few():
		for h := range t.hash.Values() {
			book(units{lo: 1}, l.list(h))
			total++
		}
	case p != nil:
		walk(p, func(first, last uint64, i int) { book(width(first, last), l.piece(i, last)) })
		total = 1 << 64
	case t.kind == kindModulo:
		for i := range t.foreign.Modulo.Size() {
			book(units{lo: 1}, l.list(t.foreign.Modulo.Hash(i)))
			total++
		}
	case t.copies() == 1 && !t.lawless():
		return t.lawShares()
	default:
		draw := splitmix.Source(sampleSeed)
		for range minSample { // a keyed mapping takes the hash for a text
			book(units{lo: 1}, l.list(draw.Next()))
		}
		total = minSample
	}
	return scaled(floats(held), 1/total)
}

// lawShares is the share that the hash's law gives each node: of the buckets
// under jump, of the weights under rendezvous.
func (t *Table) lawShares() []float64 {
	if t.compat() {
		return t.foreignShares()
	}
	if t.kind == kindJump {
		share, _ := bucketShares(t.bucketOwners(), t.Len())
		return share
	}
	share := make([]float64, t.Len())
	_, weights := owners(t.topo.Spec(), t.topo.Nodes())
	for i, w := range weights {
		share[i] = float64(w)
	}
	return scaled(share, 1/sum(share))
}

// Peak returns the largest ratio of a node's share to the share that its weight
// asks for: 1 is perfect balance, 0 means that no node owns anything. It costs
// what Shares does.
func (t *Table) Peak() float64 {
	_, weights := owners(t.topo.Spec(), t.topo.Nodes())
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	peak := 0.0
	for i, share := range t.Shares() {
		if weights[i] > 0 {
			peak = max(peak, share*total/float64(weights[i]))
		}
	}
	return peak
}

// copyShares returns heldShares by roster index.
func (c *comparison) copyShares(t *Table, at []int) []float64 {
	out := make([]float64, len(c.roster.ids))
	for i, x := range t.heldShares() {
		out[at[i]] = x
	}
	return out
}

// ownersIn returns the owner of every entry of a row of the table's object as
// a node index, -1 for nobody.
func (t *Table) ownersIn(o *topology.Object, row int) []int {
	list := make([]int, o.Size())
	index := func(id string) uint16 { return uint16(t.topo.Index(id)) } // -1 is NoOwner
	for i, e := range translated(o, row, index) {
		list[i] = -1
		if e != topology.NoOwner {
			list[i] = int(e)
		}
	}
	return list
}

// bucketOwners returns the owner of every bucket under Jump, -1 for a hole.
func (t *Table) bucketOwners() []int {
	if t.kind != kindList {
		return t.ownersIn(t.topo.Object(topology.KindJump), 0)
	}
	list := make([]int, len(t.foreign.Jump.Buckets()))
	for b, o := range t.foreign.Jump.Buckets() {
		list[b] = int(o)
	}
	return list
}

// buckets returns the owner of every jump bucket as a roster index, -1 for a hole.
func (t *Table) buckets(at []int) []int {
	owners := t.bucketOwners()
	for b, o := range owners {
		if o >= 0 {
			owners[b] = at[o]
		}
	}
	return owners
}
