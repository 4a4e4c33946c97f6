package exact

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// named is a spec with the name that a table gives it.
type named struct {
	name string
	spec topology.Spec
}

func ringSpecs() []named {
	return []named{
		{"40 points", topology.Spec{Algorithm: topology.Ring, VNodes: 40}},
		{"160 points", topology.Spec{Algorithm: topology.Ring, VNodes: 160}},
		{"1000 points", topology.Spec{Algorithm: topology.Ring, VNodes: 1000}},
	}
}

func jumpSpecs() []named {
	return []named{
		{"classic", topology.Spec{Algorithm: topology.Jump}},
		{"back", topology.Spec{Algorithm: topology.Jump, JumpVariant: topology.JumpBack}},
		{"classic, unit 16", topology.Spec{Algorithm: topology.Jump, JumpUnit: 16}},
	}
}

func rendezvousSpecs() []named {
	return []named{
		{"exact", topology.Spec{Algorithm: topology.Rendezvous}},
		{"table of 65536", topology.Spec{Algorithm: topology.Rendezvous, RendezvousTable: 65536}},
	}
}

func slotsSpecs() []named {
	return []named{
		{"16384", topology.Spec{Algorithm: topology.Slots}},
		{"65536", topology.Spec{Algorithm: topology.Slots, SlotCount: 65536}},
	}
}

// movement returns the table of what the changes of one node move, as multiples
// of the minimum that the weights ask for.
func movement(specs []named) func() (page.Table, error) {
	return func() (page.Table, error) {
		t := page.Table{Header: movementHeader()}
		for _, s := range specs {
			for _, n := range sizes {
				r, err := changes(s.spec, n)
				if err != nil {
					return t, err
				}
				t.Add(r.cells(s.name, n)...)
			}
		}
		return t, nil
	}
}

func movementHeader() []string {
	return []string{"", "N", "add one", "remove one", "weight x2", "replace one", "realised", "between unchanged"}
}

// ratios is what the changes of one node move.
type ratios struct {
	// of is what each moves as a multiple of the minimum by weight.
	of []float64
	// realised is the largest multiple of the least that leads to the shares
	// which the mappings really have, replacing apart.
	realised float64
	// needless is the largest share that goes between unchanged nodes, as a
	// multiple of the minimum.
	needless float64
}

func (r *ratios) note(c change, of, realised, needless float64) {
	r.of = append(r.of, of)
	r.needless = max(r.needless, needless)
	if c.replace == nil {
		r.realised = max(r.realised, realised)
	}
}

func (r ratios) cells(name string, n int) []string {
	cells := []string{name, count(n)}
	for _, x := range r.of {
		cells = append(cells, f(x, 2))
	}
	return append(cells, f(r.realised, 3), f(r.needless, 3))
}

// changes are add one, remove one, weight x2, replace one, each from n nodes of
// weight 1.
func changes(spec topology.Spec, n int) (ratios, error) {
	var r ratios
	from, err := placement.Update(nil, draft(spec, equal(names(n)), 1))
	if err != nil {
		return r, err
	}
	for _, c := range oneNode(n) {
		to, err := placement.UpdateWith(from, draft(spec, c.after, 2), placement.UpdateOptions{Replace: c.replace})
		if err != nil {
			return r, err
		}
		m, err := placement.Movement(from, to)
		if err != nil {
			return r, err
		}
		if m.Minimum == 0 || m.MinimumRealised == 0 {
			return r, fmt.Errorf("exact: %s of %d nodes moves nothing", c.name, n)
		}
		r.note(c, m.Ratio/m.Minimum, m.Ratio/m.MinimumRealised, m.BetweenUnchanged/m.Minimum)
	}
	return r, nil
}

// change is what the nodes are after a change.
type change struct {
	name    string
	after   []topology.Node
	replace map[string]string
}

// oneNode lists the changes of one node of n: the one in the middle, or a new
// one beside it.
func oneNode(n int) []change {
	list := equal(names(n))
	middle := n / 2
	extra := topology.Node{ID: list[middle].ID + "-b", Weight: 1}
	heavier := slices.Clone(list)
	heavier[middle].Weight = 2
	replaced := slices.Clone(list)
	replaced[middle] = extra
	return []change{
		{name: "add", after: append(slices.Clone(list), extra)},
		{name: "remove", after: slices.Delete(slices.Clone(list), middle, middle+1)},
		{name: "weight", after: heavier},
		{name: "replace", after: replaced, replace: map[string]string{list[middle].ID: extra.ID}},
	}
}

func equal(ids []string) []topology.Node {
	list := make([]topology.Node, len(ids))
	for i, id := range ids {
		list[i] = topology.Node{ID: id, Weight: 1}
	}
	return list
}

func draft(spec topology.Spec, nodes []topology.Node, seq uint64) topology.Draft {
	return topology.Draft{
		Cluster: "bench", ID: topology.ClusterID{1}, History: 1,
		Version: topology.Version{Epoch: 1, Seq: seq}, Spec: spec, Nodes: nodes,
	}
}
