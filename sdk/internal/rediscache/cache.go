package rediscache

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// Sender sends commands to one node in one pipeline, and returns their replies in the
// same order. That is all a Redis client has to be.
type Sender interface {
	Send(ctx context.Context, n topology.Node, cmds []Command) []Reply
}

// Command is a command's words, the first its name.
type Command []string

// Reply is the answer to a command: Value is nil, a string, an int64 or a list of them
// ([]any); Err is what went wrong on the way or what the server answered instead.
type Reply struct {
	Value any
	Err   error
}

// Config says what a Cache does; see the adapters' CacheConfig.
type Config struct {
	ReadThrough   bool
	Fence         bool
	PassUnstamped bool
	// ErrDetour is what writes fail with where Fence cannot tell what a node has.
	ErrDetour error
}

// Cache keeps strings. Make one with New. Safe for concurrent use.
type Cache struct {
	sdk   *sdk.Client
	send  Sender
	cfg   Config
	nonce string // of this cache; with a counter behind it of one lease
	count atomic.Uint64
	stats struct{ stale, through, copied, otherErrors atomic.Uint64 }
}

// New returns a cache on the nodes that client follows. With Fence it makes the index of
// the version held (sdk.Client.PrepareOwnedSince).
func New(client *sdk.Client, send Sender, cfg Config) *Cache {
	if cfg.Fence {
		client.PrepareOwnedSince()
	}
	return &Cache{sdk: client, send: send, cfg: cfg, nonce: rand.Text()}
}

// Stats are a cache's counters.
type Stats struct {
	Stale       uint64 // values that the fence took for misses
	Through     uint64 // values that were found at the other owner
	Copied      uint64 // of those, copied to the owner
	OtherErrors uint64 // reads of other owners that failed, and were misses
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	return Stats{c.stats.stale.Load(), c.stats.through.Load(), c.stats.copied.Load(), c.stats.otherErrors.Load()}
}

// ErrAnswer says that a server answered with something else than the command's type.
var ErrAnswer = errors.New("rediscache: an answer of another type than the command's")

// Kind says what an Op does.
type Kind uint8

// Kinds of operations.
const (
	Get Kind = iota
	Set
	Del
)

// Op is one operation on a key, and what became of it.
type Op struct {
	Kind  Kind
	Key   string
	Value string        // Set: to be stored; Get: what was found
	TTL   time.Duration // Set: 0 or less is none; milliseconds
	Found bool          // Get: there was a value; Del: there was something
	Err   error

	route  sdk.Route
	other  topology.Node
	moving bool
	since  topology.Version // with Fence: since when the route's node has had the key
	around bool             // with Fence: nobody can tell what the route's node has
	stale  bool             // there is a stored value that counts as a miss
	seen   string           // that value
	mark   string           // of the bars of a write
}

// lease is the name of the key that a reader takes before it copies key. It does not end
// in valid UTF-8, so that it is no key of a program's.
func lease(key string) string { return key + "\xf5fill" }

// leaseTime is how long a reader may take from its lease to its copy, and a writer from
// its first command to its last.
const leaseTime = "5000"

// barMark begins what a writer puts where a reader's lease would be, so that none can be
// had while it deletes or writes, and what was had is lost. No reader's nonce begins so.
const barMark = "-"

// plan looks the operations' nodes up, all by one topology.
func (c *Cache) plan(ops []*Op) {
	var t *topology.Topology
	for i := 0; i < len(ops); i++ {
		op := ops[i]
		op.moving, op.around = false, false
		op.mark = ""
		op.route, op.Err = c.sdk.Route(op.Key)
		if op.Err != nil {
			continue
		}
		if now := op.route.Topology(); t != now {
			first := t == nil
			if t = now; !first { // a new one has come: begin again
				i = -1
				continue
			}
		}
		if c.cfg.ReadThrough {
			op.other, op.moving = op.route.Other()
			op.moving = op.moving && op.other.ID != op.route.ID() // else one is down
			if op.moving {
				op.mark = barMark + c.nextNonce()
			}
		}
		if c.cfg.Fence {
			op.since = op.route.FirstSince()
			op.around = op.since.IsZero()
		}
	}
}

// Do carries operations out: in their order where they are of one key. Each has its
// error; a Get without a value has none.
func (c *Cache) Do(ctx context.Context, ops ...*Op) {
	c.plan(ops)
	ops = c.detour(ops)
	writes := choose(ops, func(op *Op) bool { return op.moving && op.Kind != Get })
	c.forget(ctx, writes)
	c.atOwners(ctx, choose(ops, func(op *Op) bool { return op.Err == nil }))
	c.forgetAgain(ctx, choose(writes, func(op *Op) bool { return op.Err == nil }))
	c.through(ctx, choose(ops, func(op *Op) bool {
		return op.Kind == Get && op.moving && op.Err == nil && !op.Found
	}))
}

// detour takes out what Fence can do nothing for: reads are misses, the rest fails.
func (c *Cache) detour(ops []*Op) []*Op {
	if !c.cfg.Fence {
		return ops
	}
	return choose(ops, func(op *Op) bool {
		if op.Err == nil && op.around && op.Kind != Get {
			op.Err = c.cfg.ErrDetour
		}
		return op.Err == nil && !op.around
	})
}

func choose(ops []*Op, want func(*Op) bool) []*Op {
	var out []*Op
	for _, op := range ops {
		if want(op) {
			out = append(out, op)
		}
	}
	return out
}

// forget deletes the keys at their other owners, and bars copies to there.
func (c *Cache) forget(ctx context.Context, ops []*Op) {
	c.atOthers(ctx, ops, 1, (*Op).deletion)
}

// forgetAgain does so again after the owners were written, and ends the bars: nobody holds
// an older value any more. That at the owner stays for its time.
func (c *Cache) forgetAgain(ctx context.Context, ops []*Op) {
	c.atOthers(ctx, ops, 0, func(op *Op) []Command {
		return []Command{{"DEL", op.Key}, {"EVAL", releaseScript, "1", lease(op.Key), op.mark}}
	})
}

// atOthers sends deletions to the other owners; del is which of their commands it is.
func (c *Cache) atOthers(ctx context.Context, ops []*Op, del int, cmds func(*Op) []Command) {
	c.scatter(ctx, ops, toOther, func(op *Op) step {
		return step{cmds: cmds(op), took: func(replies []Reply) {
			if op.Err = firstError(replies); op.Err == nil && op.Kind == Del && number(replies[del]) > 0 {
				op.Found = true
			}
		}}
	})
}

// deletion deletes a key. The lease goes first: else a copy could be made in between.
func (op *Op) deletion() []Command { return []Command{op.bar(), {"DEL", op.Key}} }

// bar ends a reader's lease. While the key's owner changes nobody gets another one before
// the write is over: a reader that is a step behind could copy the old value from the owner
// to the other one after it was deleted there, and the next reader back.
func (op *Op) bar() Command {
	if op.moving {
		return Command{"SET", lease(op.Key), op.mark, "PX", leaseTime}
	}
	return Command{"DEL", lease(op.Key)}
}

// atOwners sends the operations to their keys' owners.
func (c *Cache) atOwners(ctx context.Context, ops []*Op) {
	c.scatter(ctx, ops, toOwner, func(op *Op) step {
		switch op.Kind {
		case Set:
			return c.set(op)
		case Del:
			return c.del(op)
		}
		return step{cmds: []Command{{"GET", op.Key}}, took: func(replies []Reply) {
			op.Err = replies[0].Err
			if stored, ok := replies[0].Value.(string); ok && op.Err == nil {
				if op.Value, op.Found = c.open(stored, op.since); !op.Found {
					op.stale, op.seen = true, stored
				}
			}
		}}
	})
}

func (c *Cache) set(op *Op) step {
	cmd := Command{"SET", op.Key, c.seal(op.Value, op.since)}
	if px := millis(op.TTL); px > 0 {
		cmd = append(cmd, "PX", text(px))
	}
	cmds := []Command{cmd}
	if c.cfg.ReadThrough { // a reader that is a step behind may have a lease
		cmds = []Command{op.bar(), cmd}
	}
	return step{cmds: cmds, took: func(replies []Reply) { op.Err = firstError(replies) }}
}

func (c *Cache) del(op *Op) step {
	cmds := op.deletion()
	if !c.cfg.ReadThrough {
		cmds = cmds[1:]
	}
	return step{cmds: cmds, took: func(replies []Reply) {
		if op.Err = firstError(replies); op.Err == nil && number(replies[len(replies)-1]) > 0 {
			op.Found = true
		}
	}}
}
