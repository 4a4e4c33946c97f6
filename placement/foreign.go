package placement

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/slots"
	"github.com/shardd/shardd/topology"
)

// foreignEngines name the engines of foreign mappings in the mapping digest.
var foreignEngines = map[kind]string{kindRing: "ring", kindSlots: "slots", kindModulo: "modulo", kindList: "jump", kindScore: "score", kindKeyed: "keyed"}

// compat reports whether the mapping is a foreign one.
func (t *Table) compat() bool { return t.topo.Spec().Algorithm == topology.Compat }

// PlanOnly reports whether the mapping is for planning: Update and Movement take
// it, but it is not published, and clients do not route by it.
func (t *Table) PlanOnly() bool {
	return t.compat() && (!t.topo.Spec().Compat.Live() || t.kind == kindKeyed)
}

// foreign builds the engine of a foreign mapping.
func (b *builder) foreign(e *engine, spec topology.Spec) (err error) {
	if spec.Compat.Mode == topology.ModeRedisSlots {
		e.kind = kindSlots
		e.slots, err = b.redisTable()
		return err
	}
	m, err := compat.New(spec.Compat, b.topo.Nodes())
	if err != nil {
		return &topology.FieldError{Path: "compat", Err: err}
	}
	e.foreign = m
	switch {
	case m.Ring != nil:
		e.kind, e.ring, e.foreign = kindRing, m.Ring, nil
	case m.Modulo != nil:
		e.kind = kindModulo
	case m.Jump != nil:
		e.kind = kindList
	case m.Score != nil:
		e.kind = kindScore
	default:
		e.kind = kindKeyed
	}
	return nil
}

func (b *builder) redisTable() (*slots.Table, error) {
	o, err := b.object(topology.KindSlots, 1, topology.RedisSlots)
	if err != nil {
		return nil, err
	}
	row, err := b.entries(o, 0)
	if err != nil {
		return nil, err
	}
	table, err := slots.New(b.topo.Len(), slots.Rows{row})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	return table, nil
}

// countOwners sets the number of nodes that own something: under a foreign
// mapping a small weight may come to no point at all.
func (t *Table) countOwners() {
	switch t.kind {
	case kindRing:
		t.owners = t.ring.Owners()
	case kindModulo:
		t.owners = t.foreign.Modulo.Owners()
	case kindSlots:
		t.owners = len(t.slots.AppendReplicas(nil, 0, t.owners))
	}
}

// PlaceNodes returns nodes as the version after prev (nil for none) stores them
// under spec, in the order given. Under a foreign mapping a node that states no
// position keeps the one it has in prev; a new one comes behind all others, by
// id. Under a native algorithm there are neither positions nor slots.
func PlaceNodes(prev *topology.Topology, spec topology.Spec, nodes []topology.Node) []topology.Node {
	out, at := slices.Clone(nodes), make(map[string]int, len(nodes))
	taken := make(map[uint32]bool, len(nodes))
	foreign := spec.Normal().Algorithm == topology.Compat
	for i, n := range nodes {
		at[n.ID], taken[n.Position] = i, true
		if !foreign {
			out[i].Position, out[i].Slots = 0, ""
		}
	}
	if !foreign {
		return out
	}
	if prev != nil && prev.Spec().Algorithm == topology.Compat {
		for i, n := range nodes {
			if was := prev.Index(n.ID); n.Position == 0 && was >= 0 && !taken[prev.Node(was).Position] {
				out[i].Position = prev.Node(was).Position
			}
		}
	}
	for _, n := range topology.InOrder(out) {
		out[at[n.ID]].Position = n.Position
	}
	return out
}

// redisSlots makes the table of a Redis Cluster. The nodes' own slots count where
// they are new: in a first version, after another mapping, or if some node's
// differ from those in the version before. Otherwise redis-cli's planner makes it
// of the table before, if that has Redis' slots; else its layout of a new cluster.
func (r *refill) redisSlots() (*topology.Object, error) {
	owner, given, err := topology.SlotLayout(r.next.Nodes())
	if err != nil {
		return nil, err
	}
	before := r.redisBefore()
	switch {
	case given && (before == nil || r.newLayout()):
		if err := r.checkLayout(owner); err != nil {
			return nil, err
		}
	case before != nil:
		owner = r.rebalanced(before)
	default:
		owner = r.createdSlots()
	}
	return newObject(topology.KindSlots, 1, r.ids, owner)
}

// redisBefore returns the table before, if it has the slots of Redis and an
// owner for each; else nil.
func (r *refill) redisBefore() *topology.Object {
	if r.prev == nil {
		return nil
	}
	o := r.prev.topo.Object(topology.KindSlots)
	if o == nil || o.Size() != topology.RedisSlots || r.prev.hash != hashOf(r.next) || slices.Contains(o.Entries(0), topology.NoOwner) {
		return nil
	}
	return o
}

// newLayout reports whether some node names other slots than in the version
// before.
func (r *refill) newLayout() bool {
	for _, n := range r.next.Nodes() {
		at := r.prev.topo.Index(n.ID)
		if n.Slots != "" && (at < 0 || r.prev.topo.Node(at).Slots != n.Slots) {
			return true
		}
	}
	return false
}

func (r *refill) checkLayout(owner []uint16) error {
	for s, o := range owner {
		if o == topology.NoOwner {
			return &topology.FieldError{Path: "nodes", Err: fmt.Errorf("slot %d belongs to no node; name all %d slots, or none", s, topology.RedisSlots)}
		}
		if r.weights[o] == 0 {
			n := r.next.Node(int(o))
			return &topology.FieldError{Path: "nodes", Err: fmt.Errorf("slot %d belongs to node %q, which owns nothing (weight %d, %s); give it a weight, or the slot to another", s, n.ID, n.Weight, n.State)}
		}
	}
	return nil
}

// inListOrder returns the indices of the nodes that own keys in the order of
// the foreign list.
func (r *refill) inListOrder() []uint16 {
	var order []uint16
	for _, n := range topology.InOrder(r.next.Nodes()) {
		if i := r.next.Index(n.ID); r.weights[i] > 0 {
			order = append(order, uint16(i))
		}
	}
	return order
}

func (r *refill) createdSlots() []uint16 {
	order := r.inListOrder()
	owner := compat.RedisCreate(len(order))
	if owner == nil {
		return slices.Repeat([]uint16{topology.NoOwner}, topology.RedisSlots)
	}
	for s, o := range owner {
		owner[s] = order[o]
	}
	return owner
}

// rebalanced lets redis-cli's planner act on the table before: nodes that own
// keys now in the order of the list, then those that give theirs up, with weight
// 0. A node that is replaced hands its slots over first.
func (r *refill) rebalanced(before *topology.Object) []uint16 {
	order := r.inListOrder()
	if len(order) == 0 {
		return r.createdSlots()
	}
	at, weights := make(map[string]uint16), make([]float64, len(order))
	for i, x := range order {
		at[r.ids[x]], weights[i] = uint16(i), float64(r.weights[x])
	}
	owner := translated(before, 0, func(id string) uint16 {
		if by, ok := r.replace[id]; ok {
			id = by
		}
		i, ok := at[id]
		if !ok {
			i = uint16(len(weights))
			at[id], weights = i, append(weights, 0)
		}
		return i
	})
	next, _ := compat.RedisRebalance(owner, weights, compat.RedisOptions{Threshold: float64(r.next.Spec().Compat.Threshold), UseEmpty: true})
	for s, o := range next {
		next[s] = order[o]
	}
	return next
}

// foreignShares are the shares of a law: equal or by weight.
func (t *Table) foreignShares() []float64 {
	if t.kind == kindList {
		share, _ := bucketShares(t.bucketOwners(), t.Len())
		return share
	}
	share := make([]float64, t.Len())
	t.foreign.Score.Each(func(node int, _ string, weight float64) { share[node] = weight })
	return scaled(share, 1/sum(share))
}

// moduloOwners returns the owner of each entry of a modulo table as a roster
// index.
func (t *Table) moduloOwners(at []int) []int {
	list := make([]int, t.foreign.Modulo.Size())
	for i := range list {
		list[i] = at[t.foreign.Modulo.Entry(i)]
	}
	return list
}

// sameTexts reports whether the nodes of both topologies are hashed by the same
// texts: a node under another name is another node to a score.
func sameTexts(from, to *topology.Topology) bool {
	a, b := from.Spec(), to.Spec()
	for _, n := range to.Nodes() {
		if i := from.Index(n.ID); i >= 0 && a.OwnerWeight(from.Node(i)) > 0 && b.OwnerWeight(n) > 0 && a.Compat.HashedText(from.Node(i)) != b.Compat.HashedText(n) {
			return false
		}
	}
	return true
}

// digestForeign writes what the engines read that only foreign mappings have.
func (t *Table) digestForeign(w *digestWriter) {
	each := func(node int, name string, weight float64) {
		w.owner(node)
		w.text(name)
		w.u64(uint64(weight)) // whole numbers up to topology.MaxWeight
	}
	switch t.kind {
	case kindModulo:
		w.u32(uint32(t.foreign.Modulo.Size()))
		for i := range t.foreign.Modulo.Size() {
			w.owner(t.foreign.Modulo.Entry(i))
		}
	case kindList:
		list := t.foreign.Jump.Buckets()
		w.u32(uint32(len(list)))
		for _, o := range list {
			w.owner(int(o))
		}
	case kindScore:
		w.text(t.foreign.Score.Rule())
		t.foreign.Score.Each(each)
		t.probe(w)
	case kindKeyed:
		w.text(t.foreign.Keyed.Rule())
		t.foreign.Keyed.Each(each)
		t.probe(w)
	}
}

// describeForeign names a foreign mapping for messages.
func describeForeign(f topology.Foreign) string {
	text := string(f.Mode)
	if f.Distribution != "" {
		text += " " + f.Distribution
	}
	if f.Hash != "" {
		text += ", " + f.Hash
	}
	return text
}

// keepPositions is PlaceNodes for a draft.
func keepPositions(prev *topology.Topology, d topology.Draft) []topology.Node {
	return PlaceNodes(prev, d.Spec, d.Nodes)
}

// inheritPlaces gives nodes that replace others the places of those, if these are
// gone and no position is stated: under mappings that count places off, or hash
// them, only the replaced node's keys move then.
func inheritPlaces(prev *topology.Topology, nodes []topology.Node, replace map[string]string) []topology.Node {
	if len(replace) == 0 || prev == nil {
		return nodes
	}
	nodes = slices.Clone(nodes)
	at := make(map[string]int, len(nodes))
	taken := make(map[uint32]bool, len(nodes))
	for i, n := range nodes {
		at[n.ID], taken[n.Position] = i, true
	}
	for old, id := range replace {
		i, there := at[id]
		_, stays := at[old]
		if was := prev.Index(old); there && !stays && was >= 0 && nodes[i].Position == 0 && !taken[prev.Node(was).Position] {
			nodes[i].Position = prev.Node(was).Position
		}
	}
	return nodes
}
