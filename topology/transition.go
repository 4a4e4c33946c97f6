package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TransitionKind says what keeps the values right while keys change owners.
type TransitionKind string

// TransitionNone is the kind where nothing does: keys go over to their new owners
// one by one by their rank, for caches that fill again and for requests without state. One
// threshold.
const TransitionNone TransitionKind = "none"

// thresholds returns the number of thresholds of a kind, 0 for a kind that this
// release does not know.
func (k TransitionKind) thresholds() int {
	if k == TransitionNone {
		return 1
	}
	return 0
}

// Transition is a change of owners that is made in steps. While a topology has
// one, two mappings are in force: that of its nodes and tables, and the one
// before, with other weights and tables. A key belongs to the new one if its rank
// is below the first threshold (placement.Rank), so that all clients agree, each
// step moves only keys that have not moved yet, and a step back moves just those
// back.
type Transition struct {
	// ID makes the rank independent of other transitions; must not be 0.
	ID uint64
	// Kind says how values are kept right.
	Kind TransitionKind
	// Thresholds are in units of 2^-64 of the ranks, the largest first: one for
	// TransitionNone. 0 = no key has moved.
	Thresholds []uint64
	// Over is how long the steps are meant to take in all, for the leader that
	// makes them; 0 = they are made by hand. No owner depends on it.
	Over time.Duration
	// Before are the owner weights (Node.OwnerWeight) before the change, of the
	// nodes for which it differs: 0 for a node that is new. Each is a node of the
	// topology, so a node that leaves by steps stays in it until they are made.
	Before []NodeWeight
	// Tables are those of the mapping before, at most one of a kind.
	Tables []*Object
	// Tenure is that of the mapping before; nil = not recorded.
	Tenure *Tenure
	// Up is the version at which keys began to go over, or began again after some
	// went back; Back that at which they last began to go back; zero = they did
	// not, or it is not recorded. No owner depends on them.
	Up, Back Version

	refs []ObjectRef // of Tables; filled in by New and Decode
}

// NodeWeight is a node's owner weight.
type NodeWeight struct {
	ID     string `json:"id"`
	Weight uint32 `json:"weight"`
}

// clone returns a copy that shares nothing that is written to.
func (x *Transition) clone() *Transition {
	if x == nil {
		return nil
	}
	c := *x
	c.Thresholds, c.Before, c.Tables = slices.Clone(x.Thresholds), slices.Clone(x.Before), slices.Clone(x.Tables)
	c.Tenure = x.Tenure.clone()
	return &c
}

// normalise sorts what has an order and fills in the references.
func (x *Transition) normalise() *Transition {
	c := x.clone()
	slices.SortFunc(c.Before, func(a, b NodeWeight) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(c.Tables, func(a, b *Object) int { return int(a.kind) - int(b.kind) })
	c.refs = make([]ObjectRef, len(c.Tables))
	for i, o := range c.Tables {
		c.refs[i] = o.Ref()
	}
	return c
}

// validate says what is wrong with a transition of a topology with spec and
// nodes, sorted.
func (x *Transition) validate(spec Spec, nodes []Node) error {
	k := x.Kind.thresholds()
	switch {
	case k == 0:
		return fieldUnknown("transition.kind", "unknown kind %q", x.Kind)
	case spec.Algorithm == Compat:
		return fieldErr("transition", "keys of a foreign mapping cannot change owners in steps: other clients would not know")
	case x.ID == 0:
		return fieldErr("transition.id", "must not be 0")
	case len(x.Thresholds) != k:
		return fieldErr("transition.thresholds", "%d thresholds, kind %s has %d", len(x.Thresholds), x.Kind, k)
	case x.Over < 0:
		return fieldErr("transition.over", "%v is below 0", x.Over)
	case len(x.Before) == 0:
		return fieldErr("transition.before", "no weight differs, so no key would move")
	}
	if err := checkRefs("transition.tables", x.refs); err != nil {
		return err
	}
	if err := x.Tenure.validate("transition.tenure"); err != nil {
		return err
	}
	for _, v := range []Version{x.Up, x.Back} {
		if (v.Epoch == 0) != (v.Seq == 0) {
			return fieldErr("transition", "version %s: epoch and seq count from 1", v)
		}
	}
	before, err := x.nodes(nodes)
	if err != nil {
		return err
	}
	for _, side := range [][]Node{before, nodes} {
		if !slices.ContainsFunc(side, func(n Node) bool { return n.OwnerWeight() > 0 }) {
			return fieldErr("transition.before", "no node owns anything before or after; publish the change at once")
		}
	}
	return validateTotals(spec, before)
}

// nodes returns the nodes as they owned keys before.
func (x *Transition) nodes(nodes []Node) ([]Node, error) {
	before := slices.Clone(nodes)
	for i, w := range x.Before {
		if i > 0 && x.Before[i-1].ID >= w.ID {
			return nil, fieldErr("transition.before", "node %q is not after %q", w.ID, x.Before[i-1].ID)
		}
		at, found := slices.BinarySearchFunc(before, Node{ID: w.ID}, compareIDs)
		switch {
		case !found:
			return nil, fieldErr("transition.before", "node %q is not in the topology; it stays until the steps are made", w.ID)
		case before[at].OwnerWeight() == w.Weight:
			return nil, fieldErr("transition.before", "node %q has owner weight %d before and after; leave it out", w.ID, w.Weight)
		case w.Weight > MaxWeight:
			return nil, fieldErr("transition.before", "node %q: weight %d is more than %d", w.ID, w.Weight, MaxWeight)
		}
		before[at].Weight = w.Weight
		if before[at].State != StateDown {
			before[at].State = StateActive
		}
	}
	return before, nil
}

// amongBefore appends the tables of the mapping before that base has.
func (x *Transition) amongBefore(objects []*Object, base *Topology) []*Object {
	objects = slices.Clone(objects)
	for _, o := range base.Objects() {
		if slices.Contains(x.refs, o.Ref()) && !slices.Contains(objects, o) {
			objects = append(objects, o)
		}
	}
	return objects
}

func checkRefs(path string, refs []ObjectRef) error {
	for i, r := range refs {
		if r.Kind < 1 || r.Kind > maxKind {
			return fieldUnknown(path, "unknown object kind %d", r.Kind)
		}
		if i > 0 && refs[i-1].Kind >= r.Kind {
			return fieldErr(path, "kind %s after kind %s: want each kind once, ascending", r.Kind, refs[i-1].Kind)
		}
	}
	return nil
}

// Transition returns the change of owners that is under way, nil if there is
// none. Read only.
func (t *Topology) Transition() *Transition { return t.d.Transition }

// Before returns the mapping before the transition as a topology of its own: the
// same nodes with their owner weights before, and its tables; nil without a
// transition. Its digest names nothing that was published.
func (t *Topology) Before() *Topology {
	x := t.d.Transition
	if x == nil {
		return nil
	}
	d := t.d
	d.Transition, d.Mapping = nil, Digest{}
	d.Objects, d.Tenure = x.Tables, x.Tenure
	var err error
	if d.Nodes, err = x.nodes(t.d.Nodes); err != nil {
		return nil // checked by New
	}
	before, err := build(d, x.refs)
	if err != nil {
		return nil
	}
	return before
}

// Tags of the transition's fields.
const (
	tagTransitionID = 1 + iota
	tagTransitionKind
	tagTransitionThresholds
	tagTransitionOver
	tagTransitionBefore
	tagTransitionTables
	tagTransitionTenure
	tagTransitionUp
	tagTransitionBack
)

var transitionTags = []uint64{tagTransitionID, tagTransitionKind, tagTransitionThresholds, tagTransitionOver, tagTransitionBefore, tagTransitionTables,
	tagTransitionTenure, tagTransitionUp, tagTransitionBack}

func encodeTransition(x *Transition) []byte {
	if x == nil {
		return nil
	}
	var w, thresholds, before writer
	w.fixedField(tagTransitionID, x.ID)
	w.strField(tagTransitionKind, string(x.Kind))
	for _, t := range x.Thresholds {
		thresholds.fixed(t)
	}
	w.bytesField(tagTransitionThresholds, thresholds.b)
	w.intField(tagTransitionOver, uint64(x.Over))
	before.uvarint(uint64(len(x.Before)))
	for _, n := range x.Before {
		before.str(n.ID)
		before.uvarint(uint64(n.Weight))
	}
	w.bytesField(tagTransitionBefore, before.b)
	w.bytesField(tagTransitionTables, encodeRefs(x.refs))
	w.bytesField(tagTransitionTenure, encodeTenure(x.Tenure))
	w.versionField(tagTransitionUp, x.Up)
	w.versionField(tagTransitionBack, x.Back)
	return w.b
}

func decodeTransition(r *reader) *Transition {
	x := new(Transition)
	r.fields("transition", transitionTags, func(tag uint64, p *reader) {
		switch tag {
		case tagTransitionID:
			x.ID = p.fixed()
		case tagTransitionKind:
			x.Kind = TransitionKind(p.take(uint64(len(p.b))))
			if p.err == nil && x.Kind.thresholds() == 0 {
				p.err = fmt.Errorf("%w: transition of kind %q", ErrUnknown, x.Kind)
			}
		case tagTransitionThresholds:
			for len(p.b) > 0 && p.err == nil {
				x.Thresholds = append(x.Thresholds, p.fixed())
			}
		case tagTransitionOver:
			x.Over = time.Duration(p.uint(1<<63-1, "length"))
		case tagTransitionBefore:
			x.Before = make([]NodeWeight, p.count(2))
			for i := range x.Before {
				x.Before[i] = NodeWeight{p.str(), uint32(p.uint(MaxWeight, "weight"))}
			}
		case tagTransitionTables:
			x.refs = decodeRefs(p)
		case tagTransitionTenure:
			x.Tenure = decodeTenure(p)
		case tagTransitionUp:
			x.Up = p.version()
		case tagTransitionBack:
			x.Back = p.version()
		}
	})
	return x
}

// transitionJSON is how people read a transition.
type transitionJSON struct {
	ID         string         `json:"id"`
	Kind       TransitionKind `json:"kind"`
	Thresholds []float64      `json:"thresholds"` // shares of the ranks, 0..1
	Over       string         `json:"over,omitempty"`
	Before     []NodeWeight   `json:"before"`
	Tables     []ObjectRef    `json:"tables,omitempty"`
}

func (x *Transition) view() *transitionJSON {
	if x == nil {
		return nil
	}
	v := &transitionJSON{ID: fmt.Sprintf("%016x", x.ID), Kind: x.Kind, Before: x.Before, Tables: x.refs}
	for _, t := range x.Thresholds {
		v.Thresholds = append(v.Thresholds, float64(t)/(1<<64))
	}
	if x.Over > 0 {
		v.Over = x.Over.String()
	}
	return v
}
