package placement

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/shardd/shardd/topology"
)

// record fills in since when nodes own what they own in the version d, whose
// tables are there, after prev (plain; nil for the first): what changes owners has
// its new one since v. Where nothing is known of what was before (no record, a
// new epoch, another mapping) all begins at v.
func record(prev *Table, d *topology.Draft, v topology.Version) error {
	d.Tenure = nextTenure(prev, d, v)
	d.Objects = slices.DeleteFunc(slices.Clone(d.Objects), func(o *topology.Object) bool { return o.Kind() == topology.KindSince })
	for _, o := range d.Objects {
		if o.Kind() != topology.KindMaglev && o.Kind() != topology.KindSlots {
			continue
		}
		since, err := topology.NewSince(o.Rows(), nextSince(prev, d, o, v))
		if err != nil {
			return err
		}
		d.Objects = append(d.Objects, since)
		break
	}
	return nil
}

// Record fills in the record of a draft whose tables are chosen otherwise than by
// Update, as those of an earlier version that are put in force again: Tenure, and
// the object beside the tables. prev is the version before.
func Record(prev *Table, d *topology.Draft) error {
	if prev != nil && prev.kind == kindSteps {
		prev = prev.steps.after
	}
	if slices.ContainsFunc(d.Objects, func(o *topology.Object) bool { return o.Kind() == topology.KindJump }) {
		prev = nil // nodes' changes of weight, which are all there is under jump, do not tell what such tables move
	}
	return record(prev, d, d.Version)
}

// continues reports whether the record of prev goes on in d.
func continues(prev *Table, d *topology.Draft) bool {
	return prev != nil && prev.topo.Tenure() != nil && prev.topo.Version().Epoch == d.Version.Epoch && prev.topo.Tenure().Floor.Epoch == d.Version.Epoch &&
		!remapping(prev.topo.Spec(), d.Spec.Normal())
}

func nextTenure(prev *Table, d *topology.Draft, v topology.Version) *topology.Tenure {
	if !continues(prev, d) {
		return &topology.Tenure{Floor: v}
	}
	spec := d.Spec.Normal()
	next := &topology.Tenure{Floor: prev.topo.Tenure().Floor}
	known := map[string]topology.NodeTenure{}
	for _, n := range prev.topo.Tenure().Nodes {
		known[n.ID] = n
	}
	change := func(id string, before, after uint32) {
		if before == after {
			return
		}
		n := known[id]
		n.ID, n.Peak = id, max(n.Peak, before, after)
		if after > before {
			n.Gained = v
		} else {
			n.Lost = v
		}
		known[id] = n
	}
	gone := map[string]uint32{}
	for _, n := range prev.topo.Nodes() {
		gone[n.ID] = spec.OwnerWeight(n)
	}
	for _, n := range d.Nodes {
		change(n.ID, gone[n.ID], spec.OwnerWeight(n))
		delete(gone, n.ID)
	}
	for id, w := range gone {
		change(id, w, 0)
	}
	for _, n := range known {
		next.Nodes = append(next.Nodes, n)
	}
	forget(next)
	return next
}

// forget drops the older half of the changes when they are over the limit, and
// lets the record reach back to the last of those only. Each time it does, what has
// been so since the floor begins anew, which must not be at every change.
func forget(r *topology.Tenure) {
	latest := func(n topology.NodeTenure) topology.Version {
		if n.Lost.Compare(n.Gained) > 0 {
			return n.Lost
		}
		return n.Gained
	}
	slices.SortFunc(r.Nodes, func(a, b topology.NodeTenure) int {
		return cmp.Or(latest(b).Compare(latest(a)), strings.Compare(a.ID, b.ID))
	})
	if len(r.Nodes) > topology.MaxTenures {
		r.Floor = latest(r.Nodes[topology.MaxTenures/2])
		r.Nodes = r.Nodes[:topology.MaxTenures/2]
	}
	slices.SortFunc(r.Nodes, func(a, b topology.NodeTenure) int { return strings.Compare(a.ID, b.ID) })
}

// nextSince lists since when the owners of the entries of o have had them.
func nextSince(prev *Table, d *topology.Draft, o *topology.Object, v topology.Version) []topology.Version {
	rows, size := o.Rows(), o.Size()
	list := make([]topology.Version, rows*size)
	var before *topology.Object
	var was []topology.Version
	if continues(prev, d) {
		before = prev.topo.Object(o.Kind())
		if since := prev.topo.Object(topology.KindSince); before != nil && since != nil && before.Size() == size && since.Size() == size && since.Rows() == before.Rows() {
			was, _ = since.Since()
		}
	}
	held := func(id string, s int) (topology.Version, bool) {
		if was == nil {
			return v, false
		}
		for row := range before.Rows() {
			if e := before.Entries(row)[s]; e != topology.NoOwner && before.Nodes()[e] == id {
				return was[row*size+s], true
			}
		}
		return v, false
	}
	for row := range rows {
		for s, e := range o.Entries(row) {
			if e != topology.NoOwner {
				list[row*size+s], _ = held(o.Nodes()[e], s)
			}
		}
	}
	merge := mergeBelow(list)
	for i := range list {
		if !list[i].IsZero() {
			list[i] = later(list[i], merge)
		}
	}
	return list
}

// maxSince is the largest number of versions that a table of versions names, so
// that an entry takes a byte at most.
const maxSince = 255

// mergeBelow returns the version that stands for the older half of the versions in
// list where they are over the limit, else zero.
func mergeBelow(list []topology.Version) topology.Version {
	seen := map[topology.Version]bool{}
	for _, v := range list {
		seen[v] = !v.IsZero()
	}
	if len(seen) <= maxSince {
		return topology.Version{}
	}
	all := slices.SortedFunc(maps.Keys(seen), topology.Version.Compare)
	return all[len(all)/2]
}

// Renew lets the record of a draft begin at its version: for a version whose past
// cannot be trusted, such as the first of an epoch that a store which went back
// begins. A draft without a record stays without.
func Renew(d *topology.Draft) error {
	if d.Tenure == nil {
		return nil
	}
	if err := record(nil, d, d.Version); err != nil {
		return err
	}
	x := d.Transition
	if x == nil || x.Tenure == nil {
		return nil
	}
	before := topology.Draft{Version: d.Version, Spec: d.Spec, Objects: x.Tables}
	if err := record(nil, &before, d.Version); err != nil {
		return err
	}
	x.Tables, x.Tenure, x.Up, x.Back = before.Objects, before.Tenure, d.Version, topology.Version{}
	return nil
}

// past is what OwnedSince looks at, made when it is first asked.
type past struct {
	once     sync.Once
	table    *Table             // of all nodes since the floor, by their largest weights; nil if it is not needed
	lost     []topology.Version // by its indices
	any      topology.Version   // the last loss of any node
	versions []topology.Version // of a since table's list
	since    *topology.Object
}

// OwnedSince returns the version since which node i has held the keys of hash h
// without a gap, as far as that is recorded: what the node stored for such a key
// under an earlier tenure may have been overwritten elsewhere since. Where it is not
// known exactly the version is a later one, never an earlier: the last loss of any
// node under jump, for replicas under the zone rule, and for a node that shrank;
// the node's own last gain under ring, jump and rendezvous; the version of the topology
// without a record. A node that does not hold the key has the zero version.
//
// The first call on a table makes an index, which costs what building a table does.
func (t *Table) OwnedSince(h uint64, i int) topology.Version {
	if t.kind == kindSteps {
		return t.steps.ownedSince(h, i)
	}
	if !t.holds(h, i) {
		return topology.Version{}
	}
	r := t.topo.Tenure()
	if r == nil || t.compat() {
		return t.topo.Version()
	}
	p := t.past
	p.once.Do(func() { p.make(t, r) })
	if p.since != nil {
		return p.ofEntry(t, h, i)
	}
	return p.ofNode(t, r, h, i)
}

// holds reports whether node i is among those that hold the keys of hash h.
func (t *Table) holds(h uint64, i int) bool {
	if t.replicas <= 1 {
		return t.locate(h) == i
	}
	var room [4 * topology.MaxReplicas]int
	return slices.Contains(t.AppendReplicas(room[:0], h, t.replicas), i)
}

func (p *past) make(t *Table, r *topology.Tenure) {
	for _, n := range r.Nodes {
		p.any = later(p.any, n.Lost)
	}
	switch t.kind {
	case kindMaglev, kindSlots:
		if o := t.topo.Object(topology.KindSince); o != nil && o.Size() == t.slotCount() {
			p.since = o
			for _, text := range o.Nodes() {
				v, err := topology.ParseVersion(text)
				if err != nil {
					v = t.topo.Version()
				}
				p.versions = append(p.versions, v)
			}
		}
	case kindRing, kindHRW, kindHRWTable:
		p.makeTable(t, r)
	}
}

// makeTable builds the mapping in which every node that was there since the floor
// stands with its largest weight: who comes before the owner there had the key once.
func (p *past) makeTable(t *Table, r *topology.Tenure) {
	d := t.topo.Draft()
	d.Objects, d.Transition, d.Mapping, d.Tenure = nil, nil, topology.Digest{}, nil
	d.Spec.ZoneAware = false
	peak := map[string]uint32{}
	for _, n := range r.Nodes {
		peak[n.ID] = n.Peak
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if w := max(peak[n.ID], n.OwnerWeight()); w > 0 {
			n.Weight, n.State = w, topology.StateActive
		}
		delete(peak, n.ID)
	}
	for id, w := range peak {
		d.Nodes = append(d.Nodes, topology.Node{ID: id, Weight: w})
	}
	topo, err := topology.New(d)
	if err != nil {
		return // too many points, say: any stands in
	}
	if p.table, err = buildPlain(t, topo); err != nil {
		p.table = nil
		return
	}
	p.lost = make([]topology.Version, topo.Len())
	for i, n := range topo.Nodes() {
		p.lost[i] = r.Node(n.ID).Lost
	}
}

// ofEntry looks a table's entry up. A maglev replica beside the owner is found by
// walking entries: for it the newest version of all stands.
func (p *past) ofEntry(t *Table, h uint64, i int) topology.Version {
	slot, _ := bits.Mul64(h, uint64(p.since.Size()))
	if t.kind == kindMaglev && t.locate(h) != i {
		var newest topology.Version
		for _, v := range p.versions {
			newest = later(newest, v)
		}
		return newest
	}
	id := t.topo.Node(i).ID
	owners := t.topo.Object(topology.KindMaglev)
	if t.kind == kindSlots {
		owners = t.topo.Object(topology.KindSlots)
	}
	for row := range owners.Rows() {
		e, s := owners.Entries(row)[slot], p.since.Entries(min(row, p.since.Rows()-1))[slot]
		if e != topology.NoOwner && s != topology.NoOwner && owners.Nodes()[e] == id {
			return p.versions[s]
		}
	}
	return t.topo.Version()
}

// ofNode is for mappings that follow from the nodes alone.
func (p *past) ofNode(t *Table, r *topology.Tenure, h uint64, i int) topology.Version {
	n := r.Node(t.topo.Node(i).ID)
	since := later(r.Floor, n.Gained)
	if p.table == nil || !n.Lost.IsZero() || t.zoned && t.locate(h) != i {
		return later(since, p.any)
	}
	id := t.topo.Node(i).ID
	var room [4 * topology.MaxReplicas]int
	for want, seen := 4, 0; ; want *= 4 {
		order := p.table.AppendReplicas(room[:0], h, want)
		for _, k := range order[min(seen, len(order)):] {
			if p.table.topo.Node(k).ID == id {
				return since
			}
			since = later(since, p.lost[k])
		}
		if len(order) < want {
			return later(since, p.any)
		}
		seen = len(order)
	}
}

// ownedSince is OwnedSince during a transition. A key that has gone over is its new
// owner's since keys began to go over (before that, nobody wrote it there), one
// that has not is its old owner's as it was, save where keys went back meanwhile.
func (s *steps) ownedSince(h uint64, i int) topology.Version {
	side, other, turned := s.after, s.before, s.up
	if s.side(h) == s.before {
		side, other, turned = s.before, s.after, s.back
	}
	since := side.OwnedSince(h, i)
	if !since.IsZero() && !other.holds(h, i) {
		since = later(since, turned)
	}
	return since
}

func later(a, b topology.Version) topology.Version {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}
