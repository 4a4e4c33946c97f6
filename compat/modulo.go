package compat

import (
	"fmt"
	"slices"

	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/ring"
	"github.com/shardd/shardd/topology"
)

// Modulo is a table of nodes that a hash indexes modulo its size.
type Modulo struct {
	entries []uint16
	owners  int
	shift   uint // 32 where the hash has 32 bits and stands in the high half
}

func newModulo(hash keyhash.Func, entries []uint16) *Modulo {
	m := &Modulo{entries: entries}
	if hash.Kind().Low32() {
		m.shift = 32
	}
	seen := map[uint16]bool{}
	for _, e := range entries {
		seen[e] = true
	}
	m.owners = len(seen)
	return m
}

// Size returns the number of entries.
func (m *Modulo) Size() int { return len(m.entries) }

// Entry returns the node of entry i.
func (m *Modulo) Entry(i int) int { return int(m.entries[i]) }

// Owners returns the number of nodes that have an entry.
func (m *Modulo) Owners() int { return m.owners }

// Hash returns a hash that falls on entry i.
func (m *Modulo) Hash(i int) uint64 { return uint64(i) << m.shift }

// Locate returns the node of hash h, -1 if there are no entries.
func (m *Modulo) Locate(h uint64) int {
	if len(m.entries) == 0 {
		return -1
	}
	return int(m.entries[(h>>m.shift)%uint64(len(m.entries))])
}

// AppendReplicas appends the first n nodes of h's order to dst: the table from
// h's entry on, round, each node once.
func (m *Modulo) AppendReplicas(dst []int, h uint64, n int) []int {
	n = min(n, m.owners)
	if n <= 0 {
		return dst
	}
	return appendFrom(dst, m.entries, int((h>>m.shift)%uint64(len(m.entries))), n)
}

// appendFrom appends the first n distinct nodes of list from i on, round; there
// are as many.
func appendFrom(dst []int, list []uint16, i, n int) []int {
	if n > 32 {
		return appendMany(dst, list, i, n)
	}
	base := len(dst)
	for ; len(dst)-base < n; i++ {
		if i == len(list) {
			i = 0
		}
		if o := int(list[i]); !slices.Contains(dst[base:], o) {
			dst = append(dst, o)
		}
	}
	return dst
}

func appendMany(dst []int, list []uint16, i, n int) []int {
	var seen [1 << 10]uint64
	for base := len(dst); len(dst)-base < n; i++ {
		if i == len(list) {
			i = 0
		}
		if o := list[i]; seen[o>>6]>>(o&63)&1 == 0 {
			seen[o>>6] |= 1 << (o & 63)
			dst = append(dst, int(o))
		}
	}
	return dst
}

// newTable returns the table of the live servers under f.
func newTable(f topology.Foreign, hash keyhash.Func, live []server) (*Modulo, error) {
	if len(live) == 0 {
		return newModulo(hash, nil), nil
	}
	var order []int // of live
	var err error
	switch f.Mode {
	case topology.ModeHAProxy:
		order, err = haproxyMap(live)
	case topology.ModeEnvoyMaglev:
		order, err = envoyMaglev(f.TableSize, live)
	case topology.ModeKkdaiMaglev:
		order, err = kkdaiMaglev(f.TableSize, live)
	case topology.ModeCilium:
		order, err = ciliumMaglev(f.TableSize, f.Seed, live)
	case topology.ModeBuraksezer:
		order, err = partitions(f, live)
	default:
		order, err = expanded(live)
	}
	if err != nil {
		return nil, err
	}
	entries := make([]uint16, len(order))
	for i, s := range order {
		entries[i] = uint16(live[s].index)
	}
	return newModulo(hash, entries), nil
}

// expanded lists each server weight times, one after the other.
func expanded(live []server) ([]int, error) {
	if sum := total(live); sum > ring.MaxPoints {
		return nil, tooMany(sum)
	}
	var order []int
	for i, s := range live {
		for range s.weight {
			order = append(order, i)
		}
	}
	return order, nil
}

// haproxyMap is HAProxy's static table: weights divided by their greatest common
// divisor, dealt by a score that each server gains its weight in and the winner
// of an entry loses the total in.
func haproxyMap(live []server) ([]int, error) {
	divisor := 0
	for _, s := range live {
		divisor = gcd(divisor, int(s.weight))
	}
	size := int(total(live)) / divisor
	order, score := make([]int, size), make([]int, len(live))
	for slot := range order {
		best, most := -1, 0
		for i, s := range live {
			score[i] += int(s.weight) / divisor
			if v := (score[i] + size) / size; best < 0 || v > most {
				best, most = i, v
			}
		}
		order[slot] = best
		score[best] -= size
	}
	return order, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// partitions is buraksezer/consistent: each partition goes to the first server on
// the ring, from the partition's own hash on, that has room.
func partitions(f topology.Foreign, live []server) ([]int, error) {
	points, err := placePoints(f, live)
	if err != nil {
		return nil, err
	}
	at := make(map[uint16]int, len(live))
	for i, s := range live {
		at[uint16(s.index)] = i
	}
	room := int(ceilMul(uint64(f.Partitions)/uint64(len(live)), f.Load))
	load, order := make([]int, len(live)), make([]int, f.Partitions)
	for p := range order {
		i, err := firstWithRoom(points, partitionHash(p), func(o uint16) bool { return load[at[o]]+1 <= room })
		if err != nil {
			return nil, fmt.Errorf("%w: no room for partition %d of %d: each of %d nodes takes %d at a load factor of %v; raise it", ErrNodes, p, f.Partitions, len(live), room, f.Load)
		}
		order[p] = at[points[i].Owner]
		load[order[p]]++
	}
	return order, nil
}
