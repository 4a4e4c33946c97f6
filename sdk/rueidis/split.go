package rueidis

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/rueidis"

	"github.com/shardd/shardd/sdk"
)

// part is what goes to one node of many commands or keys.
type part struct {
	route sdk.Route
	at    []int
}

// DoMulti sends commands to their nodes, all nodes at once, and returns the results in
// the order of the commands.
func (c *Client) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	out := make([]rueidis.RedisResult, len(cmds))
	parts := c.split(len(cmds), func(i int) (sdk.Route, error) { return c.route(cmds[i].Commands()) },
		func(i int, err error) { out[i] = rueidis.NewErrorResult(err) })
	each(parts, func(p *part) {
		mine := make([]rueidis.Completed, len(p.at))
		for i, at := range p.at {
			mine[i] = cmds[at]
		}
		err := c.on(p.route, func(n rueidis.Client) error {
			for i, r := range n.DoMulti(ctx, mine...) {
				out[p.at[i]] = r
			}
			return nil
		})
		if err != nil {
			for _, at := range p.at {
				out[at] = rueidis.NewErrorResult(err)
			}
		}
	})
	return out
}

// split groups 0 to n-1 by node.
func (c *Client) split(n int, route func(int) (sdk.Route, error), failed func(int, error)) []*part {
	var parts []*part
	index := make(map[string]*part)
	for i := range n {
		r, err := route(i)
		if err != nil {
			failed(i, err)
			continue
		}
		p := index[r.ID()]
		if p == nil {
			p = &part{route: r}
			index[r.ID()] = p
			parts = append(parts, p)
		}
		p.at = append(p.at, i)
	}
	return parts
}

// each calls fn with all parts at once and waits.
func each(parts []*part, fn func(*part)) {
	var all sync.WaitGroup
	for i, p := range parts {
		if i == len(parts)-1 {
			fn(p)
			break
		}
		all.Go(func() { fn(p) })
	}
	all.Wait()
}

// byNode calls fn for each node that some of the keys go to, all at once, and returns
// the errors joined.
func (c *Client) byNode(keys []string, fn func(n rueidis.Client, keys []string) error) error {
	var mu sync.Mutex
	var errs []error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	parts := c.split(len(keys), func(i int) (sdk.Route, error) { return c.sdk.Route(keys[i]) }, func(_ int, err error) { fail(err) })
	if len(errs) > 0 {
		return errs[0] // one for all
	}
	each(parts, func(p *part) {
		mine := make([]string, len(p.at))
		for i, at := range p.at {
			mine[i] = keys[at]
		}
		if err := c.on(p.route, func(n rueidis.Client) error { return fn(n, mine) }); err != nil {
			fail(err)
		}
	})
	return errors.Join(errs...)
}

// MGet returns the values of the keys, by key, those included that are not there (their
// message is nil): one MGET to each node. If nodes fail the values of the others are
// returned with the errors joined.
func (c *Client) MGet(ctx context.Context, keys []string) (map[string]rueidis.RedisMessage, error) {
	var mu sync.Mutex
	out := make(map[string]rueidis.RedisMessage, len(keys))
	err := c.byNode(keys, func(n rueidis.Client, keys []string) error {
		got, err := rueidis.MGet(n, ctx, keys)
		mu.Lock()
		defer mu.Unlock()
		for k, m := range got {
			out[k] = m
		}
		return err
	})
	return out, err
}

// MSet writes values by key: one MSET to each node, each atomic for itself.
func (c *Client) MSet(ctx context.Context, values map[string]string) error {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	return c.byNode(keys, func(n rueidis.Client, keys []string) error {
		cmd := n.B().Mset().KeyValue()
		for _, k := range keys {
			cmd = cmd.KeyValue(k, values[k])
		}
		return n.Do(ctx, cmd.Build()).Error()
	})
}

// Del deletes keys and returns how many there were.
func (c *Client) Del(ctx context.Context, keys ...string) (int64, error) {
	var mu sync.Mutex
	var sum int64
	err := c.byNode(keys, func(n rueidis.Client, keys []string) error {
		k, err := n.Do(ctx, n.B().Del().Key(keys...).Build()).AsInt64()
		mu.Lock()
		defer mu.Unlock()
		sum += k
		return err
	})
	return sum, err
}
