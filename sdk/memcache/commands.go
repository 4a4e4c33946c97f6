package memcache

import (
	"errors"
	"sync"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Get returns the item, or memcache.ErrCacheMiss.
func (c *Client) Get(key string) (*memcache.Item, error) {
	return c.get(key, func(mc *memcache.Client) (*memcache.Item, error) { return mc.Get(key) })
}

// GetAndTouch is Get, and sets the item's expiry to seconds.
func (c *Client) GetAndTouch(key string, seconds int32) (*memcache.Item, error) {
	return c.get(key, func(mc *memcache.Client) (*memcache.Item, error) { return mc.GetAndTouch(key, seconds) })
}

func (c *Client) get(key string, fn func(*memcache.Client) (*memcache.Item, error)) (item *memcache.Item, err error) {
	r, err := c.sdk.Route(key)
	if err != nil {
		return nil, noServers(err)
	}
	if c.fenced(r) != nil {
		return nil, memcache.ErrCacheMiss
	}
	err = c.on(r, func(mc *memcache.Client) error {
		item, err = fn(mc)
		return err
	})
	if err == nil && c.fresh(r, item) {
		return item, nil
	}
	if err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
		return nil, err
	}
	err = c.other(r, func(mc *memcache.Client) error {
		item, err = fn(mc)
		return err
	})
	if err != nil || !c.before(r, item) {
		return nil, memcache.ErrCacheMiss // what fails there is a miss: a dead node that drains stops no reads
	}
	return item, nil
}

// GetMulti returns the items that were found, by key: one request to each node
// that has some of the keys, all at once. If nodes fail, the items of the others
// are returned with the errors joined.
func (c *Client) GetMulti(keys []string) (map[string]*memcache.Item, error) {
	parts, err := c.split(keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*memcache.Item, len(keys))
	if len(parts) == 1 {
		err := c.getPart(parts[0], found, nil)
		c.getOthers(parts, found)
		return found, err
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	errs := make([]error, len(parts))
	for i, p := range parts {
		all.Go(func() { errs[i] = c.getPart(p, found, &mu) })
	}
	all.Wait()
	c.getOthers(parts, found)
	return found, errors.Join(errs...)
}

// part is the keys of a request that go to one node.
type part struct {
	route sdk.Route
	keys  []string
	at    map[string]sdk.Route // of each key
}

// split groups keys by node. One call works on one version: where a new one comes
// between two lookups, it begins again.
func (c *Client) split(keys []string) ([]part, error) {
	var parts []part
	index := make(map[string]int)
	var t *topology.Topology
	for i := 0; i < len(keys); i++ {
		r, err := c.sdk.Route(keys[i])
		if err != nil {
			return nil, noServers(err)
		}
		if now := r.Topology(); t != now {
			if t != nil {
				parts, index, i = nil, make(map[string]int), 0
				r, err = c.sdk.Route(keys[i])
				if err != nil {
					return nil, noServers(err)
				}
			}
			t = r.Topology()
		}
		at, ok := index[r.ID()]
		if !ok {
			at = len(parts)
			index[r.ID()] = at
			parts = append(parts, part{route: r, at: make(map[string]sdk.Route)})
		}
		parts[at].keys = append(parts[at].keys, keys[i])
		parts[at].at[keys[i]] = r
	}
	return parts, nil
}

// getPart adds what one node has to found, under mu if others do, too.
func (c *Client) getPart(p part, found map[string]*memcache.Item, mu *sync.Mutex) error {
	return c.on(p.route, func(mc *memcache.Client) error {
		items, err := mc.GetMulti(p.keys)
		if mu != nil {
			mu.Lock()
			defer mu.Unlock()
		}
		for key, item := range items {
			if c.fresh(p.at[key], item) {
				found[key] = item
			}
		}
		return err
	})
}

// getOthers asks the other owners for what was missed: each node once, all at the same
// time. One that fails has nothing.
func (c *Client) getOthers(parts []part, found map[string]*memcache.Item) {
	if !c.cfg.ReadThrough {
		return
	}
	missed := make(map[string]part) // by the other owner
	for _, p := range parts {
		for _, key := range p.keys {
			n, ok := p.at[key].Other()
			if !ok || found[key] != nil {
				continue
			}
			m := missed[n.ID]
			if m.at == nil {
				m = part{route: p.at[key], at: make(map[string]sdk.Route)}
			}
			m.keys, m.at[key] = append(m.keys, key), p.at[key]
			missed[n.ID] = m
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, m := range missed {
		all.Go(func() {
			_ = c.other(m.route, func(mc *memcache.Client) error {
				items, err := mc.GetMulti(m.keys)
				mu.Lock()
				defer mu.Unlock()
				for key, item := range items {
					if c.before(m.at[key], item) {
						found[key] = item
					}
				}
				return err
			})
		})
	}
	all.Wait()
}

// Set writes the item, unconditionally, and deletes what the key's other owner has.
func (c *Client) Set(item *memcache.Item) error {
	r, err := c.route(item.Key)
	if err != nil {
		return err
	}
	if err := c.supersede(r, item.Key); err != nil {
		return err
	}
	return c.on(r, func(mc *memcache.Client) error { return mc.Set(c.stamped(r, item)) })
}

// Add writes the item if there is none, else memcache.ErrNotStored. With Fence an entry
// that Get does not return is none; while the key's owner changes, a value that Get reads
// through is one. That costs a read before the write.
func (c *Client) Add(item *memcache.Item) error {
	return c.writeIf(item, false, (*memcache.Client).Add)
}

// Replace writes the item if there is one, else memcache.ErrNotStored; see Add.
func (c *Client) Replace(item *memcache.Item) error {
	return c.writeIf(item, true, (*memcache.Client).Replace)
}

// Append puts the item's value after the one that is there, else
// memcache.ErrNotStored; see Add. A value that is read through stays where it is.
func (c *Client) Append(item *memcache.Item) error {
	return c.extend(item.Key, memcache.ErrNotStored, func(mc *memcache.Client) error { return mc.Append(item) })
}

// Prepend puts the item's value before the one that is there, else
// memcache.ErrNotStored; see Append.
func (c *Client) Prepend(item *memcache.Item) error {
	if c.cfg.Fence {
		return ErrFenced
	}
	return c.extend(item.Key, memcache.ErrNotStored, func(mc *memcache.Client) error { return mc.Prepend(item) })
}

// CompareAndSwap writes an item that Get returned, if nobody has changed it:
// memcache.ErrCASConflict, memcache.ErrCacheMiss if it is gone. An item that was
// read from another node, before a change of the topology, is not there or, but for an
// unlikely coincidence of two servers' counters, has another number.
func (c *Client) CompareAndSwap(item *memcache.Item) error {
	r, err := c.route(item.Key)
	if err != nil {
		return err
	}
	if c.plain(r) {
		return c.on(r, func(mc *memcache.Client) error { return mc.CompareAndSwap(item) })
	}
	return c.swap(r, item)
}

// Delete deletes the item, or returns memcache.ErrCacheMiss.
func (c *Client) Delete(key string) error {
	r, err := c.route(key)
	if err != nil {
		return err
	}
	if err := c.supersede(r, key); err != nil {
		return err
	}
	return c.on(r, func(mc *memcache.Client) error { return mc.Delete(key) })
}

// Touch sets the item's expiry to seconds, or returns memcache.ErrCacheMiss.
func (c *Client) Touch(key string, seconds int32) error {
	return c.extend(key, memcache.ErrCacheMiss, func(mc *memcache.Client) error { return mc.Touch(key, seconds) })
}

// Increment adds delta to a decimal number and returns the sum, or
// memcache.ErrCacheMiss.
func (c *Client) Increment(key string, delta uint64) (sum uint64, err error) {
	if c.cfg.Fence {
		return 0, ErrFenced
	}
	err = c.extend(key, memcache.ErrCacheMiss, func(mc *memcache.Client) error {
		sum, err = mc.Increment(key, delta)
		return err
	})
	return sum, err
}

// Decrement takes delta from a decimal number, down to 0, and returns the rest, or
// memcache.ErrCacheMiss.
func (c *Client) Decrement(key string, delta uint64) (rest uint64, err error) {
	if c.cfg.Fence {
		return 0, ErrFenced
	}
	err = c.extend(key, memcache.ErrCacheMiss, func(mc *memcache.Client) error {
		rest, err = mc.Decrement(key, delta)
		return err
	})
	return rest, err
}

// Ping asks every node for its version and returns the errors, joined.
func (c *Client) Ping() error { return c.each((*memcache.Client).Ping) }

// FlushAll deletes everything on every node, those that own nothing included.
func (c *Client) FlushAll() error { return c.each((*memcache.Client).FlushAll) }

// DeleteAll is FlushAll: with one server, as gomemcache has it, they are the same.
func (c *Client) DeleteAll() error { return c.FlushAll() }

func (c *Client) each(fn func(*memcache.Client) error) error {
	return c.pools.Nodes(func(_ topology.Node, n *node) error {
		return n.useIn(c.cfg.Timeout, func() error { return fn(n.mc) })
	})
}
