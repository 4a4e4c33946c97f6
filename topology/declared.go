package topology

import "slices"

// Declared is what an operator asked for: the contents of a cluster file. The
// controller turns it into the next version.
type Declared struct {
	Cluster string
	Spec    Spec
	Nodes   []Node
}

// Validate says what is wrong, as a *FieldError with a cluster file's path, or
// returns nil. Besides what New checks it refuses nodes of which none would
// own anything by weight; a declaration without nodes is legal (the last node
// was removed).
func (d Declared) Validate() error {
	if err := ValidateClusterName(d.Cluster); err != nil {
		return &FieldError{Path: "cluster", Err: err}
	}
	spec := d.Spec.Normal()
	if err := spec.Validate(); err != nil {
		return err
	}
	if err := ValidateNodes(spec, d.Nodes); err != nil {
		return err
	}
	if len(d.Nodes) > 0 && !slices.ContainsFunc(d.Nodes, func(n Node) bool { return n.Weight > 0 }) {
		return fieldErr("nodes", "every node has weight 0, so none would own a key; give one a weight above 0")
	}
	return nil
}
