package compat

import "github.com/shardd/shardd/topology"

// PortLeftOut returns the nodes, by index, that take part under f and whose
// label lacks their port because it is memcached's.
func PortLeftOut(f topology.Foreign, nodes []topology.Node) []int {
	f = topology.Spec{Compat: f}.Normal().Compat
	if f.Distribution == "ketama_spy" || engineOf(f) != engineRing {
		return nil
	}
	switch f.Mode {
	case topology.ModeKetama, topology.ModeTwemproxy, topology.ModeLibmemcached:
	default:
		return nil
	}
	var left []int
	for _, s := range servers(f, nodes) {
		if _, port := splitAddr(s.Addr); s.weight > 0 && s.Label == "" && port == memcachedPort {
			left = append(left, s.index)
		}
	}
	return left
}

// RoundedPoints says how many nodes have fewer points than their share of the
// weights asks for, in whole labels, because f computes it in floating-point
// numbers; how many points that are, and how many there should be in all.
func RoundedPoints(f topology.Foreign, nodes []topology.Node) (short, lost, all int) {
	f = topology.Spec{Compat: f}.Normal().Compat
	var live []server
	for _, s := range servers(f, nodes) {
		if s.weight > 0 {
			live = append(live, s)
		}
	}
	var counts []uint64
	switch {
	case len(live) == 0 || engineOf(f) != engineRing:
		return 0, 0, 0
	case f.Mode == topology.ModeKetama, f.Mode == topology.ModeTwemproxy, f.Mode == topology.ModeLibmemcached && libmemcachedWeighted(f, live):
		counts = libmemcachedCount(f, live)
	case f.Mode == topology.ModeLibketama:
		counts = libketamaCount(f, live)
	case f.Mode == topology.ModeNpmHashring:
		counts = npmCount(f, live)
	default:
		return 0, 0, 0
	}
	for i, exact := range serialxCount(f, live) { // in whole numbers
		all += 4 * int(exact)
		if counts[i] < exact {
			short++
			lost += 4 * int(exact-counts[i])
		}
	}
	return short, lost, all
}

// CountsOff reports whether f maps by a hash modulo the number of nodes, or of
// their weights, so that one more of them moves most keys.
func CountsOff(f topology.Foreign) bool {
	f = topology.Spec{Compat: f}.Normal().Compat
	switch engineOf(f) {
	case engineTries:
		return true
	case engineModulo:
		return f.TableSize == 0 && f.Partitions == 0
	}
	return false
}
