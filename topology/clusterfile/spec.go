package clusterfile

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/shardd/shardd/topology"
)

var topFields = []string{"cluster", "algorithm", "ring", "jump", "rendezvous", "maglev", "slots",
	"key_hash", "hash_tag", "replicas", "bounded_load", "zone_aware", "nodes"}

// reader collects a declaration field by field.
type reader struct {
	d        topology.Declared
	hashTag  bool // whether the file gives a hash tag
	compat   *field
	blocks   []field
	gave     map[string]field
	nodeList ast.Node
}

func readFile(root ast.Node, empty bool) (topology.Declared, error) {
	fs, err := fields(root, "", append(slices.Clone(topFields), "compat"))
	if err != nil {
		return topology.Declared{}, err
	}
	r := &reader{gave: make(map[string]field, len(fs))}
	for _, f := range fs {
		r.gave[f.path] = f
		if err := r.field(f); err != nil {
			return topology.Declared{}, err
		}
	}
	if err := r.complete(root); err != nil {
		return topology.Declared{}, err
	}
	r.d.Spec = r.d.Spec.Normal()
	r.d.Nodes, err = readNodes(r.nodeList, r.d.Spec)
	if err == nil && len(r.d.Nodes) == 0 && !empty {
		err = fault(tokenOf(r.nodeList), "nodes", "empty; a cluster needs at least one node (shardd apply --empty declares one without; shardd node remove removes nodes of a running cluster)")
	}
	return r.d, err
}

func (r *reader) field(f field) (err error) {
	s := &r.d.Spec
	switch f.path {
	case "compat":
		r.compat = &f
		s.Algorithm = topology.Compat
		s.Compat, err = readCompat(f)
	case "cluster":
		r.d.Cluster, err = f.text()
	case "algorithm":
		s.Algorithm, err = choice[topology.Algorithm](f)
	case "key_hash":
		s.KeyHash, err = choice[topology.KeyHash](f)
	case "hash_tag":
		r.hashTag = true
		s.HashTag, err = f.text()
	case "replicas":
		s.Replicas, err = f.whole(1, topology.MaxReplicas)
	case "bounded_load":
		s.BoundedLoad, err = f.number()
	case "zone_aware":
		s.ZoneAware, err = f.truth()
	case "nodes":
		r.nodeList = f.value
	default:
		r.blocks = append(r.blocks, f)
		return r.block(f)
	}
	return err
}

// choice reads text of a fixed set, which Validate checks; "" is refused here,
// since Normal would take it for the default.
func choice[T ~string](f field) (T, error) {
	s, err := f.text()
	if err == nil && s == "" {
		err = fault(f.at(), f.path, "empty; leave the field out for the default")
	}
	return T(s), err
}

// block reads the parameters of one algorithm.
func (r *reader) block(f field) error {
	known := map[string][]string{"ring": {"vnodes"}, "jump": {"variant", "unit"}, "rendezvous": {"table"},
		"maglev": {"table_size"}, "slots": {"count"}}[f.path]
	fs, err := fields(f.node(), f.path, known)
	if err != nil {
		return err
	}
	for _, p := range fs {
		if err := r.parameter(p); err != nil {
			return err
		}
	}
	return nil
}

// node returns the field's value, or a null that stands at the key.
func (f field) node() ast.Node {
	if f.value == nil {
		return ast.Null(f.key)
	}
	return f.value
}

func (r *reader) parameter(f field) (err error) {
	s := &r.d.Spec
	switch f.path {
	case "ring.vnodes":
		s.VNodes, err = f.whole(1, topology.MaxPoints)
	case "jump.variant":
		s.JumpVariant, err = choice[topology.JumpVariant](f)
	case "jump.unit":
		s.JumpUnit, err = f.whole(1, 256)
	case "rendezvous.table":
		s.RendezvousTable, err = f.whole(0, 1<<20)
	case "maglev.table_size":
		s.TableSize, err = f.whole(3, topology.MaxTableSize)
	case "slots.count":
		s.SlotCount, err = f.whole(1, topology.MaxSlots)
	}
	return err
}

// complete checks what no single field shows.
func (r *reader) complete(root ast.Node) error {
	s := &r.d.Spec
	for _, name := range []string{"cluster", "algorithm", "nodes"} {
		if _, ok := r.gave[name]; !ok && (name != "algorithm" || r.compat == nil) {
			return fault(start(root), name, "missing; every cluster file names its cluster, its algorithm and its nodes")
		}
	}
	if r.compat != nil {
		return r.onlyCompat()
	}
	for _, b := range r.blocks {
		if b.path != string(s.Algorithm) && slices.Contains(topology.Algorithms(), s.Algorithm) {
			return fault(b.key, b.path, "parameters of %s, but the algorithm is %s; remove them or set algorithm: %s", b.path, s.Algorithm, b.path)
		}
	}
	if !r.hashTag {
		s.HashTag = topology.DefaultHashTag(s.KeyHash)
	}
	return nil
}

// onlyCompat refuses what stands beside a compat block and would contradict it.
func (r *reader) onlyCompat() error {
	for _, name := range []string{"algorithm", "key_hash", "hash_tag"} {
		if f, ok := r.gave[name]; ok {
			return fault(f.key, name, "stands beside compat, whose mode decides it; remove one or the other")
		}
	}
	for _, b := range r.blocks {
		return fault(b.key, b.path, "parameters of %s, but compat takes the place of an algorithm; remove them", b.path)
	}
	return nil
}

var nodeFields = []string{"id", "addr", "weight", "zone", "label", "state"}

// compatNodeFields are further ones under a foreign mapping.
var compatNodeFields = []string{"position", "slots"}

func readNodes(list ast.Node, spec topology.Spec) ([]topology.Node, error) {
	seq, ok := list.(ast.ArrayNode)
	if !ok {
		return nil, fault(tokenOf(list), "nodes", "want a list of nodes, not %s; a cluster needs at least one node", kindOf(list))
	}
	var nodes []topology.Node
	for it := seq.ArrayRange(); it.Next(); {
		n, err := readNode(it.Value(), len(nodes), spec)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func readNode(node ast.Node, i int, spec topology.Spec) (topology.Node, error) {
	path, known := fmt.Sprintf("nodes[%d]", i), nodeFields
	n := topology.Node{Weight: 1}
	if spec.Algorithm == topology.Compat {
		n.Weight, n.Position = spec.Compat.DefaultWeight(), uint32(i+1)
		known = slices.Concat(nodeFields, compatNodeFields)
	}
	fs, err := fields(node, path, known)
	if err != nil {
		return n, err
	}
	for _, f := range fs {
		if err := nodeField(&n, f, f.path[len(path)+1:]); err != nil {
			return n, err
		}
	}
	return n, nil
}

func nodeField(n *topology.Node, f field, name string) (err error) {
	switch name {
	case "id":
		n.ID, err = f.text()
	case "addr":
		n.Addr, err = f.text()
	case "zone":
		n.Zone, err = f.text()
	case "label":
		n.Label, err = f.label()
	case "weight":
		n.Weight, err = f.whole(0, topology.MaxWeight)
	case "position":
		n.Position, err = f.whole(1, topology.MaxPosition)
	case "slots":
		n.Slots, err = f.text()
	case "state":
		var name string
		if name, err = f.text(); err != nil {
			return err
		}
		if n.State, err = topology.ParseState(name); err != nil {
			err = fault(f.at(), f.path, "unknown state %q; want active, joining, draining, down or left", name)
		}
	}
	return err
}
