package keyhash

import "strings"

// Slots is the number of hash slots of Redis Cluster.
const Slots = 16384

// Slot returns the Redis Cluster hash slot of key, 0 to 16383: the low 14 bits
// of the CRC16 of the key's hash tag "{...}", or of the whole key if it has none
// (Redis Cluster specification, "Hash tags"). 16 bytes cost about as much as
// two xxHash of them.
func Slot(key string) uint16 { return checksumTag(key, '{', '}') & (Slots - 1) }

// Tag returns the part of key that is hashed: what stands between the first
// open and the first close after it, if that is at least one byte; otherwise
// the whole key. Bytes are compared, not characters. An open without a close,
// a close before the open and an empty tag all mean the whole key; a second
// tag is not looked at. open and close may be the same byte.
func Tag(key string, open, close byte) string {
	i := strings.IndexByte(key, open)
	if i < 0 {
		return key
	}
	n := strings.IndexByte(key[i+1:], close)
	if n <= 0 {
		return key
	}
	return key[i+1 : i+1+n]
}
