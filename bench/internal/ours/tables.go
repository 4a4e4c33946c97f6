package ours

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/jump"
	"github.com/shardd/shardd/keyhash"
	"github.com/shardd/shardd/maglev"
	slotspkg "github.com/shardd/shardd/slots"
)

// jumpMap is Jump over an array of buckets. names are those of all nodes that
// the array knows, weights says which of them are there.
type jumpMap struct {
	*jump.Table
	buckets jump.Buckets
	variant jump.Variant
	names   []string
}

func newJump(names []string, v jump.Variant) (*jumpMap, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	b, err := jump.Build(names, ones(len(names)), 1)
	if err != nil {
		return nil, err
	}
	t, err := jump.New(len(names), b, v)
	return &jumpMap{t, b, v, names}, err
}

func (m *jumpMap) Pass(keys []string) int {
	t, names, sum := m.Table, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(xxhash.Sum64String(k))])
	}
	return sum
}

func (m *jumpMap) Owner(key string) string { return m.names[m.Locate(xxhash.Sum64String(key))] }

// With keeps nodes that left on the list with weight 0, as an update must.
func (m *jumpMap) With(names []string) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	all := slices.Concat(m.names, names)
	slices.Sort(all)
	all = slices.Compact(all)
	weights := make([]uint32, len(all))
	for _, i := range moved(names, all, jump.NoOwner) {
		weights[i] = 1
	}
	at := moved(m.names, all, jump.NoOwner)
	prev := jump.Buckets{Owner: reindexed(m.buckets.Owner, at), Last: reindexed(m.buckets.Last, at)}
	b, _, err := jump.Update(prev, all, weights, 1)
	if err != nil {
		return nil, err
	}
	t, err := jump.New(len(all), b, m.variant)
	return &jumpMap{t, b, m.variant, all}, err
}

// jumpBatch is a jumpMap that looks up four keys at once.
type jumpBatch struct{ *jumpMap }

func newJumpBatch(names []string) (Mapping, error) {
	m, err := newJump(names, jump.Classic)
	return jumpBatch{m}, err
}

func (m jumpBatch) Pass(keys []string) int {
	t, names, sum := m.Table, m.names, 0
	var hashes [4]uint64
	var owners [4]int
	for ; len(keys) >= 4; keys = keys[4:] {
		for i, k := range keys[:4] {
			hashes[i] = xxhash.Sum64String(k)
		}
		t.LocateBatch(owners[:], hashes[:])
		for _, o := range owners {
			sum += len(names[o])
		}
	}
	return sum + m.jumpMap.Pass(keys)
}

// maglevMap is a Maglev table, refilled by updates.
type maglevMap struct {
	*maglev.Table
	names []string
}

func newMaglev(names []string, size uint32) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	entries, err := maglev.Build(names, ones(len(names)), size)
	if err != nil {
		return nil, err
	}
	t, err := maglev.New(len(names), entries)
	return &maglevMap{t, names}, err
}

func (m *maglevMap) Pass(keys []string) int {
	t, names, sum := m.Table, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(xxhash.Sum64String(k))])
	}
	return sum
}

func (m *maglevMap) Owner(key string) string { return m.names[m.Locate(xxhash.Sum64String(key))] }

func (m *maglevMap) With(names []string) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	prev := reindexed(m.Entries(), moved(m.names, names, maglev.NoOwner))
	entries, _, err := maglev.Update(prev, names, ones(len(names)))
	if err != nil {
		return nil, err
	}
	t, err := maglev.New(len(names), entries)
	return &maglevMap{t, names}, err
}

// slotsMap is a table of slots without replicas.
type slotsMap struct {
	*slotspkg.Table
	rows  slotspkg.Rows
	names []string
}

func newSlots(names []string, count int) (*slotsMap, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	rows, err := slotspkg.Build(names, ones(len(names)), nil, count, 1)
	if err != nil {
		return nil, err
	}
	t, err := slotspkg.New(len(names), rows)
	return &slotsMap{t, rows, names}, err
}

func (m *slotsMap) Pass(keys []string) int {
	t, names, sum := m.Table, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(xxhash.Sum64String(k))])
	}
	return sum
}

func (m *slotsMap) Owner(key string) string { return m.names[m.Locate(xxhash.Sum64String(key))] }

func (m *slotsMap) With(names []string) (Mapping, error) { return m.with(names) }

func (m *slotsMap) with(names []string) (*slotsMap, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	prev := slotspkg.Rows{reindexed(m.rows[0], moved(m.names, names, slotspkg.NoOwner))}
	rows, _, err := slotspkg.Update(prev, names, ones(len(names)), nil, m.rows.Count(), 1)
	if err != nil {
		return nil, err
	}
	t, err := slotspkg.New(len(names), rows)
	return &slotsMap{t, rows, names}, err
}

// redisMap is a slotsMap behind the key hash of Redis Cluster.
type redisMap struct{ *slotsMap }

func newRedisSlots(names []string) (Mapping, error) {
	m, err := newSlots(names, slotspkg.DefaultCount)
	return redisMap{m}, err
}

func (m redisMap) Pass(keys []string) int {
	t, names, sum := m.Table, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(keyhash.Spread(keyhash.Slot(k)))])
	}
	return sum
}

func (m redisMap) Owner(key string) string {
	return m.names[m.Locate(keyhash.Spread(keyhash.Slot(key)))]
}

func (m redisMap) With(names []string) (Mapping, error) {
	next, err := m.with(names)
	return redisMap{next}, err
}
