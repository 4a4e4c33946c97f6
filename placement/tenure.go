package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shardd/shardd/topology"
)

// record fills in since when nodes serve what they serve in the version d, whose
// tables are there, after prev (plain; nil for the first): what changes servers has
// its new one since v. Where nothing is known of what was before (no record, a
// new epoch, another mapping) all begins at v.
func record(prev *Table, d *topology.Draft, v topology.Version) error {
	return recordOf(change{prev: prev, d: d, v: v})
}

// change is from the version prev to d, since v.
type change struct {
	prev    *Table
	d       *topology.Draft
	v       topology.Version
	settles bool // prev is the other side of a transition that ends: some keys had gone over from it
}

func recordOf(c change) error {
	prev, d, v := c.prev, c.d, c.v
	var err error
	if d.Tenure, err = nextTenure(c); err != nil {
		return err
	}
	d.Objects = slices.DeleteFunc(slices.Clone(d.Objects), func(o *topology.Object) bool { return o.Kind() == topology.KindSince })
	if len(d.Objects) == 0 {
		return nil
	}
	since, err := newSincer(prev, d, d.Objects[0], v).object()
	if err != nil {
		return err
	}
	d.Objects = append(d.Objects, since)
	return nil
}

// Record fills in the record of a draft whose tables are chosen otherwise than by
// Update, as those of an earlier version that are put in force again: Tenure, and
// the object beside the tables. prev is the version before.
func Record(prev *Table, d *topology.Draft) error {
	if prev != nil && prev.kind == kindSteps {
		prev = prev.steps.after
	}
	return record(prev, d, d.Version)
}

// continues reports whether the record of prev goes on in d.
func continues(prev *Table, d *topology.Draft) bool {
	return prev != nil && prev.topo.Tenure() != nil && prev.topo.Version().Epoch == d.Version.Epoch && prev.topo.Tenure().Floor.Epoch == d.Version.Epoch &&
		!remapping(prev.topo.Spec(), d.Spec.Normal())
}

// servingWeight is the weight by which a node serves: none while it is down.
func servingWeight(spec topology.Spec, n topology.Node) uint32 {
	if n.State == topology.StateDown {
		return 0
	}
	return spec.OwnerWeight(n)
}

func nextTenure(c change) (*topology.Tenure, error) {
	prev, d, v := c.prev, c.d, c.v
	if !continues(prev, d) {
		return &topology.Tenure{Floor: v}, nil
	}
	held := prev.topo.Tenure()
	l := tenureList{spec: d.Spec.Normal(), v: v, known: make(map[string]topology.NodeTenure, len(held.Nodes))}
	for _, n := range held.Nodes {
		l.known[n.ID] = n
	}
	gone := make(map[string]topology.Node, prev.topo.Len())
	for _, n := range prev.topo.Nodes() {
		gone[n.ID] = n
	}
	for _, n := range d.Nodes {
		was, there := gone[n.ID]
		if c.settles && n.State == topology.StateDown && l.spec.OwnerWeight(n) > l.spec.OwnerWeight(was) {
			up := n // as it may have been while keys went over to it
			up.State = topology.StateActive
			l.change(n.ID, was, up)
			was = up
		}
		l.change(n.ID, was, n)
		if there && was.Addr != n.Addr {
			l.moveServer(n, d.Version)
		}
		delete(gone, n.ID)
	}
	for id, n := range gone {
		l.change(id, n, topology.Node{})
	}
	next := &topology.Tenure{Floor: held.Floor, Moved: held.Moved}
	moved, err := movesOthers(prev, d, l.changed)
	if err != nil {
		return nil, err
	}
	if moved {
		next.Moved = v
	}
	for _, n := range l.known {
		next.Nodes = append(next.Nodes, n)
	}
	forget(next)
	return next, nil
}

// tenureList is what is remembered of nodes while a version is compared with
// the one before.
type tenureList struct {
	spec    topology.Spec
	v       topology.Version
	known   map[string]topology.NodeTenure
	changed bool // some weight did
}

// change notes what the node was and is; the zero node is none.
func (l *tenureList) change(id string, was, is topology.Node) {
	before, after := servingWeight(l.spec, was), servingWeight(l.spec, is)
	var comes, leaves bool
	if zoned(l.spec) { // a node that is down still keeps its zone's place
		a, b := l.spec.OwnerWeight(was), l.spec.OwnerWeight(is)
		comes, leaves = a < b, a > b
	}
	if before == after && !comes && !leaves {
		return
	}
	l.changed = true
	n := l.known[id]
	if peak := max(n.Peak, before); l.spec.Algorithm == topology.Ring && (len(n.Steps) > 0 || after > 0 && peak > 0 && after != peak) {
		step(&n, before, topology.WeightStep{Since: l.v, Weight: after})
	}
	n.ID, n.Peak = id, max(n.Peak, before, after)
	if comes || leaves {
		n.Peak = max(n.Peak, l.spec.OwnerWeight(was), l.spec.OwnerWeight(is))
	}
	if after > before || comes {
		n.Gained = l.v
	}
	if after < before || leaves {
		n.Lost = l.v
	}
	l.known[id] = n
}

// moveServer notes that the node is another server since v, which has missed all that
// the one before was sent.
func (l *tenureList) moveServer(is topology.Node, v topology.Version) {
	w := servingWeight(l.spec, is)
	if w == 0 {
		return // it begins when it serves
	}
	n := l.known[is.ID]
	n.ID, n.Peak, n.Gained = is.ID, max(n.Peak, w), v
	if len(n.Steps) > 0 {
		n.Least, n.Steps = 0, []topology.WeightStep{{Since: v, Weight: w}}
	}
	l.known[is.ID] = n
}

// step notes a weight of a node that has had more than one above 0. What there is
// no room for is told by the ends of the range: later than it was, never earlier.
func step(n *topology.NodeTenure, before uint32, s topology.WeightStep) {
	if len(n.Steps) == 0 { // so far it had before, or nothing
		n.Least = before
		if v := later(n.Gained, n.Lost); !v.IsZero() {
			n.Least, n.Steps = 0, []topology.WeightStep{{Since: v, Weight: before}}
		}
	}
	n.Steps = slices.Clone(n.Steps)
	drop := max(0, len(n.Steps)+1-topology.MaxWeightSteps)
	if k := len(n.Steps); k > 0 && n.Steps[k-1].Since.Compare(s.Since) >= 0 {
		s.Since, drop = n.Steps[k-1].Since, k // twice in one version
	}
	for _, old := range n.Steps[:drop] {
		n.Least = min(n.Least, old.Weight)
	}
	n.Steps = append(n.Steps[drop:], s)
}

// risen is when the node's weight last rose to w, which it has now.
func risen(n topology.NodeTenure, w uint32) (since topology.Version) {
	if len(n.Steps) == 0 {
		return n.Gained
	}
	was := n.Least
	for _, s := range n.Steps {
		if was < w && s.Weight >= w {
			since = s.Since
		}
		was = s.Weight
	}
	return since
}

// fallen is when the node's weight last fell below w, which it has not now; zero
// if it never had it.
func fallen(n topology.NodeTenure, w uint32) (since topology.Version) {
	if len(n.Steps) == 0 {
		return n.Lost
	}
	was := n.Peak
	for _, s := range n.Steps {
		if was >= w && s.Weight < w {
			since = s.Since
		}
		was = s.Weight
	}
	return since
}

// forget drops the older half of the changes when they are over the limit, and
// lets the record reach back to the last of those only. Each time it does, what has
// been so since the floor begins anew, which must not be at every change.
func forget(r *topology.Tenure) {
	latest := func(n topology.NodeTenure) topology.Version { return later(n.Lost, n.Gained) }
	slices.SortFunc(r.Nodes, func(a, b topology.NodeTenure) int {
		return cmp.Or(latest(b).Compare(latest(a)), strings.Compare(a.ID, b.ID))
	})
	if len(r.Nodes) > topology.MaxTenures {
		r.Floor = later(r.Floor, latest(r.Nodes[topology.MaxTenures/2]))
		r.Nodes = r.Nodes[:topology.MaxTenures/2]
	}
	slices.SortFunc(r.Nodes, func(a, b topology.NodeTenure) int { return strings.Compare(a.ID, b.ID) })
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

func later(a, b topology.Version) topology.Version {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

func earlier(a, b topology.Version) topology.Version {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}
