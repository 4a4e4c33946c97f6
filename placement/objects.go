package placement

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/slots"
	"github.com/shardd/shardd/topology"
)

// objects makes the tables of next, refilled or seeded from prev.
func objects(prev *Table, next *topology.Topology, replace map[string]string) ([]*topology.Object, error) {
	r := refill{prev: prev, next: next, replace: replace}
	r.ids, r.weights = owners(next.Spec(), next.Nodes())
	var o *topology.Object
	var err error
	switch next.Spec().Algorithm {
	case topology.Maglev:
		o, err = r.maglev()
	case topology.Slots:
		o, err = r.slots()
	case topology.Jump:
		o, err = r.jump()
	case topology.Compat:
		if next.Spec().Compat.Mode == topology.ModeRedisSlots {
			o, err = r.redisSlots()
		}
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

func (r *refill) slots() (*topology.Object, error) {
	spec := r.next.Spec()
	size, replicas := int(spec.SlotCount), int(spec.Replicas)
	var zones []uint16
	if spec.ZoneAware && replicas > 1 {
		zones = make([]uint16, len(r.ids))
		numberZones(spec, r.next.Nodes(), zones)
	}
	var prev slots.Rows
	if seed := r.seed(topology.KindSlots, replicas, size); seed != nil {
		prev = slices.Collect(slices.Chunk(seed, size))
	}
	rows, _, err := slots.Update(prev, r.ids, r.weights, zones, size, replicas)
	if err != nil {
		return nil, &topology.FieldError{Path: "slots.count", Err: err}
	}
	return newObject(topology.KindSlots, replicas, r.ids, slices.Concat(rows...))
}

// jump updates the bucket array. Nodes that are gone stay in it by name as the
// former holders of their holes, so that they get the same keys back.
func (r *refill) jump() (*topology.Object, error) {
	unit := r.next.Spec().JumpUnit
	var prev *topology.Object
	if r.prev != nil {
		prev = r.prev.topo.Object(topology.KindJump)
	}
	if prev == nil {
		b, err := jump.Build(r.ids, r.weights, unit)
		return jumpObject(r.ids, b, err)
	}
	ids, weights := r.withFormer(prev.Nodes())
	before := jump.Buckets{Owner: translated(prev, 0, indexIn(ids)), Last: translated(prev, 1, indexIn(ids))}
	for old, id := range r.replace {
		before = replaced(before, ids, old, id)
	}
	b, _, err := jump.Update(before, ids, weights, unit)
	return jumpObject(ids, b, err)
}

// withFormer adds the nodes of an earlier table, with weight 0, to the nodes
// there are now. Names beyond the limit of a table are forgotten.
func (r *refill) withFormer(names []string) (ids []string, weights []uint32) {
	weight := make(map[string]uint32, len(r.ids))
	for i, id := range r.ids {
		weight[id] = r.weights[i]
	}
	ids = slices.Clone(r.ids)
	for _, id := range names {
		if _, there := weight[id]; !there && len(ids) < topology.MaxNodes {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	weights = make([]uint32, len(ids))
	for i, id := range ids {
		weights[i] = weight[id]
	}
	return ids, weights
}

// translated returns row r of o with each node's name looked up in index.
func translated(o *topology.Object, row int, index func(id string) uint16) []uint16 {
	at := make([]uint16, len(o.Nodes()))
	for i, id := range o.Nodes() {
		at[i] = index(id)
	}
	entries := slices.Clone(o.Entries(row))
	for i, e := range entries {
		if e != topology.NoOwner {
			entries[i] = at[e]
		}
	}
	return entries
}

// indexIn returns the lookup of names in ids, which must be sorted.
func indexIn(ids []string) func(id string) uint16 {
	return func(id string) uint16 {
		if i, ok := slices.BinarySearch(ids, id); ok {
			return uint16(i)
		}
		return topology.NoOwner
	}
}

// replaced hands the buckets of one node to another. The new node's own former
// buckets are forgotten: it would take those first.
func replaced(b jump.Buckets, ids []string, old, by string) jump.Buckets {
	from, _ := slices.BinarySearch(ids, old)
	to, _ := slices.BinarySearch(ids, by)
	for i, o := range b.Last {
		if o == uint16(to) {
			b.Last[i] = topology.NoOwner
		}
	}
	return b.Replace(uint16(from), uint16(to))
}

// jumpObject packs an array of buckets, unless making it failed.
func jumpObject(ids []string, b jump.Buckets, err error) (*topology.Object, error) {
	if err != nil {
		return nil, &topology.FieldError{Path: "jump.unit", Err: err}
	}
	return newObject(topology.KindJump, 2, ids, slices.Concat(b.Owner, b.Last))
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
	if !r.prev.hash.SameHash(hashOf(r.next)) {
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
// indices into r.ids. Nodes that own nothing any more are left out.
func (r *refill) renumber(o *topology.Object, rows int) []uint16 {
	out := make([]uint16, 0, rows*o.Size())
	for row := range min(rows, o.Rows()) {
		out = append(out, translated(o, row, r.index)...)
	}
	missing := rows*o.Size() - len(out)
	return append(out, slices.Repeat([]uint16{topology.NoOwner}, missing)...)
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
