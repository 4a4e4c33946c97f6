package compat

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash/crc32"
	"strconv"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

type pointFunc = func(f topology.Foreign, s server, n uint64, put func(place uint64))

// high puts a number of 32 bits where hashes of 32 bits stand.
func high(v uint32) uint64 { return uint64(v) << 32 }

// numbered calls fn for NAME-0, NAME-1, ...
func numbered(name string, n uint64, fn func(label []byte)) {
	label := append([]byte(name), '-')
	for j := range n {
		fn(strconv.AppendUint(label, j, 10))
	}
}

// md5Points is ketama: of each label's MD5 the first values of 4 bytes.
func md5Points(values int) pointFunc {
	return func(_ topology.Foreign, s server, n uint64, put func(uint64)) {
		numbered(s.name, n, func(label []byte) {
			d := md5.Sum(label)
			for v := range values {
				put(high(binary.LittleEndian.Uint32(d[4*v:])))
			}
		})
	}
}

// digestPoints is the same with the digest that npm hashring is told to use.
func digestPoints(values int) pointFunc {
	return func(f topology.Foreign, s server, n uint64, put func(uint64)) {
		numbered(s.name, n, func(label []byte) {
			d := digest(f.Hash, label)
			for v := range values {
				put(high(binary.LittleEndian.Uint32(d[4*v:])))
			}
		})
	}
}

func digest(name string, b []byte) []byte {
	switch name {
	case "sha1":
		d := sha1.Sum(b)
		return d[:]
	case "sha256":
		d := sha256.Sum256(b)
		return d[:]
	case "sha512":
		d := sha512.Sum512(b)
		return d[:]
	}
	d := md5.Sum(b)
	return d[:]
}

// keyHashPoints is libmemcached without weights: one point a label, under the
// hash of keys.
func keyHashPoints(f topology.Foreign, s server, n uint64, put func(uint64)) {
	kind := libhashkit[f.Hash]
	numbered(s.name, n, func(label []byte) { put(high(kind.Narrow(string(label)))) })
}

// nginxPoints is a chain: each point's CRC enters the next one's text.
func nginxPoints(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	host, port := splitNginx(s.name)
	text := append(append([]byte(host), 0), port...)
	base, prev := crc32.ChecksumIEEE(text), uint32(0)
	for range n {
		prev = crc32.Update(base, crc32.IEEETable, binary.LittleEndian.AppendUint32(nil, prev))
		put(high(prev))
	}
}

// haproxyPoints are numbers, not texts.
func haproxyPoints(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	for j := range n {
		put(high(keyhash.Avalanche(s.id*4096 + uint32(j))))
	}
}

// numberFirst is groupcache and stathat: 0NAME, 1NAME, ...
func numberFirst(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	for j := range n {
		put(high(keyhash.CRC32.Narrow(strconv.FormatUint(j, 10) + s.name)))
	}
}

// numberLast is NAME0, NAME1, ... under a hash of 64 bits.
func numberLast(kind keyhash.Kind, s server, n uint64, put func(uint64)) {
	for j := range n {
		put(kind.Wide(s.name + strconv.FormatUint(j, 10)))
	}
}

func murmurPoints(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	numberLast(keyhash.Murmur128, s, n, put)
}

func blakePoints(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	numberLast(keyhash.Blake2b, s, n, put)
}

func xxhPoints(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	numberLast(keyhash.XXH64, s, n, put)
}

// serialxPoints is NAME-0, ...; the other half of each MD5 would only tell
// points apart that agree in 64 bits.
func serialxPoints(_ topology.Foreign, s server, n uint64, put func(uint64)) {
	numbered(s.name, n, func(label []byte) { put(keyhash.MD5Signed.Wide(string(label))) })
}

// envoyPoints is NAME_0, NAME_1, ...
func envoyPoints(f topology.Foreign, s server, n uint64, put func(uint64)) {
	kind := keyhash.XXH64
	if f.Hash == "murmur2" {
		kind = keyhash.Murmur64A
	}
	for j := range n {
		put(kind.Wide(s.name + "_" + strconv.FormatUint(j, 10)))
	}
}
