package topology

import (
	"math"
	"math/big"
	"strings"
)

// Algorithm names a placement algorithm. The name is bound to one mapping for
// ever: a changed mapping gets a new name or a new mapping version.
type Algorithm string

// The native algorithms.
const (
	Ring       Algorithm = "ring"       // consistent-hashing ring with virtual nodes
	Jump       Algorithm = "jump"       // Jump over a bucket array with holes
	Rendezvous Algorithm = "rendezvous" // weighted highest random weight
	Maglev     Algorithm = "maglev"     // Maglev table, refilled on change
	Slots      Algorithm = "slots"      // fixed slots, refilled on change
)

// Algorithms lists the native algorithms in the order in which tables show them.
func Algorithms() []Algorithm { return []Algorithm{Ring, Jump, Rendezvous, Maglev, Slots} }

// KeyHash names the function from key to 64 bits.
type KeyHash string

// The native key hashes.
const (
	XXH64 KeyHash = "xxh64" // XXH64, seed 0; the default
	CRC16 KeyHash = "crc16" // CRC16/XMODEM as Redis Cluster uses it
)

// JumpVariant names the Jump function of a spec.
type JumpVariant string

// The Jump functions; each is a mapping of its own.
const (
	JumpClassic JumpVariant = "classic"  // Lamping and Veach 2014; the default
	JumpBack    JumpVariant = "jumpback" // Ertl 2024
)

// Defaults and limits of a spec.
const (
	DefaultVNodes    = 160
	DefaultTableSize = 65_537
	DefaultSlots     = 16_384

	MaxPoints      = 1 << 22   // ring points in all: vnodes x weight, summed
	MaxTableSize   = 4_194_301 // the largest prime below 2^22
	MaxSlots       = 1 << 16
	MaxBuckets     = 1 << 20 // Jump buckets in all: weight x unit, summed
	MaxReplicas    = 16
	MaxBoundedLoad = 1000
)

// Spec is all that two processes must agree on to map a key alike, besides the
// nodes and tables. Parameters of other algorithms than the chosen one are 0
// in a normal spec (see Normal).
type Spec struct {
	Algorithm Algorithm
	// VNodes is the ring's points per unit of weight, default 160.
	VNodes uint32
	// TableSize is Maglev's number of entries, a prime, default 65537.
	TableSize uint32
	// SlotCount is the number of slots, 1..65536, default 16384.
	SlotCount uint32
	// JumpUnit is the number of Jump buckets per unit of weight, default 1.
	JumpUnit uint32
	// JumpVariant is the Jump function, default classic.
	JumpVariant JumpVariant
	// RendezvousTable is the number of precomputed slots of rendezvous;
	// 0 = exact, no table. Another value is another mapping.
	RendezvousTable uint32
	// KeyHash is the key's hash, default xxh64.
	KeyHash KeyHash
	// HashTag is two characters; only what stands between the first of the
	// one and the next of the other is hashed, if that is not empty.
	// "" = the whole key. The default is "{}" for crc16, else "".
	HashTag string
	// Replicas is the number of distinct nodes that hold a key, 1..16,
	// default 1.
	Replicas uint32
	// ZoneAware asks for replicas in distinct zones while there are enough.
	ZoneAware bool
	// BoundedLoad is the factor c of bounded load: 0 = off, else 1..1000.
	BoundedLoad float64
	// Compat says which foreign mapping is followed where Algorithm is
	// Compat; zero elsewhere. Key hash and hash tag are then the mode's own,
	// and KeyHash and HashTag are "".
	Compat Foreign
}

// Normal returns the spec with defaults filled in and the parameters of other
// algorithms cleared, so that equal mappings have equal specs. HashTag is left
// as it is: "" means the whole key. A spec with a foreign mode and no algorithm
// gets the algorithm Compat.
func (s Spec) Normal() Spec {
	if s.Algorithm == "" && s.Compat.Mode != "" {
		s.Algorithm = Compat
	}
	n := Spec{Algorithm: s.Algorithm, KeyHash: s.KeyHash, HashTag: s.HashTag,
		Replicas: s.Replicas, ZoneAware: s.ZoneAware, BoundedLoad: s.BoundedLoad}
	if n.BoundedLoad == 0 {
		n.BoundedLoad = 0 // a negative zero would be equal and yet encode otherwise
	}
	setDefault(&n.Replicas, 1)
	if s.Algorithm == Compat {
		n.KeyHash, n.HashTag, n.Compat = "", "", s.Compat.normal()
		return n
	}
	setDefault(&n.KeyHash, XXH64)
	switch s.Algorithm {
	case Ring:
		n.VNodes = s.VNodes
		setDefault(&n.VNodes, DefaultVNodes)
	case Jump:
		n.JumpUnit, n.JumpVariant = s.JumpUnit, s.JumpVariant
		setDefault(&n.JumpUnit, 1)
		setDefault(&n.JumpVariant, JumpClassic)
	case Rendezvous:
		n.RendezvousTable = s.RendezvousTable
	case Maglev:
		n.TableSize = s.TableSize
		setDefault(&n.TableSize, DefaultTableSize)
	case Slots:
		n.SlotCount = s.SlotCount
		setDefault(&n.SlotCount, DefaultSlots)
	}
	return n
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Validate says what is wrong with the normal form of the spec, as a
// *FieldError with the path of a cluster file, or returns nil.
func (s Spec) Validate() error {
	s = s.Normal()
	if err := s.validateAlgorithm(); err != nil {
		return err
	}
	if s.Algorithm != Compat && s.KeyHash != XXH64 && s.KeyHash != CRC16 {
		return fieldUnknown("key_hash", "unknown key hash %q; want %s or %s", s.KeyHash, XXH64, CRC16)
	}
	if s.HashTag != "" && !validTag(s.HashTag) {
		return fieldErr("hash_tag", "hash tag %q: want two printable ASCII characters, such as {}, or nothing", s.HashTag)
	}
	if s.Replicas > MaxReplicas {
		return fieldErr("replicas", "%d replicas are more than %d", s.Replicas, MaxReplicas)
	}
	if c := s.BoundedLoad; math.IsNaN(c) || c != 0 && (c < 1 || c > MaxBoundedLoad) {
		return fieldErr("bounded_load", "factor %v: want 0 (off) or 1 to %d; below 1 not every key finds a node", c, MaxBoundedLoad)
	}
	return nil
}

func (s Spec) validateAlgorithm() error {
	switch s.Algorithm {
	case Ring:
		if s.VNodes > MaxPoints {
			return fieldErr("ring.vnodes", "%d points per unit of weight are more than %d", s.VNodes, MaxPoints)
		}
	case Jump:
		if s.JumpVariant != JumpClassic && s.JumpVariant != JumpBack {
			return fieldUnknown("jump.variant", "unknown variant %q; want %s or %s", s.JumpVariant, JumpClassic, JumpBack)
		}
		if s.JumpUnit > 256 {
			return fieldErr("jump.unit", "%d buckets per unit of weight are more than 256", s.JumpUnit)
		}
	case Rendezvous:
		if n := s.RendezvousTable; n != 0 && (n < 256 || n > 1<<20) {
			return fieldErr("rendezvous.table", "table of %d slots: want 0 (exact) or 256 to %d", n, 1<<20)
		}
	case Maglev:
		return validateTableSize("maglev.table_size", s.TableSize)
	case Compat:
		return s.Compat.validate()
	case Slots:
		if s.SlotCount > MaxSlots {
			return fieldErr("slots.count", "%d slots are more than %d", s.SlotCount, MaxSlots)
		}
	case "":
		return fieldErr("algorithm", "no algorithm; want one of %s", algorithmList())
	default:
		return fieldUnknown("algorithm", "unknown algorithm %q; want one of %s", s.Algorithm, algorithmList())
	}
	return nil
}

// Name returns the algorithm, or under Compat the mode.
func (s Spec) Name() string {
	if s.Algorithm == Compat {
		return string(s.Compat.Mode)
	}
	return string(s.Algorithm)
}

// OwnerWeight is the weight by which n owns keys under s: n.OwnerWeight, unless
// a foreign mapping ignores weights (then 1 for 0 < weight) or maps the keys of
// nodes that are down to others (then 0 for those).
func (s Spec) OwnerWeight(n Node) uint32 {
	if s.Algorithm != Compat {
		return n.OwnerWeight()
	}
	return s.Compat.ownerWeight(n)
}

func algorithmList() string {
	var names []string
	for _, a := range Algorithms() {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

func validateTableSize(path string, m uint32) error {
	if m < 3 || m > MaxTableSize {
		return fieldErr(path, "table size %d: want a prime from 3 to %d", m, MaxTableSize)
	}
	if isPrime(m) {
		return nil
	}
	next := m + 1
	for !isPrime(next) {
		next++
	}
	return fieldErr(path, "table size %d is not prime (a permutation would not reach every entry); the next prime is %d", m, next)
}

func isPrime(m uint32) bool { return new(big.Int).SetUint64(uint64(m)).ProbablyPrime(0) } // exact below 2^64
