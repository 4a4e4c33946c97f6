package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/internal/pools"
	"github.com/shardd/shardd/topology"
)

// Errors of commands.
var (
	// ErrCrossNode says that the keys of a command are on different nodes and
	// that it cannot be split. Give the keys one hash tag, such as "{user:1}:a"
	// and "{user:1}:b", in a cluster with hash_tag "{}".
	ErrCrossNode = errors.New("redis: the keys are on different nodes; give them one hash tag")
	// ErrNoKey says that a command has no key, so that it belongs to no node:
	// SCAN, KEYS, PUBLISH, FLUSHALL and others. Use Client.ForEachNode, or
	// Client.Node for a key or a channel.
	ErrNoKey = errors.New("redis: the command has no key; use ForEachNode, or Node for a key or channel")
)

// Config configures a Client. The zero value takes the defaults.
type Config struct {
	// Options is what each node's redis.Client is made of, but for Addr; nil is
	// go-redis' defaults. There it is PoolSize (base number of connections a node,
	// default 10 a CPU), ConnMaxLifetime (default: no limit), ConnMaxIdleTime
	// (default 30 min) and PoolTimeout.
	Options *redis.Options
	// MaxConns is the most connections to one node, pipelines included, subscriptions
	// not; 0 means what Options say: PoolSize, and 10 for pipelines beside it. A command
	// that finds all of them busy waits for Options.PoolTimeout (default 6 s), and then
	// fails with redis.ErrPoolTimeout.
	MaxConns int
	// WarmUp is how many connections to a node are open before its first command, at
	// most MaxConns; 0 means 1, below 0 none. A first command waits for them for a second
	// at most. Options.MinIdleConns are opened besides, and nothing waits for them.
	WarmUp int
	// MaxAge is the age at which a connection is replaced at the latest, before its next
	// command. Each has its own, from four fifths of MaxAge on, so that not all are
	// opened anew at once. 0 means what Options say, or 30 min if they say nothing;
	// below 0 never.
	MaxAge time.Duration
	// MaxRequests is how many requests a connection serves before it is replaced; 0
	// means no limit. A pipeline is one request, opening a connection one or two. It
	// has an effect where go-redis looks after idle connections (not on Windows), and
	// none with Options.ClientSideCache.
	MaxRequests int
	// Grace is how long commands to a node that left may go on; 0 means 30 s.
	Grace time.Duration
}

func (c Config) options(addr string) *redis.Options {
	var o redis.Options
	if c.Options != nil {
		o = *c.Options
	}
	o.Addr = addr
	if o.MaintNotificationsConfig == nil { // plain servers announce no maintenance
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	if len(addr) > 0 && addr[0] == '/' {
		o.Network = "unix"
	}
	if c.MaxConns > 0 {
		o.MaxActiveConns = c.MaxConns
		o.PoolSize = min(cmp.Or(max(0, o.PoolSize), c.MaxConns), c.MaxConns)
		o.MinIdleConns = min(o.MinIdleConns, c.MaxConns)
		o.PipelinePoolSize = -1 // else go-redis opens 10 more for pipelines
	}
	c.limitAge(&o)
	if c.MaxRequests > 0 {
		limitRequests(&o, c.MaxRequests)
	}
	return &o
}

// limitAge spreads the ends of connections over the last fifth of the largest age.
func (c Config) limitAge(o *redis.Options) {
	age := c.MaxAge
	if age < 0 {
		o.ConnMaxLifetime = 0
	}
	if age < 0 || age == 0 && o.ConnMaxLifetime != 0 {
		return
	}
	age = cmp.Or(age, 30*time.Minute)
	o.ConnMaxLifetimeJitter = age / 10
	o.ConnMaxLifetime = age - o.ConnMaxLifetimeJitter
}

func (c Config) warms() int {
	n := cmp.Or(c.WarmUp, 1)
	if c.MaxConns > 0 {
		n = min(n, c.MaxConns)
	}
	return n
}

// Client is a redis.Client whose commands go to the nodes of a topology: all typed
// commands, Do, Pipelined and TxPipelined. Make one with New, end it with Close.
// Safe for concurrent use.
//
// Subscribe, PSubscribe, SSubscribe and Conn would need one server, and fail with
// ErrNoKey: use those of Node.
type Client struct {
	*redis.Client
	bare  *redis.Client // no server at all, and no hook either
	sdk   *sdk.Client
	cfg   Config
	warms int
	pools *pools.Pools[*redis.Client]
}

// New returns a client for the nodes that c follows. It waits for nothing; it opens
// connections in the background, to be ready for the first commands.
func New(c *sdk.Client, cfg Config) *Client {
	r := &Client{sdk: c, cfg: cfg, warms: cfg.warms()}
	p := pools.Config[*redis.Client]{Open: r.open, Close: func(n *redis.Client) { _ = n.Close() }, Grace: cfg.Grace}
	if r.warms > 0 {
		p.Warm = r.warm
	}
	r.pools = pools.New(c, p)
	// Without notifications: for them go-redis would look the name up.
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r.Client = redis.NewClient(&redis.Options{Addr: "shardd", Dialer: noServer, MaintNotificationsConfig: quiet})
	r.bare = redis.NewClient(&redis.Options{Addr: "shardd", Dialer: noServer, MaintNotificationsConfig: quiet, DialerRetries: 1, MaxRetries: -1})
	r.AddHook(router{r})
	return r
}

// noServer stands where a command would be sent to no node in particular.
func noServer(context.Context, string, string) (net.Conn, error) {
	return nil, fmt.Errorf("%w, which also has Subscribe, Conn and Watch", ErrNoKey)
}

// Close closes the connections to all nodes, and leaves the sdk.Client open.
func (c *Client) Close() error {
	c.pools.Close()
	return errors.Join(c.Client.Close(), c.bare.Close())
}

// Conn returns a connection whose commands fail with ErrNoKey: one connection leads
// to one server. Use that of Node.
func (c *Client) Conn() *redis.Conn { return c.bare.Conn() }

// Watch runs fn in an optimistic transaction on the node of the keys, as
// redis.Client.Watch does. ErrCrossNode if they are on several, ErrNoKey without any.
func (c *Client) Watch(ctx context.Context, fn func(*redis.Tx) error, keys ...string) error {
	routes := make([]sdk.Route, len(keys))
	for i, key := range keys {
		r, err := c.sdk.Route(key)
		if err != nil {
			return err
		}
		routes[i] = r
	}
	switch {
	case len(keys) == 0:
		return fmt.Errorf("%w (watch)", ErrNoKey)
	case !same(routes):
		return fmt.Errorf("%w (watch)", ErrCrossNode)
	}
	return c.on(routes[0], func(n *redis.Client) error { return n.Watch(ctx, fn, keys...) })
}

func (c *Client) open(n topology.Node) (*redis.Client, error) {
	if n.Addr == "" {
		return nil, fmt.Errorf("redis: node %q has no address; publish one, such as 10.0.0.1:6379", n.ID)
	}
	return redis.NewClient(c.cfg.options(n.Addr)), nil
}

// warm opens connections and keeps each until the last is open, so that they are
// different ones. One after another: go-redis' dedicated connections of one client
// write their client's options while they shake hands.
func (c *Client) warm(ctx context.Context, n *redis.Client) error {
	for range c.warms {
		conn := n.Conn()
		defer conn.Close() // back into the pool
		if err := conn.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	return nil
}

// Node calls fn with the client of the node that key goes to: for what has no key of
// its own, such as channels, for WATCH, scripts without keys and dedicated
// connections. The client is not to be kept after fn returns, and not to be closed.
func (c *Client) Node(key string, fn func(*redis.Client) error) error {
	r, err := c.sdk.Route(key)
	if err != nil {
		return err
	}
	return c.on(r, fn)
}

// ForEachNode calls fn for every node, one after another, those included that own
// nothing at the moment, and returns the errors joined.
func (c *Client) ForEachNode(fn func(topology.Node, *redis.Client) error) error {
	return c.pools.Nodes(fn)
}

func (c *Client) on(r sdk.Route, fn func(*redis.Client) error) error {
	l, err := c.pools.Use(r)
	if err != nil {
		return err
	}
	defer l.Done()
	return fn(l.Value())
}

// router is the hook by which commands of the embedded client go to nodes.
type router struct{ c *Client }

// DialHook passes dialling on.
func (h router) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends one command.
func (h router) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if route, one := h.c.single(cmd); one { // nearly all commands
			err := h.c.on(route, func(n *redis.Client) error { return n.Process(ctx, cmd) })
			if err != nil && cmd.Err() == nil {
				cmd.SetErr(err)
			}
			return err
		}
		return h.c.run(ctx, []redis.Cmder{cmd})
	}
}

// ProcessPipelineHook sends a pipeline, or a transaction with its MULTI and EXEC.
func (h router) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) > 1 && cmds[0].Name() == "multi" {
			return h.c.transact(ctx, cmds[1:len(cmds)-1])
		}
		return h.c.run(ctx, cmds)
	}
}
