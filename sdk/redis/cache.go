package redis

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/sdk/internal/rediscache"
	"github.com/shardd/shardd/topology"
)

// ErrValue says that a value is of a type that a Cache does not store: give it a string,
// a []byte, a number, a bool, a time or an encoding.BinaryMarshaler.
var ErrValue = errors.New("redis: a cache stores strings, []byte, numbers, bools, times and encoding.BinaryMarshaler")

// ErrDetour says that the key's node is gone round for its health and not published as
// down. With CacheConfig.Fence nothing is written or deleted meanwhile: the node would not
// know of it when it is back, and no version would tell. Try again: either the node is up
// again, or the next version has it down.
var ErrDetour = errors.New("redis: the key's node is gone round for its health; with Fence its keys wait until it is up, or published as down")

// CacheConfig configures a Cache. The zero value is a cache that does nothing but split
// keys by node. All clients that share the values have to agree on it.
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

// Cache keeps strings in the servers of a Client as a cache. Its methods are those of
// redis.Client, with the same commands as results; a key without a value is redis.Nil.
// Make one with Client.Cache; it ends with its Client. Safe for concurrent use.
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
// Keys that the cache is to keep up with are written and deleted through caches only: a
// DEL by the Client leaves what the other owner has.
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

// Get returns the value of key, or redis.Nil.
func (c *Cache) Get(ctx context.Context, key string) *redis.StringCmd {
	cmd := redis.NewStringCmd(ctx, "get", key)
	op := &rediscache.Op{Kind: rediscache.Get, Key: key}
	c.engine.Do(ctx, op)
	got(cmd, op)
	return cmd
}

// MGet returns the values of the keys in their order, nil where there is none. If a node
// fails that is the error of all.
func (c *Cache) MGet(ctx context.Context, keys ...string) *redis.SliceCmd {
	args := []any{"mget"}
	ops := make([]*rediscache.Op, len(keys))
	for i, key := range keys {
		args = append(args, key)
		ops[i] = &rediscache.Op{Kind: rediscache.Get, Key: key}
	}
	cmd := redis.NewSliceCmd(ctx, args...)
	c.engine.Do(ctx, ops...)
	values := make([]any, len(keys))
	for i, op := range ops {
		if op.Err != nil {
			cmd.SetErr(op.Err)
			return cmd
		}
		if op.Found {
			values[i] = op.Value
		}
	}
	cmd.SetVal(values)
	return cmd
}

// Set stores a value; a ttl of 0 is none, of less than 1 ms 1 ms. redis.KeepTTL is
// refused with ErrValue.
func (c *Cache) Set(ctx context.Context, key string, value any, ttl time.Duration) *redis.StatusCmd {
	cmd := redis.NewStatusCmd(ctx, "set", key, value)
	op, err := setOp(key, value, ttl)
	if err != nil {
		cmd.SetErr(err)
		return cmd
	}
	c.engine.Do(ctx, op)
	stored(cmd, op)
	return cmd
}

// SetNX stores a value if the key has none, and says whether it did. While the key's
// owner changes a value at the other owner counts; two clients at different steps of the
// change may both store: it is for filling a cache, not for a lock.
func (c *Cache) SetNX(ctx context.Context, key string, value any, ttl time.Duration) *redis.BoolCmd {
	cmd := redis.NewBoolCmd(ctx, "set", key, value, "nx")
	op, err := setOp(key, value, ttl)
	done := false
	if err == nil {
		done, err = c.engine.SetNX(ctx, key, op.Value, ttl)
	}
	cmd.SetVal(done)
	if err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// Del deletes keys, and returns how many there were. If nodes fail, the keys of the
// others are deleted.
func (c *Cache) Del(ctx context.Context, keys ...string) *redis.IntCmd {
	args := []any{"del"}
	ops := make([]*rediscache.Op, len(keys))
	for i, key := range keys {
		args = append(args, key)
		ops[i] = &rediscache.Op{Kind: rediscache.Del, Key: key}
	}
	cmd := redis.NewIntCmd(ctx, args...)
	c.engine.Do(ctx, ops...)
	deleted(cmd, ops)
	return cmd
}

// Pipelined calls fn, and then sends what it has put into the pipe: each node its part,
// all at once, in order for each key. The commands have their results when it returns;
// its error is the first of theirs, redis.Nil included, as in go-redis.
func (c *Cache) Pipelined(ctx context.Context, fn func(*CachePipe) error) error {
	p := &CachePipe{ctx: ctx}
	if err := fn(p); err != nil {
		return err
	}
	c.engine.Do(ctx, p.ops...)
	var first error
	for _, take := range p.take {
		if err := take(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// CachePipe collects commands for Cache.Pipelined. Not safe for concurrent use.
type CachePipe struct {
	ctx  context.Context
	ops  []*rediscache.Op
	take []func() error // puts a result into its command
}

func (p *CachePipe) add(take func() error, ops ...*rediscache.Op) {
	p.ops, p.take = append(p.ops, ops...), append(p.take, take)
}

// Get is Cache.Get.
func (p *CachePipe) Get(key string) *redis.StringCmd {
	cmd := redis.NewStringCmd(p.ctx, "get", key)
	op := &rediscache.Op{Kind: rediscache.Get, Key: key}
	p.add(func() error { got(cmd, op); return cmd.Err() }, op)
	return cmd
}

// Set is Cache.Set.
func (p *CachePipe) Set(key string, value any, ttl time.Duration) *redis.StatusCmd {
	cmd := redis.NewStatusCmd(p.ctx, "set", key, value)
	op, err := setOp(key, value, ttl)
	if err != nil {
		cmd.SetErr(err)
		p.add(cmd.Err)
		return cmd
	}
	p.add(func() error { stored(cmd, op); return cmd.Err() }, op)
	return cmd
}

// Del is Cache.Del.
func (p *CachePipe) Del(keys ...string) *redis.IntCmd {
	ops := make([]*rediscache.Op, len(keys))
	for i, key := range keys {
		ops[i] = &rediscache.Op{Kind: rediscache.Del, Key: key}
	}
	cmd := redis.NewIntCmd(p.ctx, "del")
	p.add(func() error { deleted(cmd, ops); return cmd.Err() }, ops...)
	return cmd
}

func got(cmd *redis.StringCmd, op *rediscache.Op) {
	switch {
	case op.Err != nil:
		cmd.SetErr(op.Err)
	case !op.Found:
		cmd.SetErr(redis.Nil)
	default:
		cmd.SetVal(op.Value)
	}
}

func stored(cmd *redis.StatusCmd, op *rediscache.Op) {
	if op.Err != nil {
		cmd.SetErr(op.Err)
		return
	}
	cmd.SetVal("OK")
}

func deleted(cmd *redis.IntCmd, ops []*rediscache.Op) {
	var sum int64
	var errs []error
	for _, op := range ops {
		if op.Err != nil {
			errs = append(errs, op.Err)
		} else if op.Found {
			sum++
		}
	}
	cmd.SetVal(sum)
	if len(errs) > 0 {
		cmd.SetErr(errors.Join(errs...))
	}
}

func setOp(key string, value any, ttl time.Duration) (*rediscache.Op, error) {
	if ttl < 0 {
		return nil, fmt.Errorf("%w; and no ttl below 0 (%s)", ErrValue, ttl)
	}
	s, err := encode(value)
	return &rediscache.Op{Kind: rediscache.Set, Key: key, Value: s, TTL: ttl}, err
}

// encode returns a value as go-redis would send it.
func encode(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case bool:
		if v {
			return "1", nil
		}
		return "0", nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 64), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case time.Duration:
		return strconv.FormatInt(v.Nanoseconds(), 10), nil
	case encoding.BinaryMarshaler:
		b, err := v.MarshalBinary()
		return string(b), err
	}
	return "", fmt.Errorf("%w, not %T", ErrValue, value)
}

// sender is the client as the engine sees it.
type sender struct{ c *Client }

// Send sends commands to one node in one pipeline.
func (s sender) Send(ctx context.Context, n topology.Node, cmds []rediscache.Command) []rediscache.Reply {
	queued := make([]redis.Cmder, len(cmds))
	for i, words := range cmds {
		args := make([]any, len(words))
		for k, w := range words {
			args[k] = w
		}
		queued[i] = redis.NewCmd(ctx, args...)
	}
	err := s.c.pools.One(n, func(_ topology.Node, r *redis.Client) error {
		if len(queued) == 1 {
			_ = r.Process(ctx, queued[0]) // its error is the command's
			return nil
		}
		_, _ = r.Pipelined(ctx, func(p redis.Pipeliner) error { return p.BatchProcess(ctx, queued...) })
		return nil
	})
	out := make([]rediscache.Reply, len(cmds))
	for i, q := range queued {
		if out[i].Err = err; err == nil {
			out[i].Value, out[i].Err = q.(*redis.Cmd).Result()
		}
		if errors.Is(out[i].Err, redis.Nil) {
			out[i] = rediscache.Reply{}
		}
	}
	return out
}
