package keyhash

import (
	"hash/crc32"
	"math/bits"
	"unicode/utf8"
)

// The hashes of libhashkit (libmemcached) and twemproxy. Their C code takes
// bytes as char, which is signed on x86: signed and signed64 do the same.

func signed(b byte) uint32 { return uint32(int32(int8(b))) }

const (
	fnvOffset32 = 2166136261
	fnvPrime32  = 16777619
)

func libhashkit(k Kind, s string) uint32 {
	switch k {
	case OneAtATime:
		return oneAtATime(s)
	case FNV1:
		h := uint32(fnvOffset32)
		for i := range len(s) {
			h = h*fnvPrime32 ^ signed(s[i])
		}
		return h
	case FNV1A:
		h := uint32(fnvOffset32)
		for i := range len(s) {
			h = (h ^ signed(s[i])) * fnvPrime32
		}
		return h
	case FNV1A32:
		return FNV1A32From(fnvOffset32, s)
	case FNV1Low:
		h := uint64(fnvOffset)
		for i := range len(s) {
			h = h*fnvPrime ^ uint64(int64(int8(s[i])))
		}
		return uint32(h)
	case FNV1ALow:
		h := uint32(fnvOffset & 0xffffffff)
		for i := range len(s) {
			h = (h ^ signed(s[i])) * (fnvPrime & 0xffffffff)
		}
		return h
	case CRC16Wide:
		return crc16Wide(s)
	case Murmur2:
		return murmur2(s, 0xdeadbeef*uint32(len(s)))
	case Murmur3:
		return murmur3x86(s, 0xdeadbeef*uint32(len(s)))
	case Jenkins:
		return lookup3(s, 13)
	case Hsieh:
		return hsieh(s)
	case JavaString:
		return javaString(s)
	case IPv4Octets:
		return ipOctets(s)
	}
	return crc32.ChecksumIEEE(bytes(s))
}

// oneAtATime is Jenkins' hash (Dr. Dobb's, 1997).
func oneAtATime(s string) uint32 {
	h := uint32(0)
	for i := range len(s) {
		h += signed(s[i])
		h += h << 10
		h ^= h >> 6
	}
	h += h << 3
	h ^= h >> 11
	return h + h<<15
}

// crc16Wide is CRC-16/XMODEM whose state keeps what is shifted out of 16 bits.
func crc16Wide(s string) uint32 {
	h := uint32(0)
	for i := range len(s) {
		h = h<<8 ^ uint32(crcTables[0][byte(h>>8)^s[i]])
	}
	return h
}

// lookup3 is Jenkins' hashlittle (2006).
func lookup3(s string, initial uint32) uint32 {
	a := 0xdeadbeef + uint32(len(s)) + initial
	b, c := a, a
	if len(s) == 0 {
		return c
	}
	for ; len(s) > 12; s = s[12:] {
		a, b, c = lookup3Mix(a+le32(s), b+le32(s[4:]), c+le32(s[8:]))
	}
	var tail [12]byte
	copy(tail[:], s)
	t := string(tail[:])
	return lookup3Final(a+le32(t), b+le32(t[4:]), c+le32(t[8:]))
}

func lookup3Mix(a, b, c uint32) (uint32, uint32, uint32) {
	a = a - c ^ bits.RotateLeft32(c, 4)
	c += b
	b = b - a ^ bits.RotateLeft32(a, 6)
	a += c
	c = c - b ^ bits.RotateLeft32(b, 8)
	b += a
	a = a - c ^ bits.RotateLeft32(c, 16)
	c += b
	b = b - a ^ bits.RotateLeft32(a, 19)
	a += c
	c = c - b ^ bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func lookup3Final(a, b, c uint32) uint32 {
	c = c ^ b - bits.RotateLeft32(b, 14)
	a = a ^ c - bits.RotateLeft32(c, 11)
	b = b ^ a - bits.RotateLeft32(a, 25)
	c = c ^ b - bits.RotateLeft32(b, 16)
	a = a ^ c - bits.RotateLeft32(c, 4)
	b = b ^ a - bits.RotateLeft32(a, 14)
	return c ^ b - bits.RotateLeft32(b, 24)
}

// hsieh is SuperFastHash (Hsieh 2004) from 0, as twemproxy has it: of three
// bytes left over the last is signed.
func hsieh(s string) uint32 {
	if len(s) == 0 {
		return 0
	}
	h := uint32(0)
	for ; len(s) >= 4; s = s[4:] {
		h += le16(s)
		h = h<<16 ^ le16(s[2:])<<11 ^ h
		h += h >> 11
	}
	switch len(s) {
	case 3:
		h += le16(s)
		h ^= h << 16
		h ^= signed(s[2]) << 18
		h += h >> 11
	case 2:
		h += le16(s)
		h ^= h << 11
		h += h >> 17
	case 1:
		h += uint32(s[0])
		h ^= h << 10
		h += h >> 1
	}
	h ^= h << 3
	h += h >> 5
	h ^= h << 4
	h += h >> 17
	h ^= h << 25
	return h + h>>6
}

// javaString is String.hashCode of the text that s is in UTF-8: 31 h + u over
// its UTF-16 units.
func javaString(s string) uint32 {
	h := uint32(0)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xd800 + uint32(r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + uint32(r)
	}
	return h
}

func le16(s string) uint32 { return uint32(s[0]) | uint32(s[1])<<8 }

func le32(s string) uint32 { return le16(s) | le16(s[2:])<<16 }

func le64(s string) uint64 { return uint64(le32(s)) | uint64(le32(s[4:]))<<32 }
