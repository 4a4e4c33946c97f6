package rediscache

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// readScript answers a string and what is left of its time to live in milliseconds, -1
// for no end, of one moment; nil if there is none.
const readScript = `local v = redis.call('GET', KEYS[1])
if not v then return false end
return {v, redis.call('PTTL', KEYS[1])}`

// putScript stores ARGV[3] for ARGV[4] ms (0: for good) if the key is absent, or begins
// with ARGV[1] and has as many bytes as ARGV[2] says ('*' is any number, ” none), which
// counts as absent; with a second key, a lease, only if that is still ARGV[5], and ends it.
// It answers 1 if it stored.
const putScript = `if KEYS[2] then
  if redis.call('GET', KEYS[2]) ~= ARGV[5] then return 0 end
  redis.call('DEL', KEYS[2])
end
local v = redis.call('GET', KEYS[1])
if v and (ARGV[2] ~= '*' and ARGV[2] ~= tostring(#v) or string.sub(v, 1, #ARGV[1]) ~= ARGV[1]) then return 0 end
if ARGV[4] == '0' then redis.call('SET', KEYS[1], ARGV[3])
else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
return 1`

// releaseScript gives up a lease of nonce ARGV[1].
const releaseScript = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

// fill is a value on its way from the other owner to the owner.
type fill struct {
	op    *Op
	nonce string // of the lease; "" without one
	value string
	ttl   int64 // as PTTL has it
}

// through asks the other owners for what their owners do not have, and copies it.
// What goes wrong here leaves a miss.
func (c *Cache) through(ctx context.Context, ops []*Op) {
	if len(ops) == 0 {
		return
	}
	fills := c.lease(ctx, c.present(ctx, ops))
	byOp := make(map[*Op]*fill, len(fills))
	var there []*Op
	for i := range fills {
		byOp[fills[i].op] = &fills[i]
		there = append(there, fills[i].op)
	}
	c.scatter(ctx, there, toOther, func(op *Op) step {
		return step{cmds: []Command{{"EVAL", readScript, "1", op.Key}}, took: func(replies []Reply) { c.found(byOp[op], replies[0]) }}
	})
	c.copy(ctx, choose(there, func(op *Op) bool { return byOp[op].nonce != "" }), byOp)
}

// present returns the operations whose keys the other owners have: a lease would be of no
// use to the others.
func (c *Cache) present(ctx context.Context, ops []*Op) []*Op {
	has := make(map[*Op]*bool, len(ops))
	for _, op := range ops {
		has[op] = new(bool)
	}
	c.scatter(ctx, ops, toOther, func(op *Op) step {
		return step{cmds: []Command{{"EXISTS", op.Key}}, took: func(replies []Reply) {
			*has[op] = number(replies[0]) > 0
			if replies[0].Err != nil {
				c.stats.otherErrors.Add(1)
			}
		}}
	})
	return choose(ops, func(op *Op) bool { return *has[op] })
}

// lease takes a lease for each key, where nobody else has one.
func (c *Cache) lease(ctx context.Context, ops []*Op) []fill {
	fills := make([]fill, len(ops))
	byOp := make(map[*Op]*fill, len(ops))
	for i, op := range ops {
		fills[i].op = op
		byOp[op] = &fills[i]
	}
	c.scatter(ctx, ops, toOwner, func(op *Op) step {
		nonce := c.nextNonce()
		return step{cmds: []Command{{"SET", lease(op.Key), nonce, "PX", leaseTime, "NX"}}, took: func(replies []Reply) {
			if s, ok := replies[0].Value.(string); ok && s == "OK" && replies[0].Err == nil {
				byOp[op].nonce = nonce
			}
		}}
	})
	return fills
}

// nextNonce is another one at each call, of all caches.
func (c *Cache) nextNonce() string { return c.nonce + strconv.FormatUint(c.count.Add(1), 36) }

// found takes what the other owner has.
func (c *Cache) found(f *fill, r Reply) {
	if r.Err != nil {
		c.stats.otherErrors.Add(1)
		return
	}
	pair, ok := r.Value.([]any)
	if !ok || len(pair) != 2 {
		return
	}
	stored, ok := pair[0].(string)
	if !ok {
		return
	}
	if f.value, f.op.Found = c.open(stored, f.op.route.OtherSince()); !f.op.Found {
		return
	}
	f.op.Value = f.value
	f.ttl, _ = pair[1].(int64)
	c.stats.through.Add(1)
}

// copy stores values at the owners under their leases, and gives up the other leases: of
// keys that had no value after all, or have another owner by now.
func (c *Cache) copy(ctx context.Context, ops []*Op, fills map[*Op]*fill) {
	c.scatter(ctx, ops, toOwner, func(op *Op) step {
		f := fills[op]
		if !op.Found || !c.stays(op) {
			return step{cmds: []Command{{"EVAL", releaseScript, "1", lease(op.Key), f.nonce}}, took: func([]Reply) {}}
		}
		ttl := f.ttl
		if ttl == 0 {
			ttl = 1 // ms: it is about to end
		}
		return step{cmds: []Command{c.put(op, f.value, max(0, ttl), f.nonce)}, took: func(replies []Reply) {
			if number(replies[0]) == 1 {
				c.stats.copied.Add(1)
			}
		}}
	})
}

// stays reports whether the key has the same two owners as when it was looked up.
func (c *Cache) stays(op *Op) bool {
	now, err := c.sdk.Route(op.Key)
	if err != nil || now.ID() != op.route.ID() {
		return false
	}
	other, ok := now.Other()
	return ok && other.ID == op.other.ID
}

// put is the command that stores a value if there is none, or only one that counts as
// none, under the lease if there is a nonce.
func (c *Cache) put(op *Op, value string, px int64, nonce string) Command {
	begins, size := op.absent()
	stored := c.seal(value, op.since)
	if nonce == "" {
		return Command{"EVAL", putScript, "1", op.Key, begins, size, stored, text(px)}
	}
	return Command{"EVAL", putScript, "2", op.Key, lease(op.Key), begins, size, stored, text(px), nonce}
}

// SetNX stores the value if the key has none, and reports whether it did. While the
// key's owner changes, a value at the other owner counts.
func (c *Cache) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	op := &Op{Kind: Get, Key: key}
	c.plan([]*Op{op})
	if op.around && op.Err == nil {
		op.Err = c.cfg.ErrDetour
	}
	if op.Err != nil {
		return false, op.Err
	}
	one := []*Op{op}
	if c.cfg.Fence || op.moving {
		c.atOwners(ctx, one)
		if op.moving && op.Err == nil && !op.Found {
			c.through(ctx, one)
		}
		if op.Err != nil || op.Found {
			return false, op.Err
		}
	}
	if op.moving {
		if c.forget(ctx, one); op.Err != nil {
			return false, op.Err
		}
	}
	stored := false
	c.scatter(ctx, one, toOwner, func(op *Op) step {
		cmds := []Command{c.add(op, value, millis(ttl))}
		if c.cfg.ReadThrough {
			cmds = []Command{op.bar(), cmds[0]}
		}
		return step{cmds: cmds, took: func(replies []Reply) {
			last := replies[len(replies)-1]
			op.Err, stored = firstError(replies), number(last) == 1 || last.Value == "OK"
		}}
	})
	if stored && op.moving && op.Err == nil {
		c.forgetAgain(ctx, one)
	}
	return stored && op.Err == nil, op.Err
}

// add is the command that stores a value if there is none.
func (c *Cache) add(op *Op, value string, px int64) Command {
	if c.cfg.Fence {
		return c.put(op, value, px, "")
	}
	cmd := Command{"SET", op.Key, value, "NX"}
	if px > 0 {
		cmd = append(cmd, "PX", text(px))
	}
	return cmd
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// number is an integer reply; 0 if it is none.
func number(r Reply) int64 {
	n, _ := r.Value.(int64)
	return n
}

func firstError(replies []Reply) error {
	for _, r := range replies {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// IsRead reports whether a command may be sent again without harm.
func (cmd Command) IsRead() bool {
	return len(cmd) > 0 && (strings.EqualFold(cmd[0], "GET") || strings.EqualFold(cmd[0], "MGET") || strings.EqualFold(cmd[0], "EXISTS"))
}
