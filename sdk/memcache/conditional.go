package memcache

import (
	"errors"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Commands that depend on what there is go by what Get would return: a stale entry is
// none, and a value that the key's other owner still has is one. Where neither can be,
// they are the server's own command.

// tries is how often a conditional write begins again because somebody else wrote.
const tries = 8

// plain reports whether what the key's node has is all there is.
func (c *Client) plain(r sdk.Route) bool {
	if c.cfg.Fence {
		return false
	}
	return !c.readsOther(r)
}

func (c *Client) readsOther(r sdk.Route) bool {
	if !c.cfg.ReadThrough {
		return false
	}
	_, ok := r.Other()
	return ok
}

// entry is what the key's node has.
type entry struct {
	item  *memcache.Item // nil for nothing
	fresh bool           // it is what Get returns
}

func (c *Client) entryOf(r sdk.Route, key string) (e entry, err error) {
	err = c.on(r, func(mc *memcache.Client) error {
		e.item, err = mc.Get(key)
		return err
	})
	if errors.Is(err, memcache.ErrCacheMiss) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, err
	}
	e.fresh = c.fresh(r, e.item)
	return e, nil
}

// atOther reports whether the key's other owner has what Get would return.
func (c *Client) atOther(r sdk.Route, key string) (has bool, err error) {
	err = c.other(r, func(mc *memcache.Client) error {
		it, err := mc.Get(key)
		has = err == nil && c.before(r, it)
		return err
	})
	if errors.Is(err, memcache.ErrCacheMiss) {
		return false, nil
	}
	return has, err
}

// route is where a conditional command on key goes.
func (c *Client) route(key string) (sdk.Route, error) {
	r, err := c.sdk.Route(key)
	if err != nil {
		return r, noServers(err)
	}
	return r, c.fenced(r)
}

// writeIf writes the item if there is one or if there is none, as wanted, else
// memcache.ErrNotStored.
func (c *Client) writeIf(item *memcache.Item, wanted bool, fn func(*memcache.Client, *memcache.Item) error) error {
	r, err := c.route(item.Key)
	if err != nil {
		return err
	}
	if c.plain(r) {
		return c.on(r, func(mc *memcache.Client) error { return fn(mc, item) })
	}
	for range tries {
		e, err := c.entryOf(r, item.Key)
		if err != nil {
			return err
		}
		there := e.fresh
		if !there {
			if there, err = c.atOther(r, item.Key); err != nil {
				return err
			}
		}
		if there != wanted {
			return memcache.ErrNotStored
		}
		if err := c.supersede(r, item.Key); err != nil {
			return err
		}
		if err := c.replace(r, e, item); !raced(err) {
			return err
		}
	}
	return memcache.ErrNotStored
}

// replace writes the item on the key's node if that has e still.
func (c *Client) replace(r sdk.Route, e entry, item *memcache.Item) error {
	next := *c.stamped(r, item)
	return c.on(r, func(mc *memcache.Client) error {
		if e.item == nil {
			return mc.Add(&next)
		}
		next.CasID = e.item.CasID
		return mc.CompareAndSwap(&next)
	})
}

// raced reports whether somebody else wrote in between.
func raced(err error) bool {
	return errors.Is(err, memcache.ErrNotStored) || errors.Is(err, memcache.ErrCASConflict) || errors.Is(err, memcache.ErrCacheMiss)
}

// swap is CompareAndSwap where the key's node may have something stale, or the other
// owner what was read.
func (c *Client) swap(r sdk.Route, item *memcache.Item) error {
	e, err := c.entryOf(r, item.Key)
	if err != nil {
		return err
	}
	if e.fresh {
		if err := c.supersede(r, item.Key); err != nil {
			return err
		}
		return c.on(r, func(mc *memcache.Client) error { return mc.CompareAndSwap(c.stamped(r, item)) })
	}
	has, err := c.atOther(r, item.Key)
	if err != nil {
		return err
	}
	if !has {
		return memcache.ErrCacheMiss
	}
	return c.other(r, func(mc *memcache.Client) error {
		return mc.CompareAndSwap(c.stampedSince(r.OtherSince(), item))
	})
}

// extend carries out fn, which changes a value without writing it whole, where that value
// is: on the key's node, or on its other owner. missing is what a server says that has
// none.
func (c *Client) extend(key string, missing error, fn func(*memcache.Client) error) error {
	r, err := c.route(key)
	if err != nil {
		return err
	}
	if c.plain(r) {
		return c.on(r, fn)
	}
	fresh := true
	if c.cfg.Fence {
		e, err := c.entryOf(r, key)
		if err != nil {
			return err
		}
		fresh = e.fresh
	}
	if fresh {
		if err := c.on(r, fn); !errors.Is(err, missing) {
			return err
		}
	}
	has, err := c.atOther(r, key)
	if err != nil {
		return err
	}
	if !has {
		return missing
	}
	return c.other(r, fn)
}

// stampedSince returns the item as it is stored on a node that has had its key since then.
func (c *Client) stampedSince(since topology.Version, item *memcache.Item) *memcache.Item {
	if !c.cfg.Fence {
		return item
	}
	out := *item
	out.Value = appendStamp(since, item.Value)
	return &out
}
