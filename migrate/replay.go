package migrate

import "math"

// windows is into how many parts the second half of a trace is cut.
const windows = 50

// replay plays the trace against caches: the first half warms them up, the second
// half goes by the mapping before, and again by that after.
func (t *Traffic) replay(f *Forecast, before, after *fleet) {
	half := len(t.trace) / 2
	stays := t.hits(before, before, half)
	changes := t.hits(before, after, half)
	size := len(t.trace) - half
	total, recovered := 0, -1
	for w := range windows {
		count := (w+1)*size/windows - w*size/windows
		total += stays[w]
		if count == 0 {
			continue
		}
		loss := float64(stays[w]-changes[w]) / float64(count)
		f.Dip = max(f.Dip, loss)
		switch {
		case loss >= 0.01:
			recovered = -1
		case recovered < 0:
			recovered = w * size / windows
		}
	}
	f.HitRate = float64(total) / float64(max(1, size))
	f.Recovery = recovered
}

// hits returns the hits in each window of the second half, if the mapping changes
// at its beginning.
func (t *Traffic) hits(before, after *fleet, half int) [windows]int {
	caches := map[string]*cache{}
	at := func(f *fleet, k uint32) *cache {
		name := f.names[f.owner[k]]
		c := caches[name]
		if c == nil {
			c = newCache(t.limit(before, f, f.owner[k]))
			caches[name] = c
		}
		return c
	}
	for _, k := range t.trace[:half] {
		at(before, k).get(k)
	}
	var hits [windows]int
	size := len(t.trace) - half
	w := 0
	for i, k := range t.trace[half:] {
		for i >= (w+1)*size/windows {
			w++
		}
		if at(after, k).get(k) {
			hits[w]++
		}
	}
	return hits
}

// limit returns how many keys node i of f holds; 0 is all.
func (t *Traffic) limit(before, f *fleet, i uint32) int {
	if t.CacheKeys == 0 {
		return 0
	}
	return max(1, int(math.Round(float64(t.CacheKeys)*f.weight[i]*f.mean/before.mean)))
}

// cache holds the keys that were asked for last, up to a limit.
type cache struct {
	limit   int // 0 is none
	places  map[uint32]int32
	entries []entry // entries[0] is the ends of the list: next is the newest
}

type entry struct {
	key        uint32
	prev, next int32
}

func newCache(limit int) *cache {
	return &cache{limit: limit, places: map[uint32]int32{}, entries: make([]entry, 1)}
}

// get asks for a key, which is held from then on; it reports whether it was.
func (c *cache) get(key uint32) bool {
	i, hit := c.places[key]
	switch {
	case hit:
		c.unlink(i)
	case c.limit > 0 && len(c.places) >= c.limit:
		i = c.entries[0].prev // the oldest
		c.unlink(i)
		delete(c.places, c.entries[i].key)
	default:
		i = int32(len(c.entries))
		c.entries = append(c.entries, entry{})
	}
	c.places[key] = i
	first := c.entries[0].next
	c.entries[i] = entry{key: key, prev: 0, next: first}
	c.entries[first].prev = i
	c.entries[0].next = i
	return hit
}

func (c *cache) unlink(i int32) {
	e := c.entries[i]
	c.entries[e.prev].next = e.next
	c.entries[e.next].prev = e.prev
}
