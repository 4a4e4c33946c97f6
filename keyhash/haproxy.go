package keyhash

import (
	"math/bits"
	"net/netip"
	"strings"
)

// haproxy is one of HAProxy's own hash functions (src/hash.c there), over
// unsigned bytes.
func haproxy(k Kind, s string) uint32 {
	switch k {
	case SDBM:
		h := uint32(0)
		for i := range len(s) {
			h = uint32(s[i]) + h<<6 + h<<16 - h
		}
		return h
	case DJB2:
		h := uint32(5381)
		for i := range len(s) {
			h = h<<5 + h + uint32(s[i])
		}
		return h
	}
	return wt6(s)
}

func wt6(s string) uint32 {
	a, b := uint32(0xa53c965a), uint32(0x5ca6953a)
	r, t := 6, 18
	for i := range len(s) {
		c := uint32(s[i])
		a, b = ^(a ^ c), ^(b + c)
		a, b = bits.RotateLeft32(b, r), bits.RotateLeft32(a, t)
		x := (a>>16 ^ b) & 0xffff
		r, t = int(x&31), int(x>>11)
	}
	return a ^ b
}

// Avalanche is HAProxy's full_hash: Jenkins' 32-bit integer hash in six shifts,
// times an odd number. HAProxy's points and its word avalanche use it.
func Avalanche(a uint32) uint32 {
	a = a + 0x7ed55d16 + a<<12
	a = a ^ 0xc761c23c ^ a>>19
	a = a + 0x165667b1 + a<<5
	a = (a + 0xd3a2646c) ^ a<<9
	a = a + 0xfd7046c5 + a<<3
	a = a ^ 0xb55a4f09 ^ a>>16
	return a * 3221225473
}

// Input says which part of a key is hashed before any tag: HAProxy's balance uri.
type Input uint8

// The inputs.
const (
	InputKey      Input = iota // the whole key
	InputPath                  // what stands before the first '?'
	InputWholeURI              // a request target with its query
)

// part returns the part of a request target that is hashed: before the query
// unless that counts, and before slash depth + 1 if depth is not 0.
func (f Func) part(key string) string {
	if f.depth > 0 {
		at := 0
		for range int(f.depth) + 1 {
			i := strings.IndexByte(key[at:], '/')
			if i < 0 {
				at = len(key) + 1
				break
			}
			at += i + 1
		}
		key = key[:at-1]
	}
	if f.input == InputPath {
		key, _, _ = strings.Cut(key, "?")
	}
	return key
}

// IPHashValues is the number of values that nginx's ip_hash has.
const IPHashValues = 6271

// ipOctets is nginx's ip_hash of an address in text: the first three bytes of an
// IPv4 address, all 16 of another. What is no address is hashed by its bytes.
func ipOctets(s string) uint32 { return IPOctetsFrom(89, s) }

// IPOctetsFrom continues ip_hash from h, as nginx does for another try.
func IPOctetsFrom(h uint32, s string) uint32 {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		for i := range len(s) {
			h = (h*113 + uint32(s[i])) % IPHashValues
		}
		return h
	case a.Is4():
		b := a.As4()
		for _, c := range b[:3] {
			h = (h*113 + uint32(c)) % IPHashValues
		}
		return h
	}
	for _, c := range a.As16() {
		h = (h*113 + uint32(c)) % IPHashValues
	}
	return h
}
