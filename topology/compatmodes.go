package topology

import (
	"slices"
	"strings"
)

// param is one of the parameters that a mode may have besides distribution and
// hash.
type param uint16

const (
	paramHashTag param = 1 << iota
	paramAvalanche
	paramSortHosts
	paramPoints
	paramRingSize
	paramTableSize
	paramSeed
	paramPartitions
	paramDefaultPort
	paramInput
	paramThreshold
)

// modeRule is what the spec of a mode looks like. The mapping itself is in
// package compat.
type modeRule struct {
	live          bool
	weighted      bool
	downLeaves    bool     // a node marked down takes no part
	distributions []string // the first is the default
	hashes        []string // the first is the default
	params        param
	points        uint32 // default
	maxRing       uint32 // default
	table         uint32 // default
	haproxy       bool   // calls hash function and distribution hash_type
	npm           bool   // calls distribution compatibility
}

func (r modeRule) has(p param) bool { return r.params&p != 0 }

func (r modeRule) hashField() string {
	if r.haproxy {
		return "compat.function"
	}
	return "compat.hash"
}

func (r modeRule) distributionField() string {
	switch {
	case r.haproxy:
		return "compat.hash_type"
	case r.npm:
		return "compat.compatibility"
	}
	return "compat.distribution"
}

// modeRules has a line for each mode. It is never changed.
var modeRules = map[Mode]modeRule{
	ModeRedisSlots: {live: true, weighted: true, params: paramThreshold},
	ModeKetama: {live: true, weighted: true, params: paramSortHosts,
		hashes: []string{"md5", "one_at_a_time", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "murmur", "jenkins", "murmur3"}},
	ModeLibketama:    {live: true, weighted: true},
	ModeSpymemcached: {live: true, distributions: []string{"ketama", "modula"}},
	ModeTwemproxy: {live: true, weighted: true, params: paramHashTag, distributions: []string{"ketama", "modula"},
		hashes: []string{"fnv1a_64", "one_at_a_time", "md5", "crc16", "crc32", "crc32a", "fnv1_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins"}},
	ModeNginx:         {live: true, weighted: true, downLeaves: true},
	ModeMemcachedFast: {live: true, weighted: true, params: paramPoints},
	ModeHAProxy: {live: true, weighted: true, downLeaves: true, params: paramAvalanche | paramInput, haproxy: true,
		distributions: []string{"map-based", "consistent"}, hashes: []string{"sdbm", "djb2", "wt6", "crc32"}},
	ModeLibmemcached: {weighted: true, params: paramSortHosts,
		distributions: []string{"modula", "ketama", "ketama_weighted", "consistent", "ketama_spy"},
		hashes:        []string{"default", "one_at_a_time", "md5", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "murmur", "jenkins", "murmur3"}},
	ModeGoRedisRing: {live: true, downLeaves: true},
	ModeGomemcache:  {live: true},
	ModeGroupcache:  {live: true, params: paramPoints, points: 50},
	ModeGoZero:      {live: true, weighted: true, params: paramPoints, points: 100},
	ModeJump:        {live: true, hashes: []string{"xxh64", "crc32", "crc64", "fnv1", "fnv1a"}},
	ModeEnvoyRing: {live: true, weighted: true, downLeaves: true, params: paramRingSize, maxRing: 1 << 23,
		hashes: []string{"xxh64", "murmur2"}},
	ModeEnvoyMaglev: {live: true, weighted: true, downLeaves: true, params: paramTableSize, table: 65_537},
	ModeGRPCRing:    {live: true, weighted: true, params: paramRingSize, maxRing: 4096},
	ModeNpmHashring: {live: true, weighted: true, params: paramDefaultPort, npm: true,
		distributions: []string{"ketama", "hash_ring"}, hashes: []string{"md5", "sha1", "sha256", "sha512"}},

	ModeSerialx:     {weighted: true},
	ModeSerialx2018: {weighted: true},
	ModeStathat:     {params: paramPoints, points: 20},
	ModeLafikl:      {params: paramPoints, points: 10},
	ModeBuraksezer:  {params: paramPoints | paramPartitions, points: 20},
	ModeDgryski:     {},
	ModeTysonmote:   {},
	ModeKkdaiMaglev: {params: paramTableSize, table: 65_537},
	ModeCilium:      {weighted: true, downLeaves: true, params: paramTableSize | paramSeed, table: 16_381},
	ModeCaddy:       {downLeaves: true, distributions: []string{"2.6", "2.10"}},
	ModeTraefik:     {weighted: true, downLeaves: true},
	ModeNginxHash:   {weighted: true, downLeaves: true},
	ModeNginxIPHash: {weighted: true, downLeaves: true},
}

// Modes lists the foreign mappings: those that can be published first, each
// group by name.
//
//	mode             distribution                 hash             further parameters
//	redis-slots      -                            crc16 {}         threshold
//	ketama           -                            md5, ...         sort_hosts
//	libketama        -                            md5              -
//	spymemcached     ketama, modula               -                -
//	twemproxy        ketama, modula               fnv1a_64, ...    hash_tag
//	nginx            -                            crc32            -
//	memcached-fast   -                            crc32            points (ketama_points)
//	haproxy          map-based, consistent        sdbm, ...        avalanche, input, depth
//	libmemcached     modula, ketama, ...          default, ...     sort_hosts
//	groupcache, go-zero, stathat, lafikl          -                points
//	jump             -                            xxh64, ...       -
//	envoy-ring       -                            xxh64, murmur2   min_ring_size, max_ring_size
//	grpc-ring        -                            xxh64            min_ring_size, max_ring_size
//	npm-hashring     ketama, hash_ring            md5, ...         default_port
//	envoy-maglev, kkdai-maglev, cilium-maglev     -                table_size (cilium: seed)
//	buraksezer       -                            xxh64            points, partitions, load
//	caddy            2.6, 2.10                    -                -
func Modes() []Mode {
	modes := make([]Mode, 0, len(modeRules))
	for m := range modeRules {
		modes = append(modes, m)
	}
	slices.SortFunc(modes, func(a, b Mode) int {
		if x, y := (Foreign{Mode: a}).listed(), (Foreign{Mode: b}).listed(); x != y {
			return x - y
		}
		return strings.Compare(string(a), string(b))
	})
	return modes
}

// listed is 0 for modes of which some configuration can be published.
func (f Foreign) listed() int {
	if modeRules[f.Mode].live || f.Mode == ModeLibmemcached {
		return 0
	}
	return 1
}

func modeList() string {
	var names []string
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// Parameters lists the names that a cluster file's compat block may have under
// m besides mode; nil for an unknown mode.
func (m Mode) Parameters() []string {
	r, ok := modeRules[m]
	if !ok {
		return nil
	}
	names := []string{}
	if len(r.distributions) > 0 {
		names = append(names, strings.TrimPrefix(r.distributionField(), "compat."))
	}
	if len(r.hashes) > 0 {
		names = append(names, strings.TrimPrefix(r.hashField(), "compat."))
	}
	for _, p := range []struct {
		bit   param
		names []string
	}{
		{paramHashTag, []string{"hash_tag"}}, {paramAvalanche, []string{"avalanche"}}, {paramSortHosts, []string{"sort_hosts"}},
		{paramPoints, []string{"points"}}, {paramRingSize, []string{"min_ring_size", "max_ring_size"}}, {paramTableSize, []string{"table_size"}},
		{paramSeed, []string{"seed"}}, {paramPartitions, []string{"partitions", "load"}}, {paramDefaultPort, []string{"default_port"}},
		{paramInput, []string{"input", "depth"}}, {paramThreshold, []string{"threshold"}},
	} {
		if r.has(p.bit) {
			names = append(names, p.names...)
		}
	}
	return names
}

// Has reports whether a compat block of mode m may have a field of this name.
func (m Mode) Has(name string) bool { return slices.Contains(m.Parameters(), name) }

func parameterList(m Mode) string {
	if names := m.Parameters(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "none"
}
