package placement

import (
	"errors"

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
}

// Update derives the next version from prev (nil for the first). d carries
// identity, version, spec, nodes and cause; its Objects, Mapping and Parent are
// filled in, and so is Cause.Kind if it is empty (see CauseKind). Tables of the
// same algorithm are refilled; after a change of algorithm or parameters under
// the same key hash and tag they are seeded from the old mapping and refilled.
// A node that is draining, joining, left or of weight 0 owns nothing. A refused
// input changes nothing: the error is a *topology.FieldError with the path of a
// cluster file, its indices those of d.Nodes as given.
func Update(prev *Table, d topology.Draft) (*Table, error) {
	return UpdateWith(prev, d, UpdateOptions{})
}

// UpdateWith is Update with options.
func UpdateWith(prev *Table, d topology.Draft, o UpdateOptions) (*Table, error) {
	return nil, errors.New("placement: not built yet")
}

// Kinds of cause, as CauseKind finds them; several are joined by ", ".
const (
	CauseCreated    = "created"           // no version before
	CauseAlgorithm  = "algorithm changed" // another algorithm
	CauseParameters = "parameters changed"
	CauseKeyHash    = "key hash changed" // key hash or hash tag
	CauseReplicas   = "replicas changed" // number of replicas or zone rule
	CauseAdded      = "nodes added"      // own keys now, did not before
	CauseRemoved    = "nodes removed"    // owned keys before, do not now
	CauseWeights    = "weights changed"
	CauseZones      = "zones changed"
	CauseDetails    = "details changed" // addresses, states, load bound: no key moves
	CauseNone       = "no change"
)

// CauseKind says in words what changes from prev (nil for none) to spec and nodes.
func CauseKind(prev *topology.Topology, spec topology.Spec, nodes []topology.Node) string {
	return CauseNone
}
