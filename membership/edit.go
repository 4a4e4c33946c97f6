package membership

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/topology"
)

// The functions below make edits; callers set Expect, By and Why. The result of
// every edit is checked as a whole (topology.Declared.Validate) before it is
// written.

// AddNode declares one more node. ErrExists if its id is taken.
func AddNode(n topology.Node) Edit {
	return Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
		if indexNode(d.Nodes, n.ID) >= 0 {
			return d, fmt.Errorf("%w: node %q; remove it first, or give the new one another id", ErrExists, n.ID)
		}
		d.Nodes = append(d.Nodes, n)
		return d, nil
	}}
}

// RemoveNode takes a node out of the declared state. ErrNoNode if it is not
// there. The last node may go: lookups then find no owner.
func RemoveNode(id string) Edit {
	return Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
		i := indexNode(d.Nodes, id)
		if i < 0 {
			return d, noNode(id)
		}
		d.Nodes = slices.Delete(d.Nodes, i, i+1)
		return d, nil
	}}
}

// SetWeight changes the weight of one node; 0 = it gives up its keys. ErrNoNode
// if it is not there.
func SetWeight(id string, weight uint32) Edit {
	return ChangeNode(id, func(n *topology.Node) error {
		n.Weight = weight
		return nil
	})
}

// ChangeNode changes one node in place. ErrNoNode if it is not there, ErrInvalid
// if change gives it another id.
func ChangeNode(id string, change func(*topology.Node) error) Edit {
	return Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
		i := indexNode(d.Nodes, id)
		if i < 0 {
			return d, noNode(id)
		}
		if err := change(&d.Nodes[i]); err != nil {
			return d, err
		}
		if d.Nodes[i].ID != id {
			return d, fmt.Errorf("%w: node %q cannot become %q; an id is for life, replace the node instead", ErrInvalid, id, d.Nodes[i].ID)
		}
		return d, nil
	}}
}

// ReplaceAll declares all of d, whatever was there before. ErrInvalid if d is
// for another cluster.
func ReplaceAll(d topology.Declared) Edit {
	return Edit{Whole: true, Apply: func(topology.Declared) (topology.Declared, error) { return d, nil }}
}

func indexNode(nodes []topology.Node, id string) int {
	return slices.IndexFunc(nodes, func(n topology.Node) bool { return n.ID == id })
}

func noNode(id string) error { return fmt.Errorf("%w: %q", ErrNoNode, id) }
