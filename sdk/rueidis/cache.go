package rueidis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardd/shardd/sdk/internal/rediscache"
	"github.com/shardd/shardd/topology"
)

// ErrDetour says that the key's node is gone round for its health and not published as
// down. With CacheConfig.Fence nothing is written or deleted meanwhile: the node would not
// know of it when it is back, and no version would tell. Try again: either the node is up
// again, or the next version has it down.
var ErrDetour = errors.New("rueidis: the key's node is gone round for its health; with Fence its keys wait until it is up, or published as down")

// CacheConfig configures a Cache. The zero value is a cache that does nothing but split
// keys by node. All clients that share the values have to agree on it; those of sdk/redis
// do the same with the same values.
type CacheConfig struct {
	// ReadThrough asks the key's other owner after a miss, while its owner changes in
	// steps (sdk.Route.Other), and copies what it finds there to the owner, with the
	// time to live that is left. What is written or deleted is deleted there before and
	// after.
	ReadThrough bool
	// Fence stores with each value since when its node had served the key
	// (sdk.Route.FirstSince), and takes what is older for a miss: a server that left and
	// came back with its memory, or was published as down, cannot serve what it missed.
	// The values have 3 to 21 bytes before them, and so are for caches with Fence only.
	// While a node is gone round for its health alone, which no version tells, its keys
	// are misses, and what writes or deletes them fails with ErrDetour.
	Fence bool
	// PassUnstamped takes values without a stamp for hits, which with Fence are misses:
	// while an old cache gets its fence. A value of a client without Fence that begins
	// with the byte 0xf5, which no text does, may be taken for a stamped one.
	PassUnstamped bool
}

// Cache keeps strings in the servers of a Client as a cache. A key without a value is
// rueidis.Nil. Make one with Client.Cache; it ends with its Client. Safe for concurrent
// use.
//
// # While owners change
//
// With ReadThrough no read returns a value that was overwritten or deleted, through
// caches, by an operation that began after the value was acknowledged and ended before
// the read began, as long as clients are at most one step of the change apart. A reader
// that found a value at the other owner copies it under a lease, which every deletion and
// write takes away: nothing that is deleted meanwhile comes back. What fails at the other
// owner is a miss in a read, and an error of a write or deletion, which may then have
// been carried out or not.
//
// Keys that the cache is to keep up with are written and deleted through caches only. It
// does no client-side caching: entries of DoCache are not told of a key's new owner.
//
// # Cost
//
// One command a key, or one MGET a node; with ReadThrough a write or deletion is two in one
// pipeline. While a key's owner changes: a miss one more
// round trip, a hit at the other owner four, once, a write or deletion three.
type Cache struct {
	engine *rediscache.Cache
}

// Cache returns a cache in the client's servers. It waits for nothing, save that with
// Fence it makes the index of the version held (sdk.Client.PrepareOwnedSince).
func (c *Client) Cache(cfg CacheConfig) *Cache {
	return &Cache{rediscache.New(c.sdk, sender{c}, rediscache.Config{
		ReadThrough: cfg.ReadThrough, Fence: cfg.Fence, PassUnstamped: cfg.PassUnstamped, ErrDetour: ErrDetour})}
}

// CacheStats are a cache's counters.
type CacheStats struct {
	Stale       uint64 // values that the fence took for misses
	Through     uint64 // values that were found at the other owner
	Copied      uint64 // of those, copied to the owner
	OtherErrors uint64 // reads of other owners that failed, and were misses
}

// Stats returns the counters.
func (c *Cache) Stats() CacheStats { return CacheStats(c.engine.Stats()) }

// Get returns the value of key, or rueidis.Nil (rueidis.IsRedisNil).
func (c *Cache) Get(ctx context.Context, key string) (string, error) {
	op := &rediscache.Op{Kind: rediscache.Get, Key: key}
	c.engine.Do(ctx, op)
	if op.Err == nil && !op.Found {
		return "", rueidis.Nil
	}
	return op.Value, op.Err
}

// MGet returns the values of the keys that have one, by key. If nodes fail the values of
// the others are returned with the errors joined.
func (c *Cache) MGet(ctx context.Context, keys ...string) (map[string]string, error) {
	ops := make([]*rediscache.Op, len(keys))
	for i, key := range keys {
		ops[i] = &rediscache.Op{Kind: rediscache.Get, Key: key}
	}
	c.engine.Do(ctx, ops...)
	found := make(map[string]string, len(keys))
	for _, op := range ops {
		if op.Err == nil && op.Found {
			found[op.Key] = op.Value
		}
	}
	return found, join(ops)
}

// Set stores a value; a ttl of 0 or less is none, of less than 1 ms 1 ms.
func (c *Cache) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	op := &rediscache.Op{Kind: rediscache.Set, Key: key, Value: value, TTL: ttl}
	c.engine.Do(ctx, op)
	return op.Err
}

// MSet stores values by key, each as Set does: each node gets its part in one pipeline.
// If nodes fail, what the others got is stored.
func (c *Cache) MSet(ctx context.Context, values map[string]string, ttl time.Duration) error {
	ops := make([]*rediscache.Op, 0, len(values))
	for key, value := range values {
		ops = append(ops, &rediscache.Op{Kind: rediscache.Set, Key: key, Value: value, TTL: ttl})
	}
	c.engine.Do(ctx, ops...)
	return join(ops)
}

// SetNX stores a value if the key has none, and reports whether it did. While the key's
// owner changes a value at the other owner counts; two clients at different steps of the
// change may both store: it is for filling a cache, not for a lock.
func (c *Cache) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return c.engine.SetNX(ctx, key, value, ttl)
}

// Del deletes keys, and returns how many there were. If nodes fail, the keys of the
// others are deleted.
func (c *Cache) Del(ctx context.Context, keys ...string) (int64, error) {
	ops := make([]*rediscache.Op, len(keys))
	for i, key := range keys {
		ops[i] = &rediscache.Op{Kind: rediscache.Del, Key: key}
	}
	c.engine.Do(ctx, ops...)
	var sum int64
	for _, op := range ops {
		if op.Err == nil && op.Found {
			sum++
		}
	}
	return sum, join(ops)
}

// join returns the errors of operations, each once.
func join(ops []*rediscache.Op) error {
	var errs []error
	seen := make(map[string]bool)
	for _, op := range ops {
		if op.Err != nil && !seen[op.Err.Error()] {
			seen[op.Err.Error()] = true
			errs = append(errs, op.Err)
		}
	}
	return errors.Join(errs...)
}

// sender is the client as the engine sees it.
type sender struct{ c *Client }

// Send sends commands to one node in one pipeline.
func (s sender) Send(ctx context.Context, n topology.Node, cmds []rediscache.Command) []rediscache.Reply {
	out := make([]rediscache.Reply, len(cmds))
	err := s.c.pools.One(n, func(_ topology.Node, p *node) error {
		return p.use(func(r rueidis.Client) error {
			built := make([]rueidis.Completed, len(cmds))
			for i, words := range cmds {
				cmd := r.B().Arbitrary(words[0]).Keys(words[1:2]...).Args(words[2:]...)
				if built[i] = cmd.Build(); words.IsRead() {
					built[i] = r.B().Arbitrary(words[0]).Keys(words[1:]...).ReadOnly()
				}
			}
			for i, resp := range r.DoMulti(ctx, built...) {
				out[i] = reply(resp)
			}
			return nil
		})
	})
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
	}
	return out
}

func reply(r rueidis.RedisResult) rediscache.Reply {
	v, err := r.ToAny()
	if rueidis.IsRedisNil(err) {
		return rediscache.Reply{}
	}
	return rediscache.Reply{Value: v, Err: err}
}
