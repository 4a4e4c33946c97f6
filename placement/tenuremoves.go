package placement

import (
	"iter"
	"slices"

	"github.com/shardd/shardd/topology"
)

// zoned reports whether the spec has a zone rule that says something.
func zoned(s topology.Spec) bool { return s.ZoneAware && s.Replicas > 1 }

// movesOthers reports whether d moves keys otherwise than from nodes that lose
// weight and to nodes that gain some. changed says whether some node did.
func movesOthers(prev *Table, d *topology.Draft, changed bool) (bool, error) {
	spec := d.Spec.Normal()
	switch {
	case zoned(spec) && zonesMove(prev.topo, d):
		return true, nil
	case prev.compat() && spec.Compat.Mode != topology.ModeRedisSlots:
		return foreignMoves(prev, d)
	}
	return !changed && tablesDiffer(prev.topo, d.Objects), nil
}

// zonesMove reports whether an owner is in another zone, or copies are dealt to
// zones by other numbers.
func zonesMove(prev *topology.Topology, d *topology.Draft) bool {
	spec := d.Spec.Normal()
	for _, n := range d.Nodes {
		if i := prev.Index(n.ID); i >= 0 && prev.Node(i).Zone != n.Zone && spec.OwnerWeight(n) > 0 && spec.OwnerWeight(prev.Node(i)) > 0 {
			return true
		}
	}
	copies := int(spec.Replicas)
	return !slices.Equal(newZoning(spec, prev.Nodes(), copies).levels, newZoning(spec, d.Nodes, copies).levels)
}

func tablesDiffer(prev *topology.Topology, objects []*topology.Object) bool {
	for _, o := range objects {
		if was := prev.Object(o.Kind()); o.Kind() != topology.KindSince && (was == nil || was.Digest() != o.Digest()) {
			return true
		}
	}
	return false
}

// foreignMoves looks at a foreign mapping itself: where it consists of points or
// scores, and those of the nodes that stay are what they were, keys move from nodes
// that go and to nodes that come. Elsewhere every change moves others.
func foreignMoves(prev *Table, d *topology.Draft) (bool, error) {
	bare := *d
	bare.Tenure, bare.Mapping, bare.Objects = nil, topology.Digest{}, nil
	topo, err := topology.New(bare)
	if err != nil {
		return false, err
	}
	next, err := buildPlain(prev, topo)
	if err != nil {
		return false, err
	}
	switch {
	case next.digest == prev.digest:
		return false, nil
	case next.kind != prev.kind || zoned(topo.Spec()):
		return true, nil
	case next.kind == kindRing:
		return !sameSequence(ringOf(prev, topo), ringOf(next, prev.topo)), nil
	case next.kind == kindScore:
		return !sameSequence(scoresOf(prev, topo), scoresOf(next, prev.topo)), nil
	}
	return true, nil
}

// part is one point of a ring, or one node's score.
type part struct {
	node   string
	place  uint64
	name   string
	weight float64
}

// ringOf yields the points of those nodes that own keys in the other version, too.
func ringOf(t *Table, other *topology.Topology) iter.Seq[part] {
	stays := staying(t.topo, other)
	return func(yield func(part) bool) {
		for place, i := range t.ring.Points() {
			if stays[i] && !yield(part{node: t.topo.Node(i).ID, place: place}) {
				return
			}
		}
	}
}

func scoresOf(t *Table, other *topology.Topology) iter.Seq[part] {
	var list []part
	stays := staying(t.topo, other)
	t.foreign.Score.Each(func(i int, name string, weight float64) {
		if stays[i] {
			list = append(list, part{node: t.topo.Node(i).ID, name: name, weight: weight})
		}
	})
	return slices.Values(list)
}

// staying says of each node whether it owns keys in the other version, too.
func staying(t, other *topology.Topology) []bool {
	stays := make([]bool, t.Len())
	for i, n := range t.Nodes() {
		at := other.Index(n.ID)
		stays[i] = at >= 0 && other.Spec().OwnerWeight(other.Node(at)) > 0 && t.Spec().OwnerWeight(n) > 0
	}
	return stays
}

func sameSequence[T comparable](a, b iter.Seq[T]) bool {
	next, stop := iter.Pull(b)
	defer stop()
	for x := range a {
		if y, ok := next(); !ok || x != y {
			return false
		}
	}
	_, more := next()
	return !more
}
