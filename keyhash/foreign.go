package keyhash

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
	"github.com/spaolacci/murmur3"
	"golang.org/x/crypto/blake2b"
)

// The hashes of foreign systems, for mappings that keep theirs. Those of 32 bits
// and less stand in the high half of Sum, so that a point of 32 bits shifted
// likewise compares as before; Low32 says which. "Signed" bytes are extended
// with their sign, as C's char is on x86.
const (
	MD5         Kind = iota + 2 // first 4 bytes, little endian: ketama
	OneAtATime                  // Jenkins, signed bytes: libmemcached's default
	FNV1                        // 32 bits, signed bytes: libmemcached, twemproxy fnv1_32
	FNV1A                       // 32 bits, signed bytes: fnv1a_32
	FNV1Low                     // low half of 64 bits, signed bytes: their fnv1_64
	FNV1ALow                    // their fnv1a_64, which is a 32-bit state times 0x1b3
	CRC15                       // bits 16 to 30 of CRC-32: their crc, crc32; 15 bits
	CRC32                       // IEEE: crc32a, nginx, groupcache, HAProxy
	CRC16Wide                   // twemproxy's crc16: the state is never cut to 16 bits
	Murmur2                     // MurmurHash2, seed 0xdeadbeef x length: their murmur
	Murmur3                     // MurmurHash3 x86_32, seed 0xdeadbeef x length: libmemcached
	Jenkins                     // lookup3 hashlittle, initial value 13
	Hsieh                       // SuperFastHash from 0: twemproxy; read, not recorded
	SDBM                        // HAProxy
	DJB2                        // HAProxy
	WT6                         // HAProxy
	JavaString                  // String.hashCode of UTF-16 units, as unsigned 32 bits
	SHA1                        // first 4 bytes, little endian: npm hashring
	SHA256                      // first 4 bytes, little endian: npm hashring
	SHA512                      // first 4 bytes, little endian: npm hashring
	CRC32Prefix                 // CRC-32 of the first 256 bytes: gomemcache
	CRC32C                      // Castagnoli: tysonmote
	FNV1A32                     // 32 bits, plain bytes: Caddy
	CRC64                       // ECMA
	FNV1Std                     // FNV-1, 64 bits, plain bytes
	FNV1AStd                    // FNV-1a, 64 bits, plain bytes: Traefik
	Murmur64A                   // MurmurHash64A, seed 0xc70f6907: Envoy
	Murmur128                   // first half of MurmurHash3 x64_128, seed 0: go-zero
	Siphash                     // SipHash-2-4 under kkdai/maglev's first key
	Blake2b                     // first 8 bytes of BLAKE2b-512, little endian: lafikl
	MD5Signed                   // first 8 bytes, little endian, in the order of signed numbers: serialx
	IPv4Octets                  // nginx ip_hash of an address in text: below 6271
	numKinds
)

// foreignNames are in the order of the constants.
var foreignNames = [numKinds - MD5]string{"md5", "one_at_a_time", "fnv1_32", "fnv1a_32", "fnv1_64", "fnv1a_64", "crc15", "crc32", "crc16-wide",
	"murmur", "murmur3", "jenkins", "hsieh", "sdbm", "djb2", "wt6", "java", "sha1", "sha256", "sha512", "crc32-prefix", "crc32c", "fnv1a-32",
	"crc64", "fnv1", "fnv1a", "murmur64a", "murmur128", "siphash", "blake2b", "md5-signed", "ip-octets"}

// Low32 reports whether the hash proper is a number of 32 bits or less, which
// is Sum >> 32.
func (k Kind) Low32() bool { return k >= MD5 && k < CRC64 || k == IPv4Octets }

// foreign returns the hash of key under a foreign kind, 32 bits in the high half.
func (f Func) foreign(key string) uint64 {
	if f.input != 0 {
		key = f.part(key)
	}
	if f.kind >= CRC64 && f.kind != IPv4Octets {
		return wide(f.kind, key)
	}
	h := narrow(f.kind, key)
	if f.avalanche {
		h = Avalanche(h)
	}
	return uint64(h) << 32
}

// bytes is s as bytes that share its memory. What gets them only reads.
func bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// narrow is a hash of 32 bits.
func narrow(k Kind, s string) uint32 {
	switch k {
	case MD5:
		d := md5.Sum(bytes(s))
		return binary.LittleEndian.Uint32(d[:])
	case CRC32:
		return crc32.ChecksumIEEE(bytes(s))
	case CRC15:
		return crc32.ChecksumIEEE(bytes(s)) >> 16 & 0x7fff
	case CRC32Prefix:
		return crc32.ChecksumIEEE(bytes(s[:min(len(s), 256)]))
	case CRC32C:
		return crc32.Checksum(bytes(s), castagnoli)
	case SHA1:
		d := sha1.Sum(bytes(s))
		return binary.LittleEndian.Uint32(d[:])
	case SHA256:
		d := sha256.Sum256(bytes(s))
		return binary.LittleEndian.Uint32(d[:])
	case SHA512:
		d := sha512.Sum512(bytes(s))
		return binary.LittleEndian.Uint32(d[:])
	case SDBM, DJB2, WT6:
		return haproxy(k, s)
	}
	return libhashkit(k, s)
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	ecma       = crc64.MakeTable(crc64.ECMA)
)

// wide is a hash of 64 bits.
func wide(k Kind, s string) uint64 {
	switch k {
	case CRC64:
		return crc64.Checksum(bytes(s), ecma)
	case FNV1Std:
		return fnv1(s)
	case FNV1AStd:
		return FNV1AFrom(fnvOffset, s)
	case Murmur64A:
		return murmur64A(s, 0xc70f6907)
	case Murmur128:
		return murmur3.Sum64(bytes(s))
	case Siphash:
		return siphash.Hash(0xdeadbabe, 0, bytes(s))
	case Blake2b:
		d := blake2b.Sum512(bytes(s))
		return binary.LittleEndian.Uint64(d[:])
	case MD5Signed:
		d := md5.Sum(bytes(s))
		return binary.LittleEndian.Uint64(d[:]) ^ 1<<63
	}
	return xxhash.Sum64String(s)
}

// The 64-bit FNV parameters (Fowler, Noll and Vo).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func fnv1(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = h*fnvPrime ^ uint64(s[i])
	}
	return h
}

// FNV1AFrom continues a 64-bit FNV-1a hash h with s: the hash of key and s one
// after the other is FNV1AFrom(sum of key, s).
func FNV1AFrom(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// FNV1A32From continues a 32-bit FNV-1a hash with s.
func FNV1A32From(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * fnvPrime32
	}
	return h
}

// CRC32CFrom continues a CRC-32C with s.
func CRC32CFrom(h uint32, s string) uint32 { return crc32.Update(h, castagnoli, bytes(s)) }

// Narrow returns the hash of 32 bits itself, for labels of points; kinds of 64
// bits give their high half.
func (k Kind) Narrow(s string) uint32 {
	if !k.Low32() {
		return uint32(wide(k, s) >> 32)
	}
	return narrow(k, s)
}

// Wide returns the hash of 64 bits itself, for labels of points; a kind of 32
// bits stands in the high half.
func (k Kind) Wide(s string) uint64 { return Func{kind: k}.Sum(s) }
