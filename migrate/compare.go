package migrate

import (
	"fmt"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Comparison is what one change of nodes costs under each algorithm. Its JSON
// form: {"from","to","rows":[{"algorithm","movement":{...},"peak_before",
// "peak_after","forecast","note"}]}.
type Comparison struct {
	From string `json:"from"`
	To   string `json:"to"`
	Rows []Row  `json:"rows"`
}

// Row is one algorithm of a Comparison.
type Row struct {
	// Algorithm is a native algorithm, a foreign mode of the two sides, or Modulo.
	Algorithm string `json:"algorithm"`
	// Movement is nil where the algorithm refuses the change; see Note.
	Movement *placement.Summary `json:"movement"`
	// PeakBefore and PeakAfter are the largest ratio of a node's share to the
	// share that its weight asks for.
	PeakBefore float64 `json:"peak_before,omitempty"`
	PeakAfter  float64 `json:"peak_after,omitempty"`
	// Planned marks the row that is the change as asked for; the others are
	// the same change of nodes under another algorithm on both sides.
	Planned bool `json:"planned,omitempty"`
	// Forecast is there after Comparison.Forecast.
	Forecast *Forecast `json:"forecast,omitempty"`
	// Note says what else there is to know; may be empty.
	Note string `json:"note,omitempty"`
}

// Modulo names the row of hash(key) mod number of nodes.
const Modulo = "modulo"

// Compare plans the change of nodes from one side to the other under each
// native algorithm: from the source's nodes to the target's, parameters being
// those of the sides where they use that algorithm and else the defaults. The
// last row is a warning: hash(key) mod nodes, which many systems begin with.
func Compare(from, to Side) (*Comparison, error) {
	c := &Comparison{From: from.String(), To: to.String()}
	for _, a := range compared(from, to) {
		row, err := compareRow(from.Table, to.Table, a)
		if err != nil {
			return nil, err
		}
		c.Rows = append(c.Rows, row)
	}
	c.Rows = append(c.Rows, moduloRow(from.Table.Topology(), to.Table.Topology()))
	return c, nil
}

// compared returns the algorithms of the rows, in their order; the row after them is
// Modulo's. Rows are known by their places: a foreign mapping may be named as a
// native algorithm is.
func compared(from, to Side) []topology.Algorithm {
	list := topology.Algorithms()
	if isForeign(from) || isForeign(to) { // the row of the foreign mapping comes first
		list = append([]topology.Algorithm{topology.Compat}, list...)
	}
	return list
}

func isForeign(s Side) bool { return s.Table.Topology().Spec().Algorithm == topology.Compat }

func compareRow(from, to *placement.Table, a topology.Algorithm) (Row, error) {
	row := Row{Algorithm: string(a)}
	before, after, err := under(from, to, a)
	if err != nil {
		row.Note = "refused: " + err.Error()
		return row, nil
	}
	report, err := placement.MovementWith(before, after, placement.MovementOptions{MaxFlows: 1})
	if err != nil {
		return Row{}, fmt.Errorf("migrate: %s: %w", a, err)
	}
	row.Movement = &report.Summary
	row.PeakBefore, row.PeakAfter = before.Peak(), after.Peak()
	row.Planned = before == from && after == to
	if a == topology.Compat {
		row.Algorithm = after.Topology().Spec().Name()
	}
	return row, nil
}

// under returns the two mappings under algorithm a: the sides themselves where
// they use it.
func under(from, to *placement.Table, a topology.Algorithm) (before, after *placement.Table, err error) {
	f, t := from.Topology(), to.Topology()
	before, after = from, to
	if f.Spec().Algorithm != a {
		if before, err = Next(nil, topology.Declared{Cluster: f.Cluster(), Spec: with(f.Spec(), t.Spec(), a), Nodes: f.Nodes()}); err != nil {
			return nil, nil, err
		}
	}
	if before != from || t.Spec().Algorithm != a {
		spec := with(t.Spec(), f.Spec(), a)
		if after, err = Next(before, topology.Declared{Cluster: f.Cluster(), Spec: spec, Nodes: t.Nodes()}); err != nil {
			return nil, nil, err
		}
	}
	return before, after, nil
}

// with returns spec under algorithm a: unchanged if that is its own, with the
// parameters of other if that is the other's, else with the defaults.
func with(spec, other topology.Spec, a topology.Algorithm) topology.Spec {
	if spec.Algorithm == a {
		return spec
	}
	if a == topology.Compat {
		other.Replicas, other.ZoneAware, other.BoundedLoad = spec.Replicas, spec.ZoneAware, spec.BoundedLoad
		return other
	}
	if other.Algorithm == a {
		other.KeyHash, other.HashTag, other.Replicas = spec.KeyHash, spec.HashTag, spec.Replicas
		other.ZoneAware, other.BoundedLoad = spec.ZoneAware, spec.BoundedLoad
		return other
	}
	spec.Algorithm = a
	return spec.Normal() // clears the parameters of the old one
}
