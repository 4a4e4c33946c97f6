package placement

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/slots"
	"github.com/shardd/shardd/topology"
)

// build makes the table of t without looking at its mapping digest.
func build(prev *Table, t *topology.Topology) (*Table, error) {
	if t.Transition() != nil {
		return buildSteps(prev, t)
	}
	if prev != nil && prev.kind == kindSteps {
		prev = prev.steps.after
	}
	return buildPlain(prev, t)
}

// buildPlain is build for a topology as if it had no transition.
func buildPlain(prev *Table, t *topology.Topology) (*Table, error) {
	spec := t.Spec()
	hash, err := newHash(spec)
	if err != nil {
		return nil, err
	}
	table := &Table{topo: t, hash: hash, plain: hash.Plain(), replicas: int(spec.Replicas), past: new(past)}
	for _, n := range t.Nodes() {
		if spec.OwnerWeight(n) > 0 {
			table.owners++
		}
	}
	b := builder{topo: t, prev: prev}
	if err := b.engine(&table.engine); err != nil {
		return nil, err
	}
	if spec.Algorithm == topology.Compat {
		table.countOwners()
	}
	if table.owners > 0 && table.locate(0) < 0 {
		return nil, fmt.Errorf("%w: nobody owns an entry, though %d nodes have weight", ErrTable, table.owners)
	}
	table.setZones()
	table.markDowns()
	table.digest = table.mappingDigest()
	return table, nil
}

func newHash(spec topology.Spec) (keyhash.Func, error) {
	if spec.Algorithm == topology.Compat {
		return compat.KeyHash(spec.Compat)
	}
	kind, err := keyhash.ParseKind(string(spec.KeyHash))
	if err != nil {
		return keyhash.Func{}, fmt.Errorf("key_hash: %w", err)
	}
	return keyhash.New(kind, spec.HashTag)
}

// setZones settles the zone rule. Slots carry it in their rows.
func (t *Table) setZones() {
	if !t.topo.Spec().ZoneAware || t.replicas < 2 {
		return
	}
	z := newZoning(t.topo.Spec(), t.topo.Nodes(), t.replicas)
	t.relaxed = z.zones < t.copies()
	if t.kind != kindSlots || t.compat() {
		t.zoned, t.zoning = true, z
	}
}

// builder makes the engine of one topology.
type builder struct {
	topo *topology.Topology
	prev *Table // may be nil
}

func (b *builder) engine(e *engine) (err error) {
	spec := b.topo.Spec()
	ids, weights := owners(spec, b.topo.Nodes())
	switch spec.Algorithm {
	case topology.Compat:
		return b.foreign(e, spec)
	case topology.Ring:
		e.kind = kindRing
		if p := b.prev; p != nil && p.kind == kindRing && p.ring.Vnodes() == spec.VNodes {
			e.ring, err = p.ring.Update(ids, weights)
		} else {
			e.ring, err = ring.New(ids, weights, spec.VNodes)
		}
	case topology.Maglev:
		e.kind = kindMaglev
		e.maglev, err = b.maglev(spec)
	case topology.Jump:
		e.kind = kindJump
		e.jump, err = b.jump(spec)
	case topology.Rendezvous:
		if spec.RendezvousTable == 0 {
			e.kind = kindHRW
			e.hrw, err = rendezvous.New(ids, weights)
			return err
		}
		e.kind = kindHRWTable
		if p := b.prev; p != nil && p.kind == kindHRWTable && p.hrwTable.Slots() == int(spec.RendezvousTable) {
			e.hrwTable, err = p.hrwTable.Update(ids, weights)
		} else {
			e.hrwTable, err = rendezvous.NewTable(ids, weights, int(spec.RendezvousTable))
		}
	default:
		e.kind = kindSlots
		e.slots, err = b.slots(spec)
	}
	return err
}

// owners returns the ids and owner weights of nodes.
func owners(spec topology.Spec, nodes []topology.Node) (ids []string, weights []uint32) {
	ids, weights = make([]string, len(nodes)), make([]uint32, len(nodes))
	for i, n := range nodes {
		ids[i], weights[i] = n.ID, spec.OwnerWeight(n)
	}
	return ids, weights
}

func (b *builder) maglev(spec topology.Spec) (*maglev.Table, error) {
	o, err := b.object(topology.KindMaglev, 1, spec.TableSize)
	if err != nil {
		return nil, err
	}
	entries, err := b.entries(o, 0)
	if err != nil {
		return nil, err
	}
	table, err := maglev.New(b.topo.Len(), entries)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	return table, nil
}

func (b *builder) jump(spec topology.Spec) (*jump.Table, error) {
	o, err := b.object(topology.KindJump, 2, 0)
	if err != nil {
		return nil, err
	}
	owner, err := b.entries(o, 0)
	if err != nil {
		return nil, err
	}
	variant := jump.Classic
	if spec.JumpVariant == topology.JumpBack {
		variant = jump.Back
	}
	nobody := slices.Repeat([]uint16{topology.NoOwner}, len(owner)) // former holders own nothing
	return jump.New(b.topo.Len(), jump.Buckets{Owner: owner, Last: nobody}, variant)
}

func (b *builder) slots(spec topology.Spec) (*slots.Table, error) {
	o, err := b.object(topology.KindSlots, int(spec.Replicas), spec.SlotCount)
	if err != nil {
		return nil, err
	}
	rows := make(slots.Rows, o.Rows())
	for r := range rows {
		if rows[r], err = b.entries(o, r); err != nil {
			return nil, err
		}
	}
	table, err := slots.New(b.topo.Len(), rows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	return table, nil
}

// object returns the topology's table of this kind, checked for its shape. size
// 0 stands for any.
func (b *builder) object(k topology.Kind, rows int, size uint32) (*topology.Object, error) {
	o := b.topo.Object(k)
	switch {
	case o == nil:
		return nil, fmt.Errorf("%w: no %s table", ErrTable, k)
	case o.Rows() != rows || size != 0 && o.Size() != int(size):
		return nil, fmt.Errorf("%w: the %s table has %d rows of %d entries, the spec asks for %d of %d", ErrTable, k, o.Rows(), o.Size(), rows, size)
	}
	return o, nil
}

// entries returns row r of o as node indices. Whoever owns an entry must own
// keys by its weight and state.
func (b *builder) entries(o *topology.Object, r int) ([]uint16, error) {
	row := translated(o, r, b.owner)
	for i, e := range o.Entries(r) {
		if e != topology.NoOwner && row[i] == topology.NoOwner {
			return nil, fmt.Errorf("%w: entry %d of the %s table belongs to node %q, which owns nothing in this version", ErrTable, i, o.Kind(), o.Nodes()[e])
		}
	}
	return row, nil
}

// owner returns the index of a node if it owns keys, else NoOwner.
func (b *builder) owner(id string) uint16 {
	if i := b.topo.Index(id); i >= 0 && b.topo.Spec().OwnerWeight(b.topo.Node(i)) > 0 {
		return uint16(i)
	}
	return topology.NoOwner
}
