package rendezvous

import (
	"fmt"
	"math/bits"
)

const (
	// DefaultSlots is the usual number of slots of a Table: 65,536, 128 KiB.
	DefaultSlots = 1 << 16
	// MaxSlots is the largest number of slots of a Table, 4,194,304.
	MaxSlots = 1 << 22
)

// nobody is the owner of a slot when there are no owners.
const nobody = 0xffff

// Table is rendezvous hashing for each of a number of slots: a key has the
// preference order of its slot. Make one with NewTable.
//
// The slot of h is the high word of h*slots, and slot s has the order that HRW
// has for the hash mix(s+1). Shares are counted in slots: among N nodes of equal
// weight their cv is about sqrt(N/slots).
type Table struct {
	hrw   *HRW
	owner []uint16
}

// NewTable returns the table with that many slots, 1 to MaxSlots, for the nodes
// ids with their weights, which are as for New. 65,536 slots take about 6 ms for
// 100 nodes and 60 ms for 1000: O(slots N).
func NewTable(ids []string, weights []uint32, slots int) (*Table, error) {
	if slots < 1 || slots > MaxSlots {
		return nil, fmt.Errorf("%w: %d slots, 1 to %d are possible and %d are usual", ErrInput, slots, MaxSlots, DefaultSlots)
	}
	hrw, err := New(ids, weights)
	if err != nil {
		return nil, err
	}
	t := &Table{hrw: hrw, owner: make([]uint16, slots)}
	for s := range t.owner {
		t.owner[s] = uint16(hrw.Locate(slotHash(uint64(s)))) // -1 is nobody
	}
	return t, nil
}

func slotHash(slot uint64) uint64 { return mix(slot + 1) }

// Len returns the number of nodes, those of weight 0 included: indices are
// 0 to Len-1.
func (t *Table) Len() int { return t.hrw.Len() }

// Owners returns the number of nodes of weight above 0. With few slots to a
// node some of them may own none.
func (t *Table) Owners() int { return t.hrw.Owners() }

// Slots returns the number of slots.
func (t *Table) Slots() int { return len(t.owner) }

// Slot returns the index of the node that owns slot s, 0 <= s < Slots, or -1.
func (t *Table) Slot(s int) int {
	if o := t.owner[s]; o != nobody {
		return int(o)
	}
	return -1
}

// Locate returns the index of the node that owns h, or -1 if nobody owns
// anything. It allocates nothing.
func (t *Table) Locate(h uint64) int {
	s, _ := bits.Mul64(h, uint64(len(t.owner)))
	if o := t.owner[s]; o != nobody {
		return int(o)
	}
	return -1
}

// AppendReplicas appends to dst the first n nodes of the preference order of
// the slot of h; the first is Locate(h). Otherwise it is as HRW.AppendReplicas,
// and takes as long: only the owners are in the table.
func (t *Table) AppendReplicas(dst []int, h uint64, n int) []int {
	s, _ := bits.Mul64(h, uint64(len(t.owner)))
	return t.hrw.AppendReplicas(dst, slotHash(s), n)
}

// First returns the first node of the preference order of h's slot for which ok,
// -1 if there is none; see HRW.First.
func (t *Table) First(h uint64, ok func(node int) bool) int {
	s, _ := bits.Mul64(h, uint64(len(t.owner)))
	return t.hrw.First(slotHash(s), ok)
}

// Update returns the table that NewTable(ids, weights, t.Slots()) returns, and t
// stays as it is. Only the slots of nodes that are gone or lighter are decided
// anew; for the others nodes that are new or heavier compete with the owner. One
// node of 1000 takes a few ms. The errors are those of New.
func (t *Table) Update(ids []string, weights []uint32) (*Table, error) {
	hrw, err := New(ids, weights)
	if err != nil {
		return nil, err
	}
	next := &Table{hrw: hrw, owner: make([]uint16, len(t.owner))}
	now, rivals := t.hrw.changes(hrw)
	for s, o := range t.owner {
		h := slotHash(uint64(s))
		if o == nobody || now[o] < 0 {
			next.owner[s] = uint16(hrw.Locate(h))
			continue
		}
		next.owner[s] = uint16(now[o])
		if rivals.owners == 0 {
			continue
		}
		if rival := rivals.best(h); rival.less(hrw.score(h, now[o])) {
			next.owner[s] = uint16(rival.index)
		}
	}
	return next, nil
}

// changes compares t with next. now translates the indices of t: -1 for a node
// that is gone or lighter. rivals has the nodes of next that are new or heavier,
// with next's indices.
func (t *HRW) changes(next *HRW) (now []int, rivals *HRW) {
	now = make([]int, len(t.ids))
	heavier := make([]uint32, len(next.ids))
	i := 0
	for j, id := range next.ids {
		for ; i < len(t.ids) && t.ids[i] < id; i++ {
			now[i] = -1
		}
		var old uint32
		if i < len(t.ids) && t.ids[i] == id {
			old = t.weights[i]
			now[i] = j
			if next.weights[j] < old {
				now[i] = -1
			}
			i++
		}
		if next.weights[j] > old {
			heavier[j] = next.weights[j]
		}
	}
	for ; i < len(t.ids); i++ {
		now[i] = -1
	}
	return now, build(next.ids, heavier)
}

// score returns the score of the node with that index.
func (t *HRW) score(h uint64, index int) score {
	x := draw(seed(t.ids[index]), h, multiplier(h), 0) >> 16
	return score{expo(x), uint64(t.weights[index]), index}
}
