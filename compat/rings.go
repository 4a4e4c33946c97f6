package compat

import (
	"cmp"
	"slices"

	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// ringRule is a ring: how many labels each server has, what points come from
// them, which point owns a hash, and what happens to equal points.
type ringRule struct {
	count  func(f topology.Foreign, live []server) []uint64
	points func(f topology.Foreign, s server, n uint64, put func(place uint64))
	lookup lookup
	ties   ties
	wide   bool // points of 64 bits; else 32, in the high half
}

type lookup uint8

const (
	lower   lookup = iota // first point not before the hash
	upper                 // first point after it
	nearest               // that, or the one before if that is not farther
)

type ties uint8

const (
	inOrder ties = iota // all stay, the first of the list owns
	onlyFirst
	onlyLast // the last writer
)

// ringRules has a line for each kind of ring.
func ringRules(f topology.Foreign, list []server) ringRule {
	switch f.Mode {
	case topology.ModeKetama:
		return ringRule{count: libmemcachedCount, points: md5Points(4)}
	case topology.ModeTwemproxy:
		return ringRule{count: libmemcachedCount, points: md5Points(4)}
	case topology.ModeLibmemcached:
		if libmemcachedWeighted(f, list) {
			return ringRule{count: libmemcachedCount, points: md5Points(4)}
		}
		return ringRule{count: each(100), points: keyHashPoints}
	case topology.ModeLibketama:
		return ringRule{count: libketamaCount, points: md5Points(4)}
	case topology.ModeSpymemcached:
		return ringRule{count: each(40), points: md5Points(4)}
	case topology.ModeNpmHashring:
		if f.Distribution == "hash_ring" {
			return ringRule{count: npmCount, points: digestPoints(3)}
		}
		return ringRule{count: npmCount, points: digestPoints(4)}
	case topology.ModeSerialx2018:
		return ringRule{count: serialxCount, points: md5Points(3), lookup: upper, ties: onlyLast}
	case topology.ModeSerialx:
		return ringRule{count: byWeight(1), points: serialxPoints, lookup: upper, ties: onlyLast, wide: true}
	case topology.ModeNginx:
		return ringRule{count: byWeight(160), points: nginxPoints, ties: onlyFirst}
	case topology.ModeMemcachedFast:
		return ringRule{count: byWeight(uint64(f.Points)), points: nginxPoints, ties: onlyFirst}
	case topology.ModeHAProxy:
		return ringRule{count: byWeight(16), points: haproxyPoints, lookup: nearest}
	case topology.ModeGroupcache:
		return ringRule{count: each(uint64(f.Points)), points: numberFirst, ties: onlyLast}
	case topology.ModeStathat:
		return ringRule{count: each(uint64(f.Points)), points: numberFirst, lookup: upper, ties: onlyLast}
	case topology.ModeGoZero:
		return ringRule{count: goZeroCount, points: murmurPoints, wide: true}
	case topology.ModeLafikl:
		return ringRule{count: each(uint64(f.Points)), points: blakePoints, ties: onlyLast, wide: true}
	case topology.ModeBuraksezer:
		return ringRule{count: each(uint64(f.Points)), points: xxhPoints, ties: onlyLast, wide: true}
	case topology.ModeEnvoyRing, topology.ModeGRPCRing:
		return ringRule{count: envoyCount, points: envoyPoints, wide: true}
	}
	return ringRule{count: each(0)}
}

// newRing returns the ring of live, the servers of all that take part, over n
// nodes.
func newRing(f topology.Foreign, n int, all, live []server) (*ring.Ring, error) {
	list := live
	down := make([]bool, n)
	if f.Mode == topology.ModeNginx { // points of servers that are down stay and are passed over
		list = slices.Clone(all)
		for i := range list {
			down[list[i].index] = list[i].weight == 0
			list[i].weight = list[i].OwnerWeight()
		}
	}
	points, err := placePoints(f, list)
	if err != nil {
		return nil, err
	}
	points = slices.DeleteFunc(points, func(p ring.Point) bool { return down[p.Owner] })
	return ring.FromPoints(n, points)
}

// placePoints returns the points of list, sorted, brought down to the lookup
// rule lower.
func placePoints(f topology.Foreign, list []server) ([]ring.Point, error) {
	rule := ringRules(f, list)
	counts, sum := rule.count(f, list), uint64(0)
	for _, c := range counts {
		sum += c
	}
	if sum > ring.MaxPoints {
		return nil, tooMany(sum)
	}
	points := make([]ring.Point, 0, sum)
	for i, s := range list {
		rule.points(f, s, counts[i], func(place uint64) {
			points = append(points, ring.Point{Place: place, Owner: uint16(s.index)})
		})
	}
	if len(points) > ring.MaxPoints {
		return nil, tooMany(uint64(len(points)))
	}
	points = unite(sortPoints(points), rule.ties)
	switch rule.lookup {
	case upper:
		points = oneLower(points, rule.wide)
	case nearest:
		points = halfway(points)
	}
	return points, nil
}

// sortPoints sorts by place, equal ones in the order they come in. With that order
// in the key it takes a third of a stable sort's time.
func sortPoints(points []ring.Point) []ring.Point {
	type entry struct {
		place uint64
		came  uint32
		owner uint16
	}
	entries := make([]entry, len(points))
	for i, p := range points {
		entries[i] = entry{p.Place, uint32(i), p.Owner}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.place != b.place {
			return cmp.Compare(a.place, b.place)
		}
		return int(a.came) - int(b.came)
	})
	for i, e := range entries {
		points[i] = ring.Point{Place: e.place, Owner: e.owner}
	}
	return points
}

// unite leaves one of equal points where the foreign ring has only one.
func unite(points []ring.Point, t ties) []ring.Point {
	if t == inOrder {
		return points
	}
	out := points[:0]
	for _, p := range points {
		switch {
		case len(out) == 0 || out[len(out)-1].Place != p.Place:
			out = append(out, p)
		case t == onlyLast:
			out[len(out)-1] = p
		}
	}
	return out
}

// oneLower moves all points one hash down, so that the first point not before a
// hash is the one that was the first after it. A point at 0 goes to the end.
func oneLower(points []ring.Point, wide bool) []ring.Point {
	unit := uint64(1)
	if !wide {
		unit = 1 << 32
	}
	zeros := 0
	for i := range points {
		if points[i].Place == 0 {
			zeros++
		}
		points[i].Place -= unit
	}
	return slices.Concat(points[zeros:], points[:zeros])
}

// halfway returns points that own what is nearest to the given ones: each stands
// on the last hash of 32 bits that is not farther from its point than from the
// next. Of equal points the first has what is before them and the place itself,
// the last what is behind.
func halfway(points []ring.Point) []ring.Point {
	if len(points) < 2 || points[0].Place == points[len(points)-1].Place {
		return points[:min(len(points), 1)]
	}
	out := make([]ring.Point, 0, len(points))
	for i, p := range points {
		next := points[(i+1)%len(points)].Place
		first := i == 0 || points[i-1].Place != p.Place
		switch {
		case next != p.Place:
			gap := uint32(next>>32) - uint32(p.Place>>32)
			out = append(out, ring.Point{Place: uint64(uint32(p.Place>>32)+gap/2) << 32, Owner: p.Owner})
		case first:
			out = append(out, p)
		}
	}
	// The last point's half may lie behind the wrap.
	if n := len(out); n > 1 && out[n-1].Place < out[n-2].Place {
		out = slices.Concat(out[n-1:], out[:n-1])
	}
	return out
}
