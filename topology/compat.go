package topology

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
)

// Compat is the algorithm of a spec that maps keys as a foreign system does:
// which one, and how it is configured, says Spec.Compat. It is not among
// Algorithms, which are this module's own.
const Compat Algorithm = "compat"

// Mode names a foreign mapping. The name is bound to one mapping for ever.
type Mode string

// The modes that can be published and routed with.
const (
	ModeRedisSlots    Mode = "redis-slots"    // Redis Cluster
	ModeKetama        Mode = "ketama"         // libmemcached KETAMA_WEIGHTED: PHP, pylibmc
	ModeLibketama     Mode = "libketama"      // the original library of Richard Jones
	ModeSpymemcached  Mode = "spymemcached"   // Java client
	ModeTwemproxy     Mode = "twemproxy"      // nutcracker
	ModeNginx         Mode = "nginx"          // hash ... consistent
	ModeMemcachedFast Mode = "memcached-fast" // Perl's Cache::Memcached::Fast
	ModeHAProxy       Mode = "haproxy"        // balance hash, uri, hdr, ...
	ModeLibmemcached  Mode = "libmemcached"   // all its distributions; only ketama_weighted can be published
	ModeGoRedisRing   Mode = "go-redis-ring"  // go-redis v9 Ring
	ModeGomemcache    Mode = "gomemcache"     // ServerList
	ModeGroupcache    Mode = "groupcache"     // consistenthash
	ModeGoZero        Mode = "go-zero"        // core/hash.ConsistentHash
	ModeJump          Mode = "jump"           // Jump over the plain list, as Go and Java libraries have it
	ModeEnvoyRing     Mode = "envoy-ring"     // ring_hash
	ModeEnvoyMaglev   Mode = "envoy-maglev"   // maglev
	ModeGRPCRing      Mode = "grpc-ring"      // grpc-go ring_hash
	ModeNpmHashring   Mode = "npm-hashring"   // npm hashring
)

// The modes for planning away from: they are read and compared, not published.
const (
	ModeSerialx     Mode = "serialx"       // serialx/hashring since 2020
	ModeSerialx2018 Mode = "serialx-2018"  // serialx/hashring until 2018
	ModeStathat     Mode = "stathat"       // stathat/consistent
	ModeLafikl      Mode = "lafikl"        // lafikl/consistent
	ModeBuraksezer  Mode = "buraksezer"    // buraksezer/consistent
	ModeDgryski     Mode = "dgryski"       // dgryski/go-rendezvous
	ModeTysonmote   Mode = "tysonmote"     // tysonmote/rendezvous
	ModeKkdaiMaglev Mode = "kkdai-maglev"  // kkdai/maglev
	ModeCilium      Mode = "cilium-maglev" // Cilium's service load balancer
	ModeCaddy       Mode = "caddy"         // reverse_proxy lb_policy header, uri_hash, ...
	ModeTraefik     Mode = "traefik-hrw"   // highest random weight
	ModeNginxHash   Mode = "nginx-hash"    // hash without consistent
	ModeNginxIPHash Mode = "nginx-ip-hash" // ip_hash; keys are IP addresses in text
)

// Foreign says which foreign mapping a spec follows, and its configuration under
// that system's own names and defaults. The zero value is none. Which fields a
// mode has is in the table at Modes; the others are zero in a normal value. It
// is comparable: equal values are equal mappings of equal nodes.
type Foreign struct {
	// Mode is the foreign system; "" = none, the algorithm is native.
	Mode Mode
	// Distribution is the variant within the mode: twemproxy and spymemcached
	// ketama (default) or modula; libmemcached modula (default), ketama,
	// ketama_weighted, consistent, ketama_spy; haproxy its hash_type, map-based
	// (default) or consistent; npm-hashring its compatibility, ketama (default)
	// or hash_ring; caddy the version whose rule holds, "2.6" (default) or "2.10".
	Distribution string
	// Hash is the key hash under the system's own name; the default is the
	// system's. haproxy calls it function.
	Hash string
	// HashTag is twemproxy's hash_tag: two printable ASCII characters or "".
	HashTag string
	// Avalanche is haproxy's word of that name. Without a function hash_type
	// consistent has it.
	Avalanche bool
	// SortHosts is libmemcached's SORT_HOSTS.
	SortHosts bool
	// Points is the number of points of a node: memcached-fast's ketama_points
	// (default 0: no ring), groupcache 50, go-zero 100 for weight 100, stathat
	// 20, lafikl 10, buraksezer 20.
	Points uint32
	// MinRingSize and MaxRingSize bound envoy-ring (1024, 8388608) and
	// grpc-ring (1024, 4096).
	MinRingSize, MaxRingSize uint32
	// TableSize is the number of entries of envoy-maglev and kkdai-maglev
	// (65537) and cilium-maglev (16381), a prime.
	TableSize uint32
	// Seed is cilium-maglev's hash seed, 12 bytes in base 64.
	Seed string
	// Partitions is buraksezer's number of partitions, default 271.
	Partitions uint32
	// Load is buraksezer's load factor, default 1.25, above 1.
	Load float64
	// DefaultPort is a port that npm-hashring leaves out of labels; 0 = none.
	DefaultPort uint32
	// Input is what part of a key haproxy hashes: "" all of it, "uri" the part
	// before the first question mark, "uri-whole" a request target as it is.
	Input string
	// Depth is how many directories of a uri count; 0 = all.
	Depth uint32
	// Threshold is redis-cli's --cluster-threshold in percent, default 2: a
	// node within it of its share keeps its slots.
	Threshold uint32
}

// Live reports whether f can be published and routed with. Modes that hash key
// and node together, and those that nobody should stay on, are for planning.
func (f Foreign) Live() bool {
	r, ok := modeRules[f.Mode]
	f = f.normal()
	switch {
	case !ok:
		return false
	case f.Mode == ModeLibmemcached:
		return f.Distribution == "ketama_weighted"
	case f.Mode == ModeTwemproxy:
		return f.Hash != "hsieh" // no recording of it exists
	}
	return r.live
}

// Weighted reports whether weights count. Where they do not, every node with a
// weight above 0 counts alike.
func (f Foreign) Weighted() bool {
	f = f.normal()
	if f.Distribution == "modula" {
		return f.Mode == ModeTwemproxy
	}
	return modeRules[f.Mode].weighted
}

// DownLeaves reports whether the foreign system maps the keys of a node marked
// down to others. Elsewhere a down node keeps its keys and requests go to the
// next in order, as under the native algorithms.
func (f Foreign) DownLeaves() bool { return modeRules[f.Mode].downLeaves }

// DefaultWeight is the weight of a node in a cluster file that states none: 1,
// under go-zero 100, which is its unit.
func (f Foreign) DefaultWeight() uint32 {
	if f.Mode == ModeGoZero {
		return 100
	}
	return 1
}

// ownerWeight is the weight by which n owns keys under f.
func (f Foreign) ownerWeight(n Node) uint32 {
	w := n.OwnerWeight()
	if n.State == StateDown && f.DownLeaves() {
		return 0
	}
	if w > 0 && !f.Weighted() {
		return 1
	}
	return w
}

// normal fills defaults in and clears what the mode does not have.
func (f Foreign) normal() Foreign {
	r, ok := modeRules[f.Mode]
	if !ok {
		return f
	}
	n := Foreign{Mode: f.Mode, Distribution: f.Distribution, Hash: f.Hash}
	if len(r.distributions) > 0 {
		setDefault(&n.Distribution, r.distributions[0])
	}
	n.Avalanche = f.Avalanche && r.has(paramAvalanche)
	if n.Mode == ModeHAProxy && n.Hash == "" {
		n.Avalanche = n.Avalanche || n.Distribution == "consistent"
	}
	if len(r.hashes) > 0 {
		setDefault(&n.Hash, r.hashes[0])
	}
	n.Hash = canonicalHash(n)
	if r.has(paramHashTag) {
		n.HashTag = f.HashTag
	}
	n.SortHosts = f.SortHosts && r.has(paramSortHosts)
	f.normalNumbers(&n, r)
	if r.has(paramInput) {
		n.Input, n.Depth = f.Input, f.Depth
	}
	return n
}

// normalNumbers copies the numbers that the mode has, with their defaults.
func (f Foreign) normalNumbers(n *Foreign, r modeRule) {
	take := func(p param, dst *uint32, v, otherwise uint32) {
		if r.has(p) {
			*dst = v
			setDefault(dst, otherwise)
		}
	}
	take(paramPoints, &n.Points, f.Points, r.points)
	take(paramRingSize, &n.MinRingSize, f.MinRingSize, 1024)
	take(paramRingSize, &n.MaxRingSize, f.MaxRingSize, r.maxRing)
	take(paramTableSize, &n.TableSize, f.TableSize, r.table)
	take(paramDefaultPort, &n.DefaultPort, f.DefaultPort, 0)
	take(paramThreshold, &n.Threshold, f.Threshold, 2)
	take(paramPartitions, &n.Partitions, f.Partitions, 271)
	if r.has(paramPartitions) {
		n.Load = f.Load
		setDefault(&n.Load, 1.25)
	}
	if r.has(paramSeed) {
		n.Seed = f.Seed
		setDefault(&n.Seed, defaultSeed)
	}
}

// defaultSeed is Cilium's own default.
const defaultSeed = "JLfvgnHc2kaSUFaI"

// canonicalHash resolves the names that a system has for one hash.
func canonicalHash(f Foreign) string {
	switch {
	case f.Mode == ModeLibmemcached && f.Hash == "default":
		if f.Distribution == "ketama_weighted" {
			return "md5" // setting that distribution selects it
		}
		return "one_at_a_time"
	case f.Mode == ModeEnvoyRing && f.Hash == "xx_hash":
		return "xxh64"
	case f.Mode == ModeEnvoyRing && f.Hash == "murmur_hash_2":
		return "murmur2"
	}
	return f.Hash
}

// validate says what is wrong with the normal form.
func (f Foreign) validate() error {
	r, ok := modeRules[f.Mode]
	if !ok {
		return fieldUnknown("compat.mode", "unknown mode %q; want one of %s", f.Mode, modeList())
	}
	if err := oneOf(r.distributionField(), f.Distribution, r.distributions); err != nil {
		return err
	}
	if err := oneOf(r.hashField(), f.Hash, r.hashes); err != nil {
		return err
	}
	if t := f.HashTag; t != "" && !validTag(t) {
		return fieldErr("compat.hash_tag", "hash tag %q: want two printable ASCII characters, such as {}, or nothing", t)
	}
	if f.Input != "" && f.Input != "uri" && f.Input != "uri-whole" {
		return fieldUnknown("compat.input", "unknown input %q; want uri, uri-whole or nothing", f.Input)
	}
	return f.validateNumbers(r)
}

func (f Foreign) validateNumbers(r modeRule) error {
	switch {
	case f.Points > MaxPoints:
		return fieldErr("compat.points", "%d points a node are more than %d", f.Points, MaxPoints)
	case f.MinRingSize > f.MaxRingSize:
		return fieldErr("compat.min_ring_size", "smallest ring of %d points is above the largest of %d", f.MinRingSize, f.MaxRingSize)
	case f.MaxRingSize > 1<<23:
		return fieldErr("compat.max_ring_size", "%d points are more than %d", f.MaxRingSize, 1<<23)
	case f.DefaultPort > math.MaxUint16:
		return fieldErr("compat.default_port", "port %d is above %d", f.DefaultPort, math.MaxUint16)
	case f.Threshold > 100:
		return fieldErr("compat.threshold", "%d percent are more than 100", f.Threshold)
	case f.Partitions > MaxSlots:
		return fieldErr("compat.partitions", "%d partitions are more than %d", f.Partitions, MaxSlots)
	case r.has(paramPartitions) && !(f.Load > 1 && f.Load <= MaxBoundedLoad):
		return fieldErr("compat.load", "load factor %v: want above 1, at most %d", f.Load, MaxBoundedLoad)
	case f.Depth > math.MaxUint8 || f.Depth > 0 && f.Input == "":
		return fieldErr("compat.depth", "depth %d: want 1 to %d, with input uri or uri-whole", f.Depth, math.MaxUint8)
	}
	if r.has(paramSeed) {
		if b, err := base64.StdEncoding.DecodeString(f.Seed); err != nil || len(b) != 12 {
			return fieldErr("compat.seed", "seed %q: want 12 bytes in base 64 (16 characters)", f.Seed)
		}
	}
	if r.has(paramTableSize) {
		return validateTableSize("compat.table_size", f.TableSize)
	}
	return nil
}

func oneOf(path, name string, known []string) error {
	if len(known) == 0 && name == "" || slices.Contains(known, name) {
		return nil
	}
	if len(known) == 0 {
		return fieldErr(path, "%q: this mode has no choice here; leave it out", name)
	}
	return fieldUnknown(path, "unknown %q; want one of %s", name, strings.Join(known, ", "))
}

func validTag(t string) bool {
	return len(t) == 2 && t[0] >= ' ' && t[1] >= ' ' && t[0] <= '~' && t[1] <= '~'
}
