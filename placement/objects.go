package placement

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/topology"
)

// objects makes the tables of next, refilled or seeded from prev.
func objects(prev *Table, next *topology.Topology, replace map[string]string) ([]*topology.Object, error) {
	r := refill{prev: prev, next: next, replace: replace}
	r.ids, r.weights = owners(next.Nodes())
	var o *topology.Object
	var err error
	switch next.Spec().Algorithm {
	case topology.Maglev:
		o, err = r.maglev()
	}
	if err != nil || o == nil {
		return nil, err
	}
	return []*topology.Object{o}, nil
}

// refill makes one table out of an earlier mapping.
type refill struct {
	prev    *Table // may be nil
	next    *topology.Topology
	replace map[string]string
	ids     []string
	weights []uint32
}

func (r *refill) maglev() (*topology.Object, error) {
	size := r.next.Spec().TableSize
	entries, err := r.maglevEntries(size)
	if err != nil {
		return nil, &topology.FieldError{Path: "maglev.table_size", Err: err}
	}
	return newObject(topology.KindMaglev, 1, r.ids, entries)
}

func (r *refill) maglevEntries(size uint32) ([]uint16, error) {
	prev := r.seed(topology.KindMaglev, 1, int(size))
	if prev == nil {
		return maglev.Build(r.ids, r.weights, size)
	}
	entries, _, err := maglev.Update(prev, r.ids, r.weights)
	return entries, err
}

// seed returns what is to be refilled as rows of size entries, indices into
// r.ids: the table before, if it has this kind and size, else the old mapping
// cut into slots; nil if there is nothing to keep.
func (r *refill) seed(k topology.Kind, rows, size int) []uint16 {
	if r.prev == nil || r.prev.owners == 0 {
		return nil
	}
	if o := r.prev.topo.Object(k); o != nil && o.Size() == size {
		return keptOrNil(r.renumber(o, rows))
	}
	if r.prev.hash.Kind() != hashOf(r.next).Kind() {
		return nil
	}
	return keptOrNil(r.cut(rows, size))
}

// keptOrNil returns entries, or nil if nobody owns any of them: then a fresh
// build is as good and quicker.
func keptOrNil(entries []uint16) []uint16 {
	if slices.ContainsFunc(entries, func(e uint16) bool { return e != topology.NoOwner }) {
		return entries
	}
	return nil
}

// renumber returns the first rows of o, NoOwner filled in for further ones, as
// indices into r.ids. Nodes that are not there any more own nothing.
func (r *refill) renumber(o *topology.Object, rows int) []uint16 {
	at := make([]uint16, len(o.Nodes()))
	for i, id := range o.Nodes() {
		at[i] = r.index(id)
	}
	out := make([]uint16, 0, rows*o.Size())
	for row := range rows {
		if row >= o.Rows() {
			out = append(out, slices.Repeat([]uint16{topology.NoOwner}, o.Size())...)
			continue
		}
		for _, e := range o.Entries(row) {
			if e != topology.NoOwner {
				e = at[e]
			}
			out = append(out, e)
		}
	}
	return out
}

// index returns the position of the node that has id's entries now: its own or
// that of its replacement.
func (r *refill) index(id string) uint16 {
	if by, ok := r.replace[id]; ok {
		id = by
	}
	if i, ok := slices.BinarySearch(r.ids, id); ok && r.weights[i] > 0 {
		return uint16(i)
	}
	return topology.NoOwner
}

// newObject makes an object of entries that index ids, naming only those of
// ids that own an entry.
func newObject(k topology.Kind, rows int, ids []string, entries []uint16) (*topology.Object, error) {
	used := make([]bool, len(ids))
	for _, e := range entries {
		if e != topology.NoOwner {
			used[e] = true
		}
	}
	at := make([]uint16, len(ids))
	var names []string
	for i, id := range ids {
		if used[i] {
			at[i] = uint16(len(names))
			names = append(names, id)
		}
	}
	packed := make([]uint16, len(entries))
	for i, e := range entries {
		packed[i] = topology.NoOwner
		if e != topology.NoOwner {
			packed[i] = at[e]
		}
	}
	o, err := topology.NewObject(k, rows, names, packed)
	if err != nil {
		return nil, fmt.Errorf("placement: %s table: %w", k, err)
	}
	return o, nil
}
