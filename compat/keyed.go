package compat

import (
	"hash/crc32"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/topology"
)

// Keyed maps keys, not hashes: the foreign system hashes key and node together in
// a way that no hash of the key alone can stand for. It is for planning.
type Keyed struct {
	rule  keyedRule
	list  []server // the foreign list, those that are down included
	total uint32
	live  int
}

type keyedRule uint8

const (
	nameFirst keyedRule = iota // highest xxHash of name and key: Caddy 2.10
	nginxTries
	ipTries
)

func newKeyed(f topology.Foreign, all, live []server) *Keyed {
	k := &Keyed{list: live, live: len(live)}
	switch f.Mode {
	case topology.ModeNginxHash:
		k.rule = nginxTries
	case topology.ModeNginxIPHash:
		k.rule = ipTries
	default:
		return k
	}
	k.list = all
	for _, s := range all {
		k.total += s.OwnerWeight()
	}
	return k
}

// Rule names the way of hashing: it stands in mapping digests.
func (k *Keyed) Rule() string {
	return [...]string{nameFirst: "name-key", nginxTries: "nginx-hash", ipTries: "nginx-ip-hash"}[k.rule]
}

// Each yields the nodes that take part in the foreign order with what is hashed
// of them and their weights; those that are down only take tries, which shows in
// where keys go.
func (k *Keyed) Each(yield func(node int, name string, weight float64)) {
	for _, s := range k.list {
		if s.weight > 0 {
			yield(s.index, s.name, float64(s.weight))
		}
	}
}

// LocateKey returns the node of key, -1 if none takes part.
func (k *Keyed) LocateKey(key string) int {
	var room [1]int
	list := k.AppendKey(room[:0], key, 1)
	if len(list) == 0 {
		return -1
	}
	return list[0]
}

// tries is after how many tries nginx falls back to turns. Here the rest of the
// list follows instead, which no key decides.
const tries = 20

// AppendKey appends the first n nodes of key's order to dst.
func (k *Keyed) AppendKey(dst []int, key string, n int) []int {
	n = min(n, k.live)
	if n <= 0 {
		return dst
	}
	if k.rule == nameFirst {
		return k.byScore(dst, key, n)
	}
	seen := make(map[int]bool, n)
	take := func(s server) {
		if s.weight > 0 && !seen[s.index] && len(seen) < n {
			seen[s.index] = true
			dst = append(dst, s.index)
		}
	}
	h := uint32(0)
	if k.rule == ipTries {
		h = 89
	}
	for try := 0; try <= tries && len(seen) < n; try++ {
		h = k.next(h, try, key)
		take(k.bucket(h % k.total))
	}
	for _, s := range k.list {
		take(s)
	}
	return dst
}

// next continues the hash for a try.
func (k *Keyed) next(h uint32, try int, key string) uint32 {
	if k.rule == ipTries {
		return keyhash.IPOctetsFrom(h, key)
	}
	crc := uint32(0)
	if try > 0 {
		crc = crc32.ChecksumIEEE(strconv.AppendInt(nil, int64(try), 10))
	}
	return h + crc32.Update(crc, crc32.IEEETable, []byte(key))>>16&0x7fff
}

// bucket returns the server whose weights, one after the other, hold b.
func (k *Keyed) bucket(b uint32) server {
	for _, s := range k.list {
		if b < s.OwnerWeight() {
			return s
		}
		b -= s.OwnerWeight()
	}
	return k.list[0] // not reached: b is below the total
}

func (k *Keyed) byScore(dst []int, key string, n int) []int {
	order := make([]int, len(k.list))
	for i := range order {
		order[i] = i
	}
	var d xxhash.Digest
	fallingBy(order, func(i int) uint64 {
		d.Reset()
		_, _ = d.WriteString(k.list[i].name) // never fails
		_, _ = d.WriteString(key)
		return d.Sum64()
	})
	for _, i := range order[:n] {
		dst = append(dst, k.list[i].index)
	}
	return dst
}
