package placementtest

import (
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// moving are the foreign mappings in which a change of one node moves keys of
// others, and why. All live modes that are not here move the changed node's keys
// only.
var moving = map[topology.Mode]string{
	topology.ModeRedisSlots:   "the planner evens all nodes out, to a threshold",
	topology.ModeKetama:       "points of a node are rounded from its share of the weights, which a change of any changes",
	topology.ModeLibmemcached: "as ketama",
	topology.ModeLibketama:    "as ketama",
	topology.ModeTwemproxy:    "as ketama; modula divides by the number of servers",
	topology.ModeNpmHashring:  "as ketama",
	topology.ModeGomemcache:   "divides by the number of servers",
	topology.ModeJump:         "only the last node of the list can go without moving others' keys",
	topology.ModeEnvoyRing:    "the ring's size follows the smallest weight's share",
	topology.ModeGRPCRing:     "as envoy-ring",
	topology.ModeEnvoyMaglev:  "the table is built anew",
}

// movesOthers also knows the variants of a mode.
func movesOthers(f topology.Foreign) bool {
	_, ok := moving[f.Mode]
	return ok || f.Distribution == "modula" || f.Distribution == "map-based" || f.Mode == topology.ModeMemcachedFast && f.Points == 0
}

// Foreign returns a foreign mapping as a subject. What laws it cannot keep:
//
//   - moves: those of the list above, and modulo and map-based variants;
//   - shares: no bound is checked, for their hashes are not random enough; each
//     node must own something, as far as the mode gives it a point;
//   - replace: only redis-slots, whose table is state, has something to hand over;
//   - zones: no foreign system knows them; the wrapper would.
//
// A node's position is that of its name, so that the order of nodes is part of
// them, as it is in a foreign system's list.
func Foreign(name string, f topology.Foreign) Subject {
	spec := topology.Spec{Compat: f, Replicas: 2}.Normal()
	s := Subject{
		Name: name,
		Next: func(prev Mapping, nodes []topology.Node) (Mapping, error) {
			return next(prev, spec, placed(spec, nodes), nil)
		},
		Reload:   reload,
		History:  spec.Compat.Mode == topology.ModeRedisSlots,
		Moves:    movesOthers(spec.Compat),
		Weight:   spec.OwnerWeight,
		Replicas: 2,
		Shares:   shares,
	}
	return s
}

// placed gives nodes the positions of their names, and takes addresses away, of
// which several nodes drawn have the same. Under go-zero, where a name that is
// another with digits behind it makes a mapping for planning only, names end in a
// character that is no digit.
func placed(spec topology.Spec, nodes []topology.Node) []topology.Node {
	nodes = slices.Clone(nodes)
	for i, n := range nodes {
		nodes[i].Addr = ""
		nodes[i].Position = position(n.ID)
		switch spec.Compat.Mode {
		case topology.ModeHAProxy:
			nodes[i].Weight = min(n.Weight, 256)
		case topology.ModeGoZero:
			nodes[i].Label = n.ID + "/"
		}
	}
	return nodes
}

// position is a number of its own for each name that the laws use.
func position(id string) uint32 {
	if i := slices.Index(names, id); i >= 0 {
		return uint32(i + 1)
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "node-")); err == nil {
		return uint32(100 + n)
	}
	return 1_000_000 + crc32.ChecksumIEEE([]byte(id))>>8
}
