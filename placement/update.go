package placement

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/topology"
)

// UpdateOptions are further wishes for one update. The zero value has none.
type UpdateOptions struct {
	// Replace names nodes that take the place of others, old id to new id: the
	// new node gets the table entries of the old one, so that only the old
	// node's keys move, and those once. The old node must own keys in the
	// version before and none in the next, the new one the other way round.
	// It acts on maglev, slots and jump; ring and rendezvous hash names, so
	// there it changes nothing and the movement report shows the price.
	Replace map[string]string
	// Tenure records in the version since when nodes own what they own
	// (topology.Tenure), for Table.OwnedSince. It makes topologies some bytes a
	// node larger, and those of maglev and slots by a table of versions.
	Tenure bool
}

// Update derives the next version from prev (nil for the first). d carries
// identity, version, spec, nodes and cause; its Objects, Mapping and Parent are
// filled in, and so is Cause.Kind if it is empty (see CauseKind). Tables of the
// same algorithm are refilled; after a change of algorithm or parameters under
// the same key hash and tag they are seeded from the old mapping and refilled.
// A node that is draining, joining, left or of weight 0 owns nothing; if that is
// true of all nodes the version is valid and finds nobody (ErrNoNodes).
//
// A refused input changes nothing: the error is a *topology.FieldError with the
// path of a cluster file, its indices those of d.Nodes as given. Refused is what
// topology.New refuses and a spec under which some node with weight would own
// nothing, such as a table too small for its weights.
func Update(prev *Table, d topology.Draft) (*Table, error) {
	return UpdateWith(prev, d, UpdateOptions{})
}

// UpdateWith is Update with options.
func UpdateWith(prev *Table, d topology.Draft, o UpdateOptions) (*Table, error) {
	if prev != nil && prev.kind == kindSteps {
		return nil, fmt.Errorf("%w: version %s", ErrMoving, prev.topo.Version())
	}
	d.Objects, d.Mapping, d.Parent, d.Transition, d.Tenure = nil, topology.Digest{}, topology.Digest{}, nil, nil
	d.Nodes = inheritPlaces(prev.topology(), d.Nodes, o.Replace)
	d.Nodes = keepPositions(prev.topology(), d)
	if prev != nil {
		d.Parent = prev.topo.Digest()
	}
	if d.Cause.Kind == "" {
		d.Cause.Kind = CauseKind(prev.topology(), d.Spec, d.Nodes)
	}
	bare, err := topology.New(d) // checks everything that does not need a table
	if err != nil {
		return nil, err
	}
	if err := checkReplace(prev, bare, o.Replace); err != nil {
		return nil, err
	}
	if d.Objects, err = objects(prev, bare, o.Replace); err != nil {
		return nil, err
	}
	if o.Tenure {
		if err := record(prev, &d, d.Version); err != nil {
			return nil, err
		}
	}
	return finish(prev, d)
}

// finish builds the table of a draft with objects and writes its digest into
// the topology.
func finish(prev *Table, d topology.Draft) (*Table, error) {
	draft, err := topology.New(d)
	if err != nil {
		return nil, err
	}
	table, err := build(prev, draft)
	if err != nil {
		return nil, err
	}
	if err := table.checkOwners(d.Nodes); err != nil {
		return nil, err
	}
	d.Mapping = table.digest
	table.topo, err = topology.New(d)
	return table, err
}

// checkOwners refuses a table under which a node with weight owns nothing. nodes
// are the draft's, for the error's path.
func (t *Table) checkOwners(nodes []topology.Node) error {
	if t.compat() || t.pieces() == nil && !t.hash.Few() {
		return nil // by law, or the foreign mapping is what it is every node owns what its weight asks for
	}
	for i, share := range t.Shares() {
		n := t.topo.Node(i)
		if t.topo.Spec().OwnerWeight(n) == 0 || share > 0 {
			continue
		}
		at := slices.IndexFunc(nodes, func(m topology.Node) bool { return m.ID == n.ID })
		return &topology.FieldError{Path: fmt.Sprintf("nodes[%d].weight", at),
			Err: fmt.Errorf("node %q of weight %d would own nothing; %s", n.ID, n.Weight, t.remedy())}
	}
	return nil
}

// remedy says what gives every node something to own.
func (t *Table) remedy() string {
	switch {
	case t.hash.Few():
		return "the key hash has only 65,536 values: use xxh64, fewer nodes or more even weights"
	case t.kind == kindRing:
		return "raise ring.vnodes"
	}
	return fmt.Sprintf("a table of %d entries is too small for these weights: enlarge it or make the weights more even", t.slotCount())
}

// checkReplace refuses replacements that are none. The error's path is "replace".
func checkReplace(prev *Table, next *topology.Topology, replace map[string]string) error {
	taken := make(map[string]string, len(replace))
	for old, id := range replace {
		if other, twice := taken[id]; twice {
			first, second := min(old, other), max(old, other)
			return replaceErr("node %q cannot replace both %q and %q", id, first, second)
		}
		taken[id] = old
		switch {
		case !owns(prev.topology(), old):
			return replaceErr("node %q owns nothing in the version before, so %q cannot take its place; add %q instead", old, id, id)
		case owns(next, old):
			return replaceErr("node %q still owns keys in the new version, so %q cannot take its place; remove or drain %q in the same change", old, id, old)
		case owns(prev.topology(), id):
			return replaceErr("node %q owned keys already and cannot take the place of %q; remove %q instead", id, old, old)
		case !owns(next, id):
			return replaceErr("node %q owns nothing in the new version and cannot take the place of %q; add it with a weight", id, old)
		}
	}
	return nil
}

func replaceErr(format string, args ...any) error {
	return &topology.FieldError{Path: "replace", Err: fmt.Errorf(format, args...)}
}

// owns reports whether the node owns keys in t, which may be nil.
func owns(t *topology.Topology, id string) bool {
	if t == nil {
		return false
	}
	i := t.Index(id)
	return i >= 0 && t.Spec().OwnerWeight(t.Node(i)) > 0
}
