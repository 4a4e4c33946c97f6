// Package keyhash turns a key into the 64-bit number that placement works with.
//
// Two processes route a key to the same node only if they hash it alike, so the
// hash and the hash-tag rule belong to the published specification of a
// cluster, and a Func is the value that stands for both.
//
//	xxh64  xxHash64 with seed 0 of the key's bytes (github.com/Cyan4973/xxHash,
//	       doc/xxhash_spec.md). The default. 64 bits, about 4 ns for 16 bytes.
//	crc16  CRC-16/XMODEM as Redis Cluster uses it, placed so that the top 14 of
//	       the 64 bits are crc & 16383: a multiply-high by 16384 slots gives
//	       exactly the Redis slot. 65,536 values in all.
//
// Beside these stand the hashes of foreign systems (foreign.go), for mappings that
// keep theirs: checked against the software that defines them, named by constants,
// and not accepted as a specification's own key hash.
//
// # Law
//
// Sum is a pure function of the bytes of the key: no seed, no state, the same
// on every architecture. With a hash tag all keys with the same tag have the
// same Sum. Bytes are bytes: no Unicode and no case rules.
//
// # What it does not do
//
// It is not a defence against chosen keys: neither hash is keyed. It does not
// decide that crc16 comes with the tag "{}"; whoever writes the specification
// says so.
package keyhash

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// Errors that New and ParseKind wrap. Both say what was given and what is
// accepted.
var (
	// ErrKind is returned for a hash that this build does not know. A client
	// that meets it keeps the topology it has: guessing would misroute.
	ErrKind = errors.New("keyhash: unknown key hash")
	// ErrTag is returned for a hash tag that is not two ASCII characters.
	ErrTag = errors.New("keyhash: bad hash tag")
)

// Kind names a hash function. The zero value is XXH64.
type Kind uint8

const (
	// XXH64 is xxHash64 with seed 0, "xxh64".
	XXH64 Kind = iota
	// CRC16 is CRC-16/XMODEM in the top bits, "crc16".
	CRC16
)

// String returns the name that specifications use, "xxh64" or "crc16", or that
// of a foreign hash.
func (k Kind) String() string {
	switch k {
	case XXH64:
		return "xxh64"
	case CRC16:
		return "crc16"
	}
	if k >= MD5 && k < numKinds {
		return foreignNames[k-MD5]
	}
	return fmt.Sprintf("keyhash.Kind(%d)", uint8(k))
}

// ParseKind returns the native Kind with that name. Names are exact: lower case, no
// blanks. Any other name, the empty one too, is an error that wraps ErrKind.
func ParseKind(name string) (Kind, error) {
	for _, k := range []Kind{XXH64, CRC16} {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("%w %q: use \"xxh64\" or \"crc16\"", ErrKind, name)
}

// Func is a key hash with its hash-tag rule: a small value, compared with ==,
// safe for any number of goroutines. The zero value is xxh64 without a tag.
type Func struct {
	kind        Kind
	tagged      bool
	open, close byte // 0 unless tagged
	avalanche   bool
	input       Input
	depth       uint8
}

// New returns the hash of that kind. tag is "" for none, or the two characters
// that a hash tag stands between, such as "{}": then only the bytes that Tag
// returns are hashed. The two may be equal ("||" hashes what stands between the
// first two bars) and must be printable ASCII, blank included: a character of
// several bytes would be taken apart.
//
// crc16 with tag "{}" is the rule of Redis Cluster; crc16 with tag "" hashes
// whole keys and agrees with Redis only for keys without a tag. The error wraps
// ErrKind or ErrTag.
func New(kind Kind, tag string) (Func, error) {
	if kind >= numKinds {
		return Func{}, fmt.Errorf("%w %v: use \"xxh64\" or \"crc16\"", ErrKind, kind)
	}
	if tag == "" {
		return Func{kind: kind}, nil
	}
	if len(tag) != 2 || !printable(tag[0]) || !printable(tag[1]) {
		return Func{}, fmt.Errorf("%w %q: give the opening and the closing character, both printable ASCII, such as \"{}\", or nothing", ErrTag, tag)
	}
	return Func{kind: kind, tagged: true, open: tag[0], close: tag[1]}, nil
}

// WithAvalanche returns f with HAProxy's full_hash after it; f must be a hash of
// 32 bits.
func (f Func) WithAvalanche() Func {
	f.avalanche = f.kind.Low32()
	return f
}

// WithInput returns f over a part of the key: see Input. depth is how many
// directories of a path count; 0 = all. f must be a foreign hash.
func (f Func) WithInput(in Input, depth uint8) Func {
	f.input, f.depth = in, depth
	return f
}

func printable(c byte) bool { return ' ' <= c && c <= '~' }

// Kind returns the hash function.
func (f Func) Kind() Kind { return f.kind }

// Tag returns the two characters of the hash tag, or "" if whole keys are hashed.
func (f Func) Tag() string {
	if !f.tagged {
		return ""
	}
	return string([]byte{f.open, f.close})
}

// String returns the kind, what is added to it and, if there is one, the tag:
// "xxh64", "crc16{}", "sdbm+avalanche".
func (f Func) String() string {
	s := f.kind.String()
	if f.avalanche {
		s += "+avalanche"
	}
	if f.input != InputKey {
		s += fmt.Sprintf(" of input %d, depth %d,", f.input, f.depth)
	}
	return s + f.Tag()
}

// SameHash reports whether f and g hash equal texts to equal numbers, whatever
// part of a key each takes.
func (f Func) SameHash(g Func) bool { return f.kind == g.kind && f.avalanche == g.avalanche }

// Plain reports that Sum(key) is xxhash.Sum64String(key) for every key. A hot
// loop may then call that itself and save a call, about 1 ns.
func (f Func) Plain() bool { return f == Func{} }

// Sum returns the hash of key. It allocates nothing.
func (f Func) Sum(key string) uint64 {
	if f.kind == CRC16 {
		if !f.tagged {
			return Spread(Checksum16(key))
		}
		return Spread(checksumTag(key, f.open, f.close))
	}
	if f.tagged {
		key = Tag(key, f.open, f.close)
	}
	if f.kind != XXH64 {
		return f.foreign(key)
	}
	return xxhash.Sum64String(key)
}

// SumBytes is Sum of a byte slice, without a copy of it.
func (f Func) SumBytes(key []byte) uint64 { return f.Sum(view(key)) }

// Bits returns how many bits Sum has: 64, 32, 16 for crc16, 15 or 13.
func (f Func) Bits() int {
	switch {
	case f.kind == CRC16:
		return 16
	case f.kind == CRC15 && !f.avalanche:
		return 15
	case f.kind == IPv4Octets:
		return 13
	case f.kind.Low32():
		return 32
	}
	return 64
}

// Few reports whether Values can be enumerated: 65,536 or fewer. The shares of
// nodes and what moves between two placements can then be counted instead of
// computed over the space of 64-bit numbers, and no placement can balance better
// than so many keys can.
func (f Func) Few() bool { return f.Bits() <= 16 }

// Values yields every value that Sum can have, each once and equally likely for
// random keys, in ascending order of the hash proper. It yields nothing where
// there are not Few.
func (f Func) Values() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		n, place := 0, func(v int) uint64 { return uint64(v) << 32 }
		switch f.Bits() {
		case 16:
			n, place = 1<<16, func(v int) uint64 { return Spread(uint16(v)) }
		case 15:
			n = 1 << 15
		case 13:
			n = IPHashValues
		}
		for v := range n {
			if !yield(place(v)) {
				return
			}
		}
	}
}

// Spread returns the 64-bit hash that stands for a CRC16: its low 14 bits, the
// Redis slot, become the high bits, and its two high bits become the low bits.
// So the slot is Spread(crc) * 16384 >> 64, computed in 128 bits.
func Spread(crc uint16) uint64 { return bits.RotateLeft64(uint64(crc), 50) }

// view is b as a string that shares its bytes. The functions that get it keep
// nothing of it, so a later change of b cannot be seen.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
