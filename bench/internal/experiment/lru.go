package experiment

import "github.com/shardd/shardd/topology"

// lru remembers the numbers that were asked for last.
type lru struct {
	limit   int
	at      map[int]int32
	entries []lruEntry // entries[0] is both ends of the list
}

// lruEntry is a number with what is kept of it.
type lruEntry struct {
	key        int
	version    int32
	prev, next int32
	since      topology.Version // since when its node had owned it when it was stored
}

func newLRU(limit int) *lru {
	return &lru{limit: limit, at: make(map[int]int32, limit), entries: make([]lruEntry, 1, limit+1)}
}

// get asks for a number and remembers it; hit is whether it was known. The entry
// may be changed until the next call.
func (c *lru) get(key int) (e *lruEntry, hit bool) {
	i, hit := c.at[key]
	kept := lruEntry{key: key}
	switch {
	case hit:
		kept = c.entries[i]
		c.unlink(i)
	case len(c.at) >= c.limit:
		i = c.entries[0].prev
		c.unlink(i)
		delete(c.at, c.entries[i].key)
	default:
		i = int32(len(c.entries))
		c.entries = append(c.entries, lruEntry{})
	}
	c.at[key] = i
	first := c.entries[0].next
	kept.prev, kept.next = 0, first
	c.entries[i] = kept
	c.entries[first].prev = i
	c.entries[0].next = i
	return &c.entries[i], hit
}

func (c *lru) unlink(i int32) {
	e := c.entries[i]
	c.entries[e.prev].next = e.next
	c.entries[e.next].prev = e.prev
}
