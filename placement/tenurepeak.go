package placement

import (
	"slices"
	"sort"

	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// peak is the mapping in which every node that was there since the floor stands
// with its largest weight: who comes before a key's server there had the key once,
// or was ahead of its server. For ring and rendezvous, whose order of two nodes does
// not depend on the others.
type peak struct {
	table  *Table
	nodes  []topology.NodeTenure // by index in table; zero of those that never changed
	now    []int                 // the same: index in the topology, or -1
	weight []uint32              // the same: the weight by which it serves now
	levels []map[uint64]uint32   // under ring, of nodes that have had several weights: place -> weight from which the point is there
}

// newPeak returns nil if there would be too many points, say.
func newPeak(t *Table, r *topology.Tenure) *peak {
	topo, err := topology.New(peakDraft(t.topo, r))
	if err != nil {
		return nil
	}
	p := &peak{}
	if p.table, err = buildPlain(t, topo); err != nil {
		return nil
	}
	for _, n := range topo.Nodes() {
		i, weight := t.topo.Index(n.ID), uint32(0)
		if i >= 0 {
			weight = servingWeight(t.topo.Spec(), t.topo.Node(i))
		}
		p.nodes, p.now, p.weight = append(p.nodes, r.Node(n.ID)), append(p.now, i), append(p.weight, weight)
	}
	if t.kind == kindRing {
		p.levels = make([]map[uint64]uint32, topo.Len())
		for k, n := range p.nodes {
			if p.levels[k], err = pointLevels(n, p.weight[k], t.ring.Vnodes()); err != nil {
				return nil
			}
		}
	}
	return p
}

func peakDraft(t *topology.Topology, r *topology.Tenure) topology.Draft {
	d := t.Draft()
	d.Objects, d.Transition, d.Mapping, d.Tenure = nil, nil, topology.Digest{}, nil
	d.Spec.ZoneAware = false
	gone := map[string]uint32{}
	for _, n := range r.Nodes {
		gone[n.ID] = n.Peak
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if w := max(gone[n.ID], n.OwnerWeight()); w > 0 {
			n.Weight, n.State = w, topology.StateActive
		}
		delete(gone, n.ID)
	}
	for id, w := range gone {
		d.Nodes = append(d.Nodes, topology.Node{ID: id, Weight: w})
	}
	return d
}

// pointLevels lists the weights from which on the node's points are there; nil of
// a node that has had one weight, or none.
func pointLevels(n topology.NodeTenure, now uint32, vnodes uint32) (map[uint64]uint32, error) {
	if len(n.Steps) == 0 && (now == 0 || now >= n.Peak) {
		return nil, nil
	}
	weights := []uint32{n.Peak, n.Least, now}
	for _, s := range n.Steps {
		weights = append(weights, s.Weight)
	}
	slices.Sort(weights)
	levels := make(map[uint64]uint32, int(n.Peak)*int(vnodes))
	for _, w := range slices.Backward(slices.Compact(weights)) {
		points, err := ring.New([]string{n.ID}, []uint32{w}, vnodes)
		if err != nil {
			return nil, err
		}
		for place := range points.Points() {
			levels[place] = w // the points of less weight are among them
		}
	}
	return levels, nil
}

// look reports false where the table does not tell.
func (p *peak) look(g *gap, t *Table, q *question) bool {
	if t.kind == kindRing {
		return p.walk(g, t, q)
	}
	k := p.table.topo.Index(t.topo.Node(q.i).ID)
	if p.weight[k] != p.table.topo.Node(k).Weight {
		return false // it shrank: with its largest weight it stands further in front
	}
	g.own = p.nodes[k].Gained
	var room [4 * topology.MaxReplicas]int
	for n := 4 * q.copies; ; n *= 4 {
		order := p.table.AppendReplicas(room[:0], q.h, n)
		if at := slices.Index(order, k); at >= 0 {
			for _, k := range order[:at] {
				if q.zoned || !slices.Contains(q.ahead, p.now[k]) {
					g.add(p.nodes[k].Lost)
				}
			}
			return true
		}
		if len(order) < n {
			return false
		}
	}
}

// walk goes from point to point, as a lookup on the ring does: to the first that is
// node i's now.
func (p *peak) walk(g *gap, t *Table, q *question) bool {
	points := p.table.ring
	n := points.NumPoints()
	at := sort.Search(n, func(k int) bool { place, _ := points.Point(k); return place >= q.h })
	var met [16]nodeAhead
	list := met[:0]
	for range min(n, mostEntries) {
		if at == n {
			at = 0
		}
		place, k := points.Point(at)
		w := p.table.topo.Node(k).Weight
		if l, ok := p.levels[k][place]; ok {
			w = l
		}
		stands := p.weight[k] >= w
		if stands && p.now[k] == q.i {
			g.own = risen(p.nodes[k], w)
			p.passed(g, t, q, list)
			return true
		}
		if p.now[k] != q.i {
			list = meet(list, k, stands, fallen(p.nodes[k], w))
		}
		at++
	}
	return false
}

// nodeAhead is a node whose points were met.
type nodeAhead struct {
	node   int
	stands bool             // one of them is there now
	fallen topology.Version // when the last of the others went
}

func meet(list []nodeAhead, k int, stands bool, fallen topology.Version) []nodeAhead {
	at := slices.IndexFunc(list, func(n nodeAhead) bool { return n.node == k })
	if at < 0 {
		at, list = len(list), append(list, nodeAhead{node: k})
	}
	if n := &list[at]; stands {
		n.stands = true
	} else {
		n.fallen = later(n.fallen, fallen)
	}
	return list
}

// passed notes what became of the nodes ahead. Under the zone rule one that is there
// now may have been in another zone before it left.
func (p *peak) passed(g *gap, t *Table, q *question, list []nodeAhead) {
	for _, n := range list {
		switch {
		case q.zoned:
			g.add(later(n.fallen, p.nodes[n.node].Lost))
		case !n.stands && t.zoned: // it may have kept its zone's place while it was down
			g.add(later(n.fallen, p.nodes[n.node].Lost))
		case !n.stands:
			g.add(n.fallen)
		}
	}
}
