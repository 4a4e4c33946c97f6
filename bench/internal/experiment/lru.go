package experiment

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
}

func newLRU(limit int) *lru {
	return &lru{limit: limit, at: make(map[int]int32, limit), entries: make([]lruEntry, 1, limit+1)}
}

// get asks for a number and remembers it; hit is whether it was known. The entry
// may be changed until the next call.
func (c *lru) get(key int) (e *lruEntry, hit bool) {
	i, hit := c.at[key]
	version := int32(0)
	switch {
	case hit:
		version = c.entries[i].version
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
	c.entries[i] = lruEntry{key: key, version: version, next: first}
	c.entries[first].prev = i
	c.entries[0].next = i
	return &c.entries[i], hit
}

func (c *lru) unlink(i int32) {
	e := c.entries[i]
	c.entries[e.prev].next = e.next
	c.entries[e.next].prev = e.prev
}
