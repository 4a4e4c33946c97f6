package compat

import (
	"fmt"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

type engine uint8

const (
	engineNone engine = iota // redis-slots
	engineRing
	engineModulo
	engineJump
	engineScore
	engineKeyed
	engineTries // a table, and tries by the key where nodes are down
)

// modeEngines gives the engine of each mode; those with distributions of several
// kinds are in engineOf.
var modeEngines = map[topology.Mode]engine{
	topology.ModeKetama: engineRing, topology.ModeLibketama: engineRing, topology.ModeNginx: engineRing, topology.ModeGroupcache: engineRing,
	topology.ModeGoZero: engineRing, topology.ModeEnvoyRing: engineRing, topology.ModeGRPCRing: engineRing, topology.ModeNpmHashring: engineRing,
	topology.ModeSerialx: engineRing, topology.ModeSerialx2018: engineRing, topology.ModeStathat: engineRing, topology.ModeLafikl: engineRing,
	topology.ModeSpymemcached: engineRing, topology.ModeTwemproxy: engineRing, topology.ModeLibmemcached: engineRing,

	topology.ModeGomemcache: engineModulo, topology.ModeEnvoyMaglev: engineModulo, topology.ModeKkdaiMaglev: engineModulo,
	topology.ModeCilium: engineModulo, topology.ModeBuraksezer: engineModulo, topology.ModeHAProxy: engineModulo, topology.ModeMemcachedFast: engineModulo,

	topology.ModeJump:        engineJump,
	topology.ModeGoRedisRing: engineScore, topology.ModeDgryski: engineScore, topology.ModeTysonmote: engineScore,
	topology.ModeTraefik: engineScore, topology.ModeCaddy: engineScore,
	topology.ModeNginxHash: engineTries, topology.ModeNginxIPHash: engineTries,
}

func engineOf(f topology.Foreign) engine {
	switch {
	case f.Distribution == "modula":
		return engineModulo
	case f.Mode == topology.ModeHAProxy && f.Distribution == "consistent", f.Mode == topology.ModeMemcachedFast && f.Points > 0:
		return engineRing
	case f.Mode == topology.ModeCaddy && f.Distribution == "2.10":
		return engineKeyed
	}
	return modeEngines[f.Mode]
}

// libhashkit and twemproxy are what those call their hashes.
var (
	libhashkit = map[string]keyhash.Kind{"md5": keyhash.MD5, "one_at_a_time": keyhash.OneAtATime, "crc": keyhash.CRC15, "fnv1_64": keyhash.FNV1Low,
		"fnv1a_64": keyhash.FNV1ALow, "fnv1_32": keyhash.FNV1, "fnv1a_32": keyhash.FNV1A, "murmur": keyhash.Murmur2, "jenkins": keyhash.Jenkins, "murmur3": keyhash.Murmur3}
	twemproxy = map[string]keyhash.Kind{"one_at_a_time": keyhash.OneAtATime, "md5": keyhash.MD5, "crc16": keyhash.CRC16Wide, "crc32": keyhash.CRC15,
		"crc32a": keyhash.CRC32, "fnv1_64": keyhash.FNV1Low, "fnv1a_64": keyhash.FNV1ALow, "fnv1_32": keyhash.FNV1, "fnv1a_32": keyhash.FNV1A,
		"hsieh": keyhash.Hsieh, "murmur": keyhash.Murmur2, "jenkins": keyhash.Jenkins}
)

// modeHashes gives the hash of keys by name, "" where there is no choice.
var modeHashes = map[topology.Mode]map[string]keyhash.Kind{
	topology.ModeRedisSlots: {"": keyhash.CRC16}, topology.ModeKetama: libhashkit, topology.ModeLibmemcached: libhashkit, topology.ModeTwemproxy: twemproxy,
	topology.ModeLibketama: {"": keyhash.MD5}, topology.ModeSpymemcached: {"": keyhash.MD5}, topology.ModeNginx: {"": keyhash.CRC32},
	topology.ModeMemcachedFast: {"": keyhash.CRC32},
	topology.ModeHAProxy:       {"sdbm": keyhash.SDBM, "djb2": keyhash.DJB2, "wt6": keyhash.WT6, "crc32": keyhash.CRC32},
	topology.ModeGoRedisRing:   {"": keyhash.XXH64}, topology.ModeDgryski: {"": keyhash.XXH64}, topology.ModeBuraksezer: {"": keyhash.XXH64},
	topology.ModeEnvoyMaglev: {"": keyhash.XXH64}, topology.ModeGRPCRing: {"": keyhash.XXH64}, topology.ModeCilium: {"": keyhash.XXH64},
	topology.ModeEnvoyRing: {"xxh64": keyhash.XXH64, "murmur2": keyhash.Murmur64A}, topology.ModeGomemcache: {"": keyhash.CRC32Prefix},
	topology.ModeGroupcache: {"": keyhash.CRC32}, topology.ModeStathat: {"": keyhash.CRC32}, topology.ModeGoZero: {"": keyhash.Murmur128},
	topology.ModeJump:        {"xxh64": keyhash.XXH64, "crc32": keyhash.CRC32, "crc64": keyhash.CRC64, "fnv1": keyhash.FNV1Std, "fnv1a": keyhash.FNV1AStd},
	topology.ModeNpmHashring: {"md5": keyhash.MD5, "sha1": keyhash.SHA1, "sha256": keyhash.SHA256, "sha512": keyhash.SHA512},
	topology.ModeSerialx:     {"": keyhash.MD5Signed}, topology.ModeSerialx2018: {"": keyhash.MD5}, topology.ModeLafikl: {"": keyhash.Blake2b},
	topology.ModeTysonmote: {"": keyhash.CRC32C}, topology.ModeKkdaiMaglev: {"": keyhash.Siphash}, topology.ModeCaddy: {"": keyhash.FNV1A32},
	topology.ModeTraefik: {"": keyhash.FNV1AStd}, topology.ModeNginxHash: {"": keyhash.CRC15}, topology.ModeNginxIPHash: {"": keyhash.IPv4Octets},
}

// KeyHash returns the hash of keys, with its tag rule, under f.
func KeyHash(f topology.Foreign) (keyhash.Func, error) {
	return keyHash(topology.Spec{Compat: f}.Normal().Compat)
}

func keyHash(f topology.Foreign) (keyhash.Func, error) {
	kind, ok := modeHashes[f.Mode][f.Hash]
	if !ok {
		return keyhash.Func{}, fmt.Errorf("compat: mode %s has no hash %q", f.Mode, f.Hash)
	}
	tag := f.HashTag
	switch {
	case f.Mode == topology.ModeSpymemcached && f.Distribution == "modula":
		kind = keyhash.JavaString
	case f.Mode == topology.ModeMemcachedFast && f.Points == 0:
		kind = keyhash.CRC15
	case f.Mode == topology.ModeRedisSlots, f.Mode == topology.ModeGoRedisRing:
		tag = "{}"
	}
	h, err := keyhash.New(kind, tag)
	if err != nil {
		return h, err
	}
	if f.Avalanche {
		h = h.WithAvalanche()
	}
	switch f.Input {
	case "uri":
		h = h.WithInput(keyhash.InputPath, uint8(f.Depth))
	case "uri-whole":
		h = h.WithInput(keyhash.InputWholeURI, uint8(f.Depth))
	}
	return h, nil
}
