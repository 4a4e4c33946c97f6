package topology

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Cause says why a version exists. It is informational: no owner depends on
// it, but it is part of the content digest.
type Cause struct {
	Kind string `json:"kind"`          // such as "created", "nodes added", "weights changed"
	By   string `json:"by,omitempty"`  // who: an operator, an agent, the controller
	Why  string `json:"why,omitempty"` // free text
	At   int64  `json:"at,omitempty"`  // publisher's clock, milliseconds since 1970; decides nothing
}

// Draft is everything a Topology is made of, before it is checked, sorted and
// digested.
type Draft struct {
	Cluster string    // name, see ValidateClusterName
	ID      ClusterID // must not be zero
	History History   // must not be zero
	Version Version   // Epoch and Seq from 1
	Parent  Digest    // content digest of the version before; zero for the first
	Spec    Spec      // taken in its normal form
	Nodes   []Node    // any order; ids distinct; none = a cluster without nodes
	Objects []*Object // tables, at most one of a kind
	Mapping Digest    // digest of what Locate reads; set by package placement
	Cause   Cause
	// Transition is the change of owners that is made in steps, nil = none.
	Transition *Transition
	// Tenure says since when nodes own what they own; nil = not recorded.
	Tenure *Tenure
}

// Topology is one immutable version of a cluster: spec, nodes sorted by ID,
// and references to tables. All methods are safe for concurrent use; slices
// that they return must not be changed. Make one with New, Decode or
// UnmarshalSaved.
type Topology struct {
	d       Draft
	refs    []ObjectRef
	encoded []byte
	digest  Digest
}

// New checks d and returns the topology it describes, or a *FieldError and
// nothing. O(n log n) in the number of nodes.
func New(d Draft) (*Topology, error) {
	if slices.Contains(d.Objects, nil) {
		return nil, fieldErr("objects", "one of %d objects is nil", len(d.Objects))
	}
	d.Objects = slices.Clone(d.Objects)
	slices.SortFunc(d.Objects, func(a, b *Object) int { return int(a.kind) - int(b.kind) })
	refs := make([]ObjectRef, len(d.Objects))
	for i, o := range d.Objects {
		refs[i] = o.Ref()
	}
	d.Tenure = d.Tenure.clone()
	if x := d.Transition; x != nil {
		if slices.Contains(x.Tables, nil) {
			return nil, fieldErr("transition.tables", "one of %d objects is nil", len(x.Tables))
		}
		d.Transition = x.normalise()
	}
	return build(d, refs)
}

func build(d Draft, refs []ObjectRef) (*Topology, error) {
	if err := validateIdentity(d); err != nil {
		return nil, err
	}
	d.Spec = d.Spec.Normal()
	if err := d.Spec.Validate(); err != nil {
		return nil, err
	}
	if err := ValidateNodes(d.Spec, d.Nodes); err != nil {
		return nil, err
	}
	if err := checkRefs("objects", refs); err != nil {
		return nil, err
	}
	d.Nodes = slices.Clone(d.Nodes)
	slices.SortFunc(d.Nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	placeNodes(d.Spec, d.Nodes)
	if err := d.Tenure.validate("tenure"); err != nil {
		return nil, err
	}
	if d.Transition != nil {
		if err := d.Transition.validate(d.Spec, d.Nodes); err != nil {
			return nil, err
		}
	}
	t := &Topology{d: d, refs: refs}
	t.encoded = t.encode()
	t.digest = Sum(t.encoded)
	return t, nil
}

func validateIdentity(d Draft) error {
	if err := ValidateClusterName(d.Cluster); err != nil {
		return &FieldError{Path: "cluster", Err: err}
	}
	if d.ID.IsZero() || d.History == 0 || d.Version.Epoch == 0 || d.Version.Seq == 0 {
		return fieldErr("version", "cluster id %s, history %s, version %s: none of them may be zero", d.ID, d.History, d.Version)
	}
	for _, s := range []string{d.Cause.Kind, d.Cause.By, d.Cause.Why} {
		if err := printable("cause", s, 1024); err != nil {
			return &FieldError{Path: "cause", Err: err}
		}
	}
	return nil
}

// ValidateNodes says what is wrong with nodes under spec (normal form), as a
// *FieldError whose path indexes nodes as given, or returns nil. No nodes, or
// none that owns anything, is not an error here: see Declared.Validate.
func ValidateNodes(spec Spec, nodes []Node) error {
	if len(nodes) > MaxNodes {
		return fieldErr("nodes", "%d nodes are more than %d", len(nodes), MaxNodes)
	}
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		if err := n.validate(path); err != nil {
			return err
		}
		if first, dup := at[n.ID]; dup {
			return fieldErr(path+".id", "duplicate node id %q; nodes[%d] has it already", n.ID, first)
		}
		at[n.ID] = i
	}
	if spec.Algorithm == Compat {
		return validateForeign(spec.Compat, nodes)
	}
	return validateTotals(spec, nodes)
}

func validateTotals(spec Spec, nodes []Node) error {
	var weight, owners uint64
	for _, n := range nodes {
		weight += uint64(n.OwnerWeight())
		if n.OwnerWeight() > 0 {
			owners++
		}
	}
	switch spec.Algorithm {
	case Ring:
		if points := weight * uint64(spec.VNodes); points > MaxPoints {
			return fieldErr("nodes", "%d ring points (%d per unit of weight x total weight %d) are more than %d; lower ring.vnodes or scale the weights down", points, spec.VNodes, weight, MaxPoints)
		}
	case Jump:
		if buckets := weight * uint64(spec.JumpUnit); buckets > MaxBuckets {
			return fieldErr("nodes", "%d jump buckets (%d per unit of weight x total weight %d) are more than %d; scale the weights down", buckets, spec.JumpUnit, weight, MaxBuckets)
		}
	case Maglev:
		if owners > uint64(spec.TableSize) {
			return fieldErr("maglev.table_size", "%d nodes are more than the table's %d entries; raise maglev.table_size", owners, spec.TableSize)
		}
	case Slots:
		if owners > uint64(spec.SlotCount) {
			return fieldErr("slots.count", "%d nodes are more than %d slots; raise slots.count", owners, spec.SlotCount)
		}
	}
	return nil
}

// Cluster returns the cluster's name.
func (t *Topology) Cluster() string { return t.d.Cluster }

// ClusterID returns the cluster's id.
func (t *Topology) ClusterID() ClusterID { return t.d.ID }

// Version returns the topology's place in its history.
func (t *Topology) Version() Version { return t.d.Version }

// Parent returns the content digest of the version before, zero for the first.
func (t *Topology) Parent() Digest { return t.d.Parent }

// Spec returns the spec in its normal form.
func (t *Topology) Spec() Spec { return t.d.Spec }

// Len returns the number of nodes, owners or not.
func (t *Topology) Len() int { return len(t.d.Nodes) }

// Node returns the i-th node in ID order, 0 <= i < Len.
func (t *Topology) Node(i int) Node { return t.d.Nodes[i] }

// Nodes returns all nodes in ID order. Read only.
func (t *Topology) Nodes() []Node { return t.d.Nodes }

// Index returns the position of the node with this id, or -1. O(log n).
func (t *Topology) Index(id string) int {
	i, found := slices.BinarySearchFunc(t.d.Nodes, id, func(n Node, id string) int { return strings.Compare(n.ID, id) })
	if !found {
		return -1
	}
	return i
}

// Refs returns the references to tables, ascending by kind; behind them those of
// the mapping before a transition that are others. Read only.
func (t *Topology) Refs() []ObjectRef {
	if t.d.Transition == nil || len(t.d.Transition.refs) == 0 {
		return t.refs
	}
	all := slices.Clone(t.refs)
	for _, r := range t.d.Transition.refs {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// Object returns the attached object of this kind, or nil.
func (t *Topology) Object(k Kind) *Object {
	for _, o := range t.d.Objects {
		if o.kind == k {
			return o
		}
	}
	return nil
}

// Objects returns the attached objects in the order of Refs. Read only.
func (t *Topology) Objects() []*Object {
	if t.d.Transition == nil || len(t.d.Transition.Tables) == 0 {
		return t.d.Objects
	}
	all := slices.Clone(t.d.Objects)
	for _, o := range t.d.Transition.Tables {
		if !slices.Contains(t.refs, o.Ref()) {
			all = append(all, o)
		}
	}
	return all
}

// Complete reports whether every object referred to is attached.
func (t *Topology) Complete() bool {
	x := t.d.Transition
	return len(t.d.Objects) == len(t.refs) && (x == nil || len(x.Tables) == len(x.refs))
}

// Mapping returns the digest of the mapping, which package placement computes
// and checks.
func (t *Topology) Mapping() Digest { return t.d.Mapping }

// Cause returns why this version exists.
func (t *Topology) Cause() Cause { return t.d.Cause }

// Digest returns the content digest: of the encoding, which covers the
// parent's digest and the references, and so the objects.
func (t *Topology) Digest() Digest { return t.digest }

// Encode returns the canonical encoding, without the objects. Read only.
func (t *Topology) Encode() []byte { return t.encoded }

// Ref returns what a client that holds this topology presents.
func (t *Topology) Ref() Ref {
	return Ref{ClusterID: t.d.ID, History: t.d.History, Version: t.d.Version, Digest: t.digest}
}

// Draft returns a copy of what the topology was made of, to be edited into
// another one.
func (t *Topology) Draft() Draft {
	d := t.d
	d.Nodes = slices.Clone(d.Nodes)
	d.Objects = slices.Clone(d.Objects)
	d.Transition, d.Tenure = d.Transition.clone(), d.Tenure.clone()
	return d
}

// Attach returns the topology with all objects that it refers to, or
// ErrMissingObject naming the first that is not among objects. Objects that it
// does not refer to are ignored.
func (t *Topology) Attach(objects ...*Object) (*Topology, error) {
	c := *t
	var err error
	if c.d.Objects, err = t.find(t.refs, objects); err != nil {
		return nil, err
	}
	if x := c.d.Transition.clone(); x != nil {
		if x.Tables, err = t.find(x.refs, objects); err != nil {
			return nil, err
		}
		c.d.Transition = x
	}
	return &c, nil
}

// find returns the objects of refs, in that order.
func (t *Topology) find(refs []ObjectRef, objects []*Object) ([]*Object, error) {
	found := make([]*Object, 0, len(refs))
	for _, ref := range refs {
		i := slices.IndexFunc(objects, func(o *Object) bool { return o != nil && o.Ref() == ref })
		if i < 0 {
			return nil, fmt.Errorf("%w: %s %s of version %s", ErrMissingObject, ref.Kind, ref.Digest, t.d.Version)
		}
		found = append(found, objects[i])
	}
	return found, nil
}

// Equal reports whether both topologies have the same content.
func (t *Topology) Equal(u *Topology) bool { return bytes.Equal(t.encoded, u.encoded) }
