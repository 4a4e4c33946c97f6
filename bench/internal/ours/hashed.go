package ours

import (
	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/ring"
)

// ringMap is a ring of one number of points a node.
type ringMap struct {
	*ring.Ring
	names []string
}

func newRing(names []string, points uint32) (*ringMap, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	r, err := ring.New(names, ones(len(names)), points)
	return &ringMap{r, names}, err
}

func (m *ringMap) Pass(keys []string) int {
	t, names, sum := m.Ring, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(xxhash.Sum64String(k))])
	}
	return sum
}

func (m *ringMap) Owner(key string) string { return m.names[m.Locate(xxhash.Sum64String(key))] }

func (m *ringMap) With(names []string) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	r, err := m.Update(names, ones(len(names)))
	return &ringMap{r, names}, err
}

// ringBatch is a ringMap that looks up 64 keys at once.
type ringBatch struct{ *ringMap }

func newRingBatch(names []string) (Mapping, error) {
	m, err := newRing(names, 160)
	return ringBatch{m}, err
}

func (m ringBatch) Pass(keys []string) int {
	r, names, sum := m.Ring, m.names, 0
	var hashes [64]uint64
	var owners [64]int
	for len(keys) > 0 {
		n := min(len(keys), len(hashes))
		for i, k := range keys[:n] {
			hashes[i] = xxhash.Sum64String(k)
		}
		r.LocateBatch(owners[:n], hashes[:n])
		for _, o := range owners[:n] {
			sum += len(names[o])
		}
		keys = keys[n:]
	}
	return sum
}

// hrwMap is exact rendezvous hashing.
type hrwMap struct {
	*rendezvous.HRW
	names []string
}

func newRendezvous(names []string) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	t, err := rendezvous.New(names, ones(len(names)))
	return &hrwMap{t, names}, err
}

func (m *hrwMap) Pass(keys []string) int {
	t, names, sum := m.HRW, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(xxhash.Sum64String(k))])
	}
	return sum
}

func (m *hrwMap) Owner(key string) string { return m.names[m.Locate(xxhash.Sum64String(key))] }

func (m *hrwMap) With(names []string) (Mapping, error) { return newRendezvous(names) }

// hrwTable is rendezvous hashing of slots.
type hrwTable struct {
	*rendezvous.Table
	names []string
}

func newRendezvousTable(names []string, slots int) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	t, err := rendezvous.NewTable(names, ones(len(names)), slots)
	return &hrwTable{t, names}, err
}

func (m *hrwTable) Pass(keys []string) int {
	t, names, sum := m.Table, m.names, 0
	for _, k := range keys {
		sum += len(names[t.Locate(xxhash.Sum64String(k))])
	}
	return sum
}

func (m *hrwTable) Owner(key string) string { return m.names[m.Locate(xxhash.Sum64String(key))] }

func (m *hrwTable) With(names []string) (Mapping, error) {
	if len(names) == 0 {
		return nil, ErrEmpty
	}
	t, err := m.Update(names, ones(len(names)))
	return &hrwTable{t, names}, err
}
