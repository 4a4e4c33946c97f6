package placement

import (
	"slices"

	"github.com/shardd/shardd/topology"
)

// roster is the nodes of two topologies in one list, by ID.
type roster struct {
	ids      []string
	fromAt   []int  // roster index of each node of the topology before
	toAt     []int  // and of the one after
	from, to []node // by roster index; zero where a node is not in that topology
	changed  []bool // present on one side only, or another weight, or another zone or label that counts
}

// node is what a mapping depends on.
type node struct {
	weight uint32 // as owner
	zone   string
	text   string // what a foreign mapping hashes of it
	there  bool
}

// newRoster joins the nodes of two topologies; from may be nil.
func newRoster(from, to *topology.Topology) *roster {
	var before []topology.Node
	zones := to.Spec().ZoneAware
	if from != nil {
		before, zones = from.Nodes(), zones || from.Spec().ZoneAware
	}
	r := &roster{ids: unionOfIDs(before, to.Nodes())}
	spec := to.Spec()
	r.to, r.toAt = r.place(spec, to.Nodes())
	was := spec
	if from != nil {
		was = from.Spec()
	}
	r.from, r.fromAt = r.place(was, before)
	foreign := spec.Algorithm == topology.Compat && was.Algorithm == topology.Compat
	r.changed = make([]bool, len(r.ids))
	for i, a := range r.from {
		b := r.to[i]
		r.changed[i] = a.weight != b.weight || a.there && b.there && (zones && a.zone != b.zone || foreign && a.text != b.text)
	}
	return r
}

func unionOfIDs(a, b []topology.Node) []string {
	ids := make([]string, 0, len(a)+len(b))
	for _, list := range [][]topology.Node{a, b} {
		for _, n := range list {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// place puts nodes, sorted by ID, into the roster's order and says where.
func (r *roster) place(spec topology.Spec, nodes []topology.Node) (placed []node, at []int) {
	placed, at = make([]node, len(r.ids)), make([]int, len(nodes))
	j := 0
	for i, n := range nodes {
		for r.ids[j] != n.ID {
			j++
		}
		placed[j], at[i] = node{weight: spec.OwnerWeight(n), zone: n.Zone, there: true}, j
		if spec.Algorithm == topology.Compat {
			placed[j].text = spec.Compat.HashedText(n)
		}
	}
	return placed, at
}
