package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/rediskeys"
)

// args are a command's, as text.
type args []any

func (a args) Len() int { return len(a) }

func (a args) Arg(i int) string {
	switch v := a[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	default:
		return fmt.Sprint(v)
	}
}

// batch is what goes to one node in one pipeline.
type batch struct {
	route sdk.Route
	cmds  []redis.Cmder
}

// work is a pipeline under way.
type work struct {
	c       *Client
	batches []*batch
	index   map[string]*batch
	joins   []func() // put the answers of parts into the commands they are parts of
	errs    []error
}

// single returns the route of a command that goes to one node, which is all that
// most commands need.
func (c *Client) single(cmd redis.Cmder) (sdk.Route, bool) {
	a := args(cmd.Args())
	var room [8]int
	keys, _ := rediskeys.Append(room[:0], a)
	if len(keys) != 1 {
		return sdk.Route{}, false
	}
	r, err := c.sdk.Route(a.Arg(keys[0]))
	return r, err == nil
}

// run sends commands to their nodes, all nodes at once, and joins what was split.
func (c *Client) run(ctx context.Context, cmds []redis.Cmder) error {
	w := &work{c: c, index: make(map[string]*batch)}
	for _, cmd := range cmds {
		if err := w.plan(ctx, cmd); err != nil {
			cmd.SetErr(err)
			w.errs = append(w.errs, err)
		}
	}
	var all sync.WaitGroup
	for i, b := range w.batches {
		if i == len(w.batches)-1 {
			b.send(ctx, c)
			break
		}
		all.Go(func() { b.send(ctx, c) })
	}
	all.Wait()
	for _, join := range w.joins {
		join()
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

// send sends a node its part; what goes wrong on the way stands in the commands.
func (b *batch) send(ctx context.Context, c *Client) {
	err := c.on(b.route, func(n *redis.Client) error {
		if len(b.cmds) == 1 {
			_ = n.Process(ctx, b.cmds[0]) // its error is the command's
			return nil
		}
		pipe := n.Pipeline()
		for _, cmd := range b.cmds {
			_ = pipe.Process(ctx, cmd) // only queued
		}
		_, err := pipe.Exec(ctx)
		if err == nil || errors.Is(err, redis.Nil) {
			return nil
		}
		return nil // each command has its own
	})
	if err != nil {
		for _, cmd := range b.cmds {
			cmd.SetErr(err)
		}
	}
}

// to adds cmd to the pipeline of the route's node.
func (w *work) to(r sdk.Route, cmd redis.Cmder) {
	b := w.index[r.ID()]
	if b == nil {
		b = &batch{route: r}
		w.index[r.ID()] = b
		w.batches = append(w.batches, b)
	}
	b.cmds = append(b.cmds, cmd)
}

// plan says where cmd goes, and splits it if it goes to several nodes.
func (w *work) plan(ctx context.Context, cmd redis.Cmder) error {
	a := args(cmd.Args())
	keys, _ := rediskeys.Append(nil, a)
	if len(keys) == 0 {
		return fmt.Errorf("%w (%s)", ErrNoKey, cmd.Name())
	}
	routes := make([]sdk.Route, len(keys))
	for i, at := range keys {
		r, err := w.c.sdk.Route(a.Arg(at))
		if err != nil {
			return err
		}
		routes[i] = r
	}
	if same(routes) {
		w.to(routes[0], cmd)
		return nil
	}
	s, ok := splits[cmd.Name()]
	if !ok {
		return fmt.Errorf("%w (%s)", ErrCrossNode, cmd.Name())
	}
	return w.split(ctx, cmd, s, keys, routes)
}

func same(routes []sdk.Route) bool {
	for _, r := range routes[1:] {
		if r.ID() != routes[0].ID() {
			return false
		}
	}
	return true
}

// transact sends a transaction, whose keys all have to be on one node.
func (c *Client) transact(ctx context.Context, cmds []redis.Cmder) error {
	err := func() error {
		var routes []sdk.Route
		for _, cmd := range cmds {
			a := args(cmd.Args())
			keys, _ := rediskeys.Append(nil, a)
			for _, at := range keys {
				r, err := c.sdk.Route(a.Arg(at))
				if err != nil {
					return err
				}
				routes = append(routes, r)
			}
		}
		switch {
		case len(routes) == 0:
			return fmt.Errorf("%w (transaction)", ErrNoKey)
		case !same(routes):
			return fmt.Errorf("%w (transaction)", ErrCrossNode)
		}
		return c.on(routes[0], func(n *redis.Client) error {
			pipe := n.TxPipeline()
			for _, cmd := range cmds {
				_ = pipe.Process(ctx, cmd) // only queued
			}
			_, err := pipe.Exec(ctx)
			return err
		})
	}()
	if err != nil {
		for _, cmd := range cmds {
			if cmd.Err() == nil && (errors.Is(err, ErrNoKey) || errors.Is(err, ErrCrossNode)) {
				cmd.SetErr(err)
			}
		}
	}
	return err
}

// split says how a command with many keys is cut up and put together again.
type split struct {
	step int // arguments for each key
	join func(cmd redis.Cmder, total int, parts []answer) error
}

// answer is the answer to a part, and which of the command's keys it is about.
type answer struct {
	at  []int
	cmd *redis.Cmd
}

var splits = map[string]split{
	"mget":   {1, joinValues},
	"mset":   {2, joinOK},
	"del":    {1, joinSum},
	"unlink": {1, joinSum},
	"exists": {1, joinSum},
	"touch":  {1, joinSum},
}

func (w *work) split(ctx context.Context, cmd redis.Cmder, s split, keys []int, routes []sdk.Route) error {
	index := make(map[string]*answer)
	var parts []*answer
	var where []sdk.Route
	list := make(map[string][]any)
	for i, r := range routes {
		p := index[r.ID()]
		if p == nil {
			p = &answer{}
			index[r.ID()] = p
			parts, where = append(parts, p), append(where, r)
			list[r.ID()] = []any{cmd.Args()[0]}
		}
		p.at = append(p.at, i)
		list[r.ID()] = append(list[r.ID()], cmd.Args()[keys[i]:keys[i]+s.step]...)
	}
	for i, p := range parts {
		p.cmd = redis.NewCmd(ctx, list[where[i].ID()]...)
		w.to(where[i], p.cmd)
	}
	w.joins = append(w.joins, func() {
		answers := make([]answer, len(parts))
		for i, p := range parts {
			if err := p.cmd.Err(); err != nil {
				cmd.SetErr(err)
				return
			}
			answers[i] = *p
		}
		if err := s.join(cmd, len(keys), answers); err != nil {
			cmd.SetErr(err)
		}
	})
	return nil
}

func joinValues(cmd redis.Cmder, total int, parts []answer) error {
	values := make([]any, total)
	for _, p := range parts {
		got, err := p.cmd.Slice()
		if err != nil {
			return err
		}
		for i, at := range p.at {
			if i < len(got) {
				values[at] = got[i]
			}
		}
	}
	switch cmd := cmd.(type) {
	case *redis.SliceCmd:
		cmd.SetVal(values)
	case *redis.Cmd:
		cmd.SetVal(values)
	default:
		return unexpected(cmd)
	}
	return nil
}

func joinSum(cmd redis.Cmder, _ int, parts []answer) error {
	var sum int64
	for _, p := range parts {
		n, err := p.cmd.Int64()
		if err != nil {
			return err
		}
		sum += n
	}
	switch cmd := cmd.(type) {
	case *redis.IntCmd:
		cmd.SetVal(sum)
	case *redis.Cmd:
		cmd.SetVal(sum)
	default:
		return unexpected(cmd)
	}
	return nil
}

func joinOK(cmd redis.Cmder, _ int, _ []answer) error {
	switch cmd := cmd.(type) {
	case *redis.StatusCmd:
		cmd.SetVal("OK")
	case *redis.Cmd:
		cmd.SetVal("OK")
	default:
		return unexpected(cmd)
	}
	return nil
}

func unexpected(cmd redis.Cmder) error {
	return fmt.Errorf("redis: %s into a %T cannot be put together; use the typed command or Do", cmd.Name(), cmd)
}
