package compat

import (
	"cmp"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// Keyed maps keys, not hashes: the foreign system hashes key and node together in
// a way that no hash of the key alone can stand for. It is for planning.
type Keyed struct {
	rule  keyedRule
	list  []server // the foreign list, those that are down included
	total uint64
	live  int
	ring  []ring.Point // sharedRing
}

type keyedRule uint8

const (
	nameFirst keyedRule = iota // highest xxHash of name and key: Caddy 2.10
	nginxTries
	ipTries
	sharedRing // of several nodes on one point another hash of the key chooses: go-zero
)

func newKeyed(f topology.Foreign, all, live []server) *Keyed {
	k := &Keyed{list: live, live: len(live)}
	switch f.Mode {
	case topology.ModeNginxHash:
		k.rule = nginxTries
	case topology.ModeNginxIPHash:
		k.rule = ipTries
	case topology.ModeGoZero:
		k.rule = sharedRing
		k.ring, _ = placePoints(f, live) // as many as sharesPoints had
		return k
	default:
		return k
	}
	k.list = all
	for _, s := range all {
		k.total += uint64(s.OwnerWeight())
	}
	return k
}

// Rule names the way of hashing: it stands in mapping digests.
func (k *Keyed) Rule() string {
	return [...]string{nameFirst: "name-key", nginxTries: "nginx-hash", ipTries: "nginx-ip-hash", sharedRing: "go-zero-shared"}[k.rule]
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
	switch k.rule {
	case nameFirst:
		return k.byScore(dst, key, n)
	case sharedRing:
		return k.byRing(dst, key, n)
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
		take(k.bucket(uint64(h) % k.total))
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
func (k *Keyed) bucket(b uint64) server {
	for _, s := range k.list {
		w := uint64(s.OwnerWeight())
		if b < w {
			return s
		}
		b -= w
	}
	return k.list[0] // not reached: b is below the total
}

// sharesPoints reports whether two nodes of a go-zero ring have a point in
// common, as node "a1" and node "a11" have: its labels have no separator.
func sharesPoints(f topology.Foreign, live []server) bool {
	points, _ := placePoints(f, live) // too many are refused by newRing
	for i := 1; i < len(points); i++ {
		if points[i].Place == points[i-1].Place {
			return true
		}
	}
	return false
}

// byRing is go-zero's Get: the first point not before the key's hash, and of
// several nodes there the one that a hash of "16777619:KEY" chooses.
func (k *Keyed) byRing(dst []int, key string, n int) []int {
	h := keyhash.Murmur128.Wide(key)
	at, _ := slices.BinarySearchFunc(k.ring, h, func(p ring.Point, h uint64) int { return cmp.Compare(p.Place, h) })
	at %= len(k.ring)
	end := at + 1
	for end < len(k.ring) && k.ring[end].Place == k.ring[at].Place {
		end++
	}
	chosen := at + int(keyhash.Murmur128.Wide("16777619:"+key)%uint64(end-at))
	base := len(dst)
	dst = append(dst, int(k.ring[chosen].Owner))
	for i := 0; len(dst)-base < n && i < len(k.ring); i++ { // some may have no point at all
		if o := int(k.ring[(at+i)%len(k.ring)].Owner); !slices.Contains(dst[base:], o) {
			dst = append(dst, o)
		}
	}
	return dst
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
