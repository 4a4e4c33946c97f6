package placement

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/topology"
)

// ErrMoving says that owners are changing in steps (topology.Transition), and
// what was asked for would change them otherwise. Wait until the steps are made, or end
// them at once.
var ErrMoving = errors.New("placement: owners are changing in steps")

// Rank is where the key of hash h stands in the order in which keys change their
// owners in transition id: it is as good as random, another for each transition,
// and independent of where the key lives.
func Rank(h, id uint64) uint64 { return splitmix.Mix(h ^ id) }

// steps are the two mappings of a topology in transition.
type steps struct {
	before, after *Table
	id, below     uint64 // keys of a rank below belong to after
	up, back      topology.Version
}

// side returns the mapping that hash h belongs to.
func (s *steps) side(h uint64) *Table {
	if Rank(h, s.id) < s.below {
		return s.after
	}
	return s.before
}

// share is the part of the ranks that has moved, 0..1.
func (s *steps) share() float64 { return float64(s.below) / (1 << 64) }

// Moving reports whether the table is of a topology in transition.
func (t *Table) Moving() bool { return t.kind == kindSteps }

// Other returns the other owner of hash h where its owner is changing: the one
// after if the key has not moved yet, the one before if it has. -1 means that
// the key has one owner only, now and after the transition.
func (t *Table) Other(h uint64) int {
	if t.kind != kindSteps {
		return -1
	}
	at, other := t.steps.after, t.steps.before
	if t.steps.side(h) == other {
		at, other = other, at
	}
	if i := other.locate(h); i != at.locate(h) {
		return i
	}
	return -1
}

// OtherSince is FirstSince of the key's other owner (Other) during a transition: since
// when requests for the keys of hash h have gone to that node on its side of the
// transition. What it stored for such a key under an earlier version is from an earlier
// time as owner. Zero where the key has one owner only, or the other is down.
func (t *Table) OtherSince(h uint64) topology.Version {
	i := t.Other(h)
	if i < 0 {
		return topology.Version{}
	}
	s := t.steps
	other, turned := s.after, s.up
	if s.side(h) == s.after {
		other, turned = s.before, s.back
	}
	since := other.FirstSince(h, i)
	if since.IsZero() {
		return since
	}
	return later(since, turned)
}

// OwnerWeights returns the share of the load that each node should have now by
// its weight, parallel to the topology's nodes: during a transition between its
// weight before and that after.
func (t *Table) OwnerWeights() []float64 {
	spec := t.topo.Spec()
	w := make([]float64, t.Len())
	for i, n := range t.topo.Nodes() {
		w[i] = float64(spec.OwnerWeight(n))
	}
	if t.kind == kindSteps {
		p := t.steps.share()
		for i, n := range t.steps.before.topo.Nodes() {
			w[i] = p*w[i] + (1-p)*float64(spec.OwnerWeight(n))
		}
	}
	return w
}

// buildSteps is build for a topology in transition.
func buildSteps(prev *Table, t *topology.Topology) (*Table, error) {
	x := t.Transition()
	s := &steps{id: x.ID, below: x.Thresholds[0], up: x.Up, back: x.Back}
	wasBefore, wasAfter := prev, prev
	if prev != nil && prev.kind == kindSteps {
		wasBefore, wasAfter = prev.steps.before, prev.steps.after
	}
	var err error
	if s.before, err = buildPlain(wasBefore, t.Before()); err != nil {
		return nil, fmt.Errorf("before the transition: %w", err)
	}
	if s.after, err = buildPlain(wasAfter, t); err != nil {
		return nil, err
	}
	table := *s.after
	table.engine = engine{kind: kindSteps, steps: s}
	table.zoned = false // each side has its own rule
	table.relaxed = s.before.relaxed || s.after.relaxed
	table.owners = 0
	for _, w := range table.OwnerWeights() {
		if w > 0 {
			table.owners++
		}
	}
	table.digest = s.digest()
	return &table, nil
}

// stepsMagic begins what the mapping digest of a transition covers.
const stepsMagic = "shardd-steps\x01"

// digest is the mapping digest in a transition: of the magic, the digests of both
// mappings, the first one that before, and id and threshold, 8 bytes each.
func (s *steps) digest() topology.Digest {
	b := append([]byte(stepsMagic), s.before.digest[:]...)
	b = append(b, s.after.digest[:]...)
	b = binary.BigEndian.AppendUint64(b, s.id)
	b = binary.BigEndian.AppendUint64(b, s.below)
	sum := sha256.Sum256(b)
	return topology.Digest(sum[:16])
}

// Begin derives the first version of a transition from prev to the nodes of d,
// by which keys change their owners as x.Thresholds says: x carries ID, Kind,
// Thresholds and Over, the rest is filled in. d is as for Update; it may add nodes
// and change weights and states, not the spec, and every node that owned keys
// stays in it until the steps are made. Where no owner weight changes the result
// is Update's, without a transition. Errors: ErrMoving, and those of Update.
func Begin(prev *Table, d topology.Draft, x topology.Transition) (*Table, error) {
	switch {
	case prev == nil:
		return nil, &topology.FieldError{Path: "transition", Err: errors.New("the first version has nothing before it; publish it at once")}
	case prev.kind == kindSteps:
		return nil, fmt.Errorf("%w already", ErrMoving)
	case prev.topo.Spec() != d.Spec.Normal():
		return nil, &topology.FieldError{Path: "transition", Err: errors.New("the spec changes too; publish that at once, before or after")}
	}
	next, err := UpdateWith(prev, d, UpdateOptions{Tenure: prev.topo.Tenure() != nil})
	if err != nil {
		return nil, err
	}
	if x.Before, err = weightsBefore(prev.topo, next.topo); err != nil {
		return nil, err
	}
	if len(x.Before) == 0 {
		return next, nil
	}
	x.Tables, x.Tenure = prev.topo.Objects(), prev.topo.Tenure()
	draft := next.topo.Draft()
	draft.Transition, draft.Mapping = &x, topology.Digest{}
	if x.Tenure != nil {
		x.Up = d.Version
		if err := recordBefore(prev, &draft); err != nil {
			return nil, err
		}
	}
	return finish(next, draft)
}

// recordBefore goes on with the record of the mapping before the transition of d:
// prev is that mapping at the version before.
func recordBefore(prev *Table, d *topology.Draft) error {
	topo, err := topology.New(*d)
	if err != nil {
		return err
	}
	x := d.Transition
	before := topology.Draft{Version: d.Version, Spec: d.Spec, Nodes: topo.Before().Nodes(), Objects: x.Tables}
	if err := record(prev, &before, d.Version); err != nil {
		return err
	}
	x.Tables, x.Tenure = before.Objects, before.Tenure
	return nil
}

// serversChange reports whether a node goes down or comes up from prev to d, or is at
// another address.
func serversChange(prev *topology.Topology, d topology.Draft) bool {
	return healthChanges(prev, d) || len(movedNodes(prev, d.Nodes)) > 0
}

// healthChanges reports whether a node goes down or comes up from prev to d.
func healthChanges(prev *topology.Topology, d topology.Draft) bool {
	return slices.ContainsFunc(d.Nodes, func(n topology.Node) bool {
		i := prev.Index(n.ID)
		return (i >= 0 && prev.Node(i).State == topology.StateDown) != (n.State == topology.StateDown)
	})
}

// weightsBefore lists the nodes whose owner weight differs, with that before.
func weightsBefore(before, after *topology.Topology) (list []topology.NodeWeight, err error) {
	spec := after.Spec()
	for _, n := range after.Nodes() {
		was := uint32(0)
		if i := before.Index(n.ID); i >= 0 {
			was = spec.OwnerWeight(before.Node(i))
		}
		if was != spec.OwnerWeight(n) {
			list = append(list, topology.NodeWeight{ID: n.ID, Weight: was})
		}
	}
	for _, n := range before.Nodes() {
		if after.Index(n.ID) < 0 && spec.OwnerWeight(n) > 0 {
			return nil, &topology.FieldError{Path: "nodes", Err: fmt.Errorf("node %q owns keys and would be gone at once; drain it in steps, and remove it afterwards", n.ID)}
		}
	}
	return list, nil
}

// Step derives the next version of the transition of prev, with another
// threshold. d is as for Update; its nodes may differ in what moves no key, such as
// addresses. Errors: ErrMoving if d would change owners otherwise, and those of
// Update.
func Step(prev *Table, d topology.Draft, threshold uint64) (*Table, error) {
	if prev.kind != kindSteps {
		return nil, &topology.FieldError{Path: "transition", Err: errors.New("there is none to go on with")}
	}
	if err := prev.steps.after.sameOwners(d); err != nil {
		return nil, err
	}
	x := prev.topo.Draft().Transition
	turn(x, threshold, d.Version)
	d.Nodes, d.Parent, d.Mapping = keepPositions(prev.topo, d), prev.topo.Digest(), topology.Digest{}
	d.Objects, d.Transition, d.Tenure = prev.topo.Draft().Objects, x, prev.topo.Tenure()
	if d.Cause.Kind == "" {
		d.Cause.Kind = CauseStep
	}
	if x.Tenure != nil && serversChange(prev.topo, d) {
		// On either side others serve from now on: what a side says counts from here.
		x.Up, x.Back = d.Version, d.Version
		if err := record(prev.steps.after, &d, d.Version); err != nil {
			return nil, err
		}
		if err := recordBefore(prev.steps.before, &d); err != nil {
			return nil, err
		}
	}
	return finish(prev, d)
}

// turn gives a transition another threshold at version v.
func turn(x *topology.Transition, threshold uint64, v topology.Version) {
	up := x.Up.Compare(x.Back) >= 0 // the way it went so far
	switch was := x.Thresholds[0]; {
	case x.Tenure == nil:
	case threshold > was && !up:
		x.Up = v
	case threshold < was && up:
		x.Back = v
	}
	x.Thresholds = []uint64{threshold}
}

// Settle ends the transition of prev: all keys belong to the mapping after it,
// or before it if d's nodes have the owner weights of that, wherever the
// threshold stood. d is as for Step. Errors: as Step.
func Settle(prev *Table, d topology.Draft) (*Table, error) {
	if prev.kind != kindSteps {
		return nil, &topology.FieldError{Path: "transition", Err: errors.New("there is none to end")}
	}
	side, objects := prev.steps.after, prev.topo.Draft().Objects
	if prev.steps.before.sameOwners(d) == nil {
		side, objects = prev.steps.before, prev.topo.Transition().Tables
	} else if err := side.sameOwners(d); err != nil {
		return nil, err
	}
	d.Nodes, d.Parent, d.Mapping = keepPositions(prev.topo, d), prev.topo.Digest(), topology.Digest{}
	d.Objects, d.Transition, d.Tenure = slices.Clone(objects), nil, nil
	if d.Cause.Kind == "" {
		d.Cause.Kind = CauseStep
	}
	if x := prev.topo.Transition(); x.Tenure != nil {
		// Those that go over now belong to the run of steps that leads here, or begin
		// one if the last steps led the other way.
		from, v, turned := prev.steps.before, x.Up, x.Up.Compare(x.Back) < 0
		if side == prev.steps.before {
			from, v, turned = prev.steps.after, x.Back, !turned
		}
		if turned {
			v = d.Version
		}
		if healthChanges(prev.topo, d) { // on the other side, too, and in other ways there
			from, v = nil, d.Version
		}
		if err := recordOf(change{prev: from, d: &d, v: v, settles: true}); err != nil {
			return nil, err
		}
	}
	return finish(side, d)
}

// Heading reports where a declaration of nodes under spec stands to a topology
// in transition: at the mapping after it, at that before it, or at neither: then
// the error says why, and wraps ErrMoving. O(n log n).
func Heading(t *topology.Topology, spec topology.Spec, nodes []topology.Node) (after, before bool, err error) {
	d := topology.Draft{Spec: spec, Nodes: nodes}
	if err = sameOwners(t, d); err == nil {
		return true, false, nil
	}
	if old := t.Before(); old != nil && sameOwners(old, d) == nil {
		return false, true, nil
	}
	return false, false, err
}

func (t *Table) sameOwners(d topology.Draft) error { return sameOwners(t.topo, d) }

// sameOwners refuses a draft whose spec or owner weights are not those of t.
func sameOwners(t *topology.Topology, d topology.Draft) error {
	spec := t.Spec()
	if d.Spec.Normal() != spec {
		return fmt.Errorf("%w, and the spec would change", ErrMoving)
	}
	weights := make(map[string]topology.Node, len(d.Nodes))
	for _, n := range d.Nodes {
		weights[n.ID] = n
	}
	for _, n := range t.Nodes() {
		m, there := weights[n.ID]
		if a, b := spec.OwnerWeight(n), spec.OwnerWeight(m); a != b && (there || a > 0) {
			return fmt.Errorf("%w, and the owner weight of node %q would change from %d to %d", ErrMoving, n.ID, a, b)
		}
		if there && spec.ZoneAware && m.Zone != n.Zone {
			return fmt.Errorf("%w, and the zone of node %q would change", ErrMoving, n.ID)
		}
		delete(weights, n.ID)
	}
	for _, m := range weights {
		if spec.OwnerWeight(m) > 0 {
			return fmt.Errorf("%w, and node %q would come to them", ErrMoving, m.ID)
		}
	}
	return nil
}
