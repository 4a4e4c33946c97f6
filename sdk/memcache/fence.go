package memcache

import (
	"encoding/binary"
	"errors"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// ErrFenced says that a command cannot be had with Config.Fence: it would read or write
// the stamp that stands before each value.
var ErrFenced = errors.New("memcache: not with Fence; it would touch the stamp before the value")

// ErrDetour says that the key's node is gone round for its health and not published as
// down. With Config.Fence nothing is written or deleted meanwhile: the node would not
// know of it when it is back, and no version would tell. Try again: either the node is
// up again, or the next version has it down.
var ErrDetour = errors.New("memcache: the key's node is gone round for its health; with Fence its keys wait until it is up, or published as down")

// A stamp is the version since which the node owned the key when the value was written:
// stampMark, then epoch and seq as unsigned varints (encoding/binary).
const stampMark = 0xf5

// stamped returns the item as it is stored on the route's node.
func (c *Client) stamped(r sdk.Route, item *memcache.Item) *memcache.Item {
	if !c.cfg.Fence {
		return item
	}
	return c.stampedSince(r.FirstSince(), item)
}

// appendStamp returns the stamp and the value after it.
func appendStamp(since topology.Version, value []byte) []byte {
	b := make([]byte, 1, 1+2*binary.MaxVarintLen64+len(value))
	b[0] = stampMark
	b = binary.AppendUvarint(b, since.Epoch)
	b = binary.AppendUvarint(b, since.Seq)
	return append(b, value...)
}

// unstamp reads a stored value. ok is false without a stamp.
func unstamp(b []byte) (since topology.Version, value []byte, ok bool) {
	if len(b) == 0 || b[0] != stampMark {
		return since, nil, false
	}
	b = b[1:]
	for _, to := range []*uint64{&since.Epoch, &since.Seq} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return since, nil, false
		}
		*to, b = v, b[n:]
	}
	return since, b, true
}

// fenced is ErrDetour where the fence cannot tell what the node has.
func (c *Client) fenced(r sdk.Route) error {
	if c.cfg.Fence && r.FirstSince().IsZero() {
		return ErrDetour
	}
	return nil
}

// fresh takes the stamp off an item that was read on the route's node. It returns false
// for one that the node may hold from an earlier time at which it owned the key: the key
// may have been written or deleted elsewhere since.
func (c *Client) fresh(r sdk.Route, item *memcache.Item) bool {
	if !c.cfg.Fence {
		return true
	}
	since, value, ok := unstamp(item.Value)
	now := r.FirstSince()
	if !ok || now.IsZero() || since.Compare(now) < 0 {
		return false
	}
	item.Value = value
	return true
}

// before takes the stamp off an item of the key's other owner, which had the key until
// its owner began to change: what it stored at that time was right until then. It
// returns false for what is of an earlier time.
func (c *Client) before(r sdk.Route, item *memcache.Item) bool {
	if !c.cfg.Fence {
		return true
	}
	since, value, ok := unstamp(item.Value)
	now := r.OtherSince()
	if !ok || now.IsZero() || since.Compare(now) < 0 {
		return false
	}
	item.Value = value
	return true
}

// other calls fn with the pool of the key's other owner while its owner changes in steps,
// if that is wanted.
func (c *Client) other(r sdk.Route, fn func(*memcache.Client) error) error {
	if !c.cfg.ReadThrough {
		return memcache.ErrCacheMiss
	}
	n, ok := r.Other()
	if !ok {
		return memcache.ErrCacheMiss
	}
	return c.pools.One(n, func(_ topology.Node, p *node) error {
		return p.useIn(c.cfg.Timeout, func() error { return fn(p.mc) })
	})
}

// supersede deletes what the other owner has, before the owner is written: a read that
// misses must not find an older value there.
func (c *Client) supersede(r sdk.Route, key string) error {
	err := c.other(r, func(mc *memcache.Client) error { return mc.Delete(key) })
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil
	}
	return err
}
