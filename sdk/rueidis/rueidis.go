// Package rueidis shards redis/rueidis over plain Redis servers by a topology.
//
//	cache, err := shardrueidis.New(client, shardrueidis.Config{})
//	b, err := cache.B()
//	err = cache.Do(ctx, b.Set().Key("user:1").Value("Ada").Build()).Error()
//
// # Law
//
// A command goes where sdk.Client.Route says for its keys, which are found by Redis' own
// key specifications; a command whose keys are on several nodes is refused with
// ErrCrossNode, and one without a key with ErrNoKey. DoMulti sends each node its part,
// all at once; commands to one node keep their order. MGet, MSet and Del are split by
// node. Each node has a rueidis.Client of its own, connected before its first command
// and closed when the node has left.
//
// # Cost
//
// Over rueidis: one lookup, a map access and two atomic operations a command. rueidis
// sends all commands to a node over few connections (ClientOption.PipelineMultiplex),
// which is their cap.
//
// # What it does not do
//
// It does not implement rueidis.Client: dedicated connections and streams belong to one
// node (Client.Node). Entries of client-side caching are dropped with their node's client,
// and those of a node that lost a key stay until they end: give DoCache short times where
// keys move.
package rueidis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/pools"
	"github.com/shardd/shardd/sdk/internal/rediskeys"
	"github.com/shardd/shardd/topology"
)

// Errors of commands.
var (
	// ErrCrossNode says that the keys of a command are on different nodes. Give them
	// one hash tag, in a cluster with hash_tag "{}".
	ErrCrossNode = errors.New("rueidis: the keys are on different nodes; give them one hash tag")
	// ErrNoKey says that a command has no key, so that it belongs to no node. Use
	// Client.ForEachNode, or Client.Node for a key or a channel.
	ErrNoKey = errors.New("rueidis: the command has no key; use ForEachNode, or Node for a key or channel")
)

// Config configures a Client.
type Config struct {
	// Option is what each node's rueidis.Client is made of; InitAddress is replaced.
	// Its ConnLifetime limits the age of connections.
	Option rueidis.ClientOption
	// Grace is how long commands to a node that left may go on; 0 means 30 s.
	Grace time.Duration
}

// Client shards commands over the nodes of a topology. Make one with New, end it with
// Close. Safe for concurrent use.
type Client struct {
	sdk   *sdk.Client
	cfg   Config
	pools *pools.Pools[rueidis.Client]
}

// New returns a client for the nodes that c follows, and connects to them in the
// background.
func New(c *sdk.Client, cfg Config) *Client {
	r := &Client{sdk: c, cfg: cfg}
	r.pools = pools.New(c, pools.Config[rueidis.Client]{Open: r.open, Close: func(n rueidis.Client) { n.Close() }, Grace: cfg.Grace,
		Warm: func(ctx context.Context, n rueidis.Client) error { return n.Do(ctx, n.B().Ping().Build()).Error() }})
	return r
}

func (c *Client) open(n topology.Node) (rueidis.Client, error) {
	if n.Addr == "" {
		return nil, fmt.Errorf("rueidis: node %q has no address; publish one, such as 10.0.0.1:6379", n.ID)
	}
	o := c.cfg.Option
	o.InitAddress, o.ForceSingleClient = []string{n.Addr}, true
	return rueidis.NewClient(o)
}

// Close closes the connections to all nodes, and leaves the sdk.Client open.
func (c *Client) Close() { c.pools.Close() }

// B returns rueidis' builder of commands, which is to be had from a connected node: the
// one that the empty key goes to, or the next that answers. Keep it.
func (c *Client) B() (b rueidis.Builder, err error) {
	t := c.sdk.Topology()
	if t == nil {
		return b, sdk.ErrNotReady
	}
	err = sdk.ErrNoNodes
	for _, n := range t.Nodes() {
		if err = c.pools.One(n, func(_ topology.Node, r rueidis.Client) error { b = r.B(); return nil }); err == nil {
			return b, nil
		}
	}
	return b, err
}

// Node calls fn with the client of the node that key goes to. It is not to be kept after
// fn returns, and not to be closed.
func (c *Client) Node(key string, fn func(rueidis.Client) error) error {
	r, err := c.sdk.Route(key)
	if err != nil {
		return err
	}
	return c.on(r, fn)
}

// ForEachNode calls fn for every node, one after another, and returns the errors joined.
func (c *Client) ForEachNode(fn func(topology.Node, rueidis.Client) error) error {
	return c.pools.Nodes(fn)
}

func (c *Client) on(r sdk.Route, fn func(rueidis.Client) error) error {
	l, err := c.pools.Use(r)
	if err != nil {
		return err
	}
	defer l.Done()
	return fn(l.Value())
}

// args are a command's words.
type args []string

func (a args) Len() int         { return len(a) }
func (a args) Arg(i int) string { return a[i] }

// route says where a command goes.
func (c *Client) route(words []string) (sdk.Route, error) {
	var room [8]int
	keys, _ := rediskeys.Append(room[:0], args(words))
	if len(keys) == 0 {
		return sdk.Route{}, fmt.Errorf("%w (%s)", ErrNoKey, name(words))
	}
	first, err := c.sdk.Route(words[keys[0]])
	if err != nil {
		return sdk.Route{}, err
	}
	for _, at := range keys[1:] {
		r, err := c.sdk.Route(words[at])
		if err != nil {
			return sdk.Route{}, err
		}
		if r.ID() != first.ID() {
			return sdk.Route{}, fmt.Errorf("%w (%s)", ErrCrossNode, name(words))
		}
	}
	return first, nil
}

func name(words []string) string {
	if len(words) == 0 {
		return "no command"
	}
	return words[0]
}

// Do sends a command to the node of its keys.
func (c *Client) Do(ctx context.Context, cmd rueidis.Completed) (resp rueidis.RedisResult) {
	r, err := c.route(cmd.Commands())
	if err == nil {
		err = c.on(r, func(n rueidis.Client) error {
			resp = n.Do(ctx, cmd)
			return nil
		})
	}
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return resp
}

// DoCache is Do with client-side caching, for ttl at most.
func (c *Client) DoCache(ctx context.Context, cmd rueidis.Cacheable, ttl time.Duration) (resp rueidis.RedisResult) {
	r, err := c.route(cmd.Commands())
	if err == nil {
		err = c.on(r, func(n rueidis.Client) error {
			resp = n.DoCache(ctx, cmd, ttl)
			return nil
		})
	}
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return resp
}

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
