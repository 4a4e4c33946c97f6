package membership

import (
	"fmt"

	"github.com/shardd/shardd/topology"
)

// Drain makes a node give up its keys and stay; Undrain lets it have keys again.
// ErrNoNode if it is not there.
func Drain(id string) Edit {
	return ChangeNode(id, func(n *topology.Node) error {
		n.State = topology.StateDraining
		return nil
	})
}

// Undrain undoes Drain. ErrInvalid if the node does not drain.
func Undrain(id string) Edit {
	return ChangeNode(id, func(n *topology.Node) error {
		if n.State != topology.StateDraining {
			return fmt.Errorf("%w: node %q is %s, it does not drain", ErrInvalid, id, n.State)
		}
		n.State = topology.StateActive
		return nil
	})
}

// ReplaceNode puts by in the place of node id: it takes over the keys, where the
// algorithm has the indirection for that, and weight and zone where by leaves
// them out. ErrNoNode if id is not there, ErrExists if by is.
func ReplaceNode(id string, by topology.Node) Edit {
	return Edit{Replace: map[string]string{id: by.ID}, Apply: func(d topology.Declared) (topology.Declared, error) {
		i := indexNode(d.Nodes, id)
		if i < 0 {
			return d, noNode(id)
		}
		if indexNode(d.Nodes, by.ID) >= 0 {
			return d, fmt.Errorf("%w: node %q; give the new one another id", ErrExists, by.ID)
		}
		n := by
		if n.Zone == "" {
			n.Zone = d.Nodes[i].Zone
		}
		if n.Weight == 0 {
			n.Weight = d.Nodes[i].Weight
		}
		d.Nodes[i] = n
		return d, nil
	}}
}

// ForgetNode removes a node that owns nothing any more. ErrNoNode if it is not
// there, ErrInvalid if it owns keys: drain it first.
func ForgetNode(id string) Edit {
	return Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
		i := indexNode(d.Nodes, id)
		if i < 0 {
			return d, noNode(id)
		}
		if d.Nodes[i].OwnerWeight() > 0 {
			return d, fmt.Errorf("%w: node %q still owns keys; drain it first, or remove it, which takes them away at once", ErrInvalid, id)
		}
		return RemoveNode(id).Apply(d)
	}}
}
