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
// node. Each node has a rueidis.Client of its own, connected before its first command,
// replaced by a new one when it is old or has served enough, and closed when the node
// has left, each time after what is in flight. [Cache] is for strings that are cached: it
// reads through to a key's other owner while its owner changes in steps, and takes what a
// server kept while it was away for misses.
//
// # Cost
//
// Over rueidis: one lookup, a map access and two atomic operations a command. rueidis
// sends all commands to a node over few connections (ClientOption.PipelineMultiplex), and
// has two pools beside them for what blocks; Config.MaxConns is their cap together.
//
// # What it does not do
//
// It does not implement rueidis.Client: dedicated connections and streams belong to one
// node (Client.Node). Entries of client-side caching are dropped with their node's client,
// and those of a node that lost a key stay until they end: give DoCache short times where
// keys move.
package rueidis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// Config configures a Client. The zero value takes the defaults.
type Config struct {
	// Option is what each node's rueidis.Client is made of; InitAddress is replaced.
	Option rueidis.ClientOption
	// MaxConns is the most connections to one node, at least 3: for commands, of which
	// rueidis keeps many in flight on each, as many as Option.PipelineMultiplex says if
	// they fit; the rest for blocking commands and dedicated connections, and as many for
	// streams (Option.BlockingPoolSize), which wait for a free one as long as their
	// context lets them. With RESP2, subscriptions have one more. 0 means what Option
	// says: by default 1 to 4 for commands, and 1024 in each of the two pools.
	MaxConns int
	// MaxAge is the age at which a node's connections are replaced at the latest, with
	// the next request. Each node has its own, from four fifths of MaxAge on, so that not
	// all are opened anew at once; those of one node are. The new ones are open before
	// the old ones get no more requests, and those are closed after what is in flight on
	// them: for that time there are twice MaxConns. What was cached for DoCache goes with
	// them. 0 means 30 min, below 0 never. Option.ConnLifetime does not wait like that: a
	// command under way for a second is sent again.
	MaxAge time.Duration
	// MaxRequests is how many requests a node's connections serve together before they
	// are replaced as for MaxAge. A DoMulti is one request. 0 means no limit.
	MaxRequests int
	// Grace is how long commands to a node that left may go on; 0 means 30 s.
	Grace time.Duration
}

// Client shards commands over the nodes of a topology. Make one with New, end it with
// Close. Safe for concurrent use.
type Client struct {
	sdk     *sdk.Client
	cfg     Config
	pools   *pools.Pools[*node]
	renewed atomic.Uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// New returns a client for the nodes that c follows, and connects to them in the
// background, with all connections for commands, so that they are open before the first.
func New(c *sdk.Client, cfg Config) *Client {
	cfg.MaxAge = cmp.Or(cfg.MaxAge, 30*time.Minute)
	r := &Client{sdk: c, cfg: cfg}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.pools = pools.New(c, pools.Config[*node]{Open: r.open, Close: (*node).close, Grace: cfg.Grace, Warm: r.warm})
	return r
}

// background runs fn, which Close waits for.
func (c *Client) background(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(fn)
	}
}

// Stats are a client's counters.
type Stats struct {
	Renewed uint64 // times that a node's connections were replaced because of age or requests
}

// Stats returns the counters.
func (c *Client) Stats() Stats { return Stats{c.renewed.Load()} }

// Close closes the connections to all nodes, and leaves the sdk.Client open.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.pools.Close()
	c.work.Wait()
}

// B returns rueidis' builder of commands, which is to be had from a connected node: the
// one that the empty key goes to, or the next that answers. Keep it.
func (c *Client) B() (b rueidis.Builder, err error) {
	t := c.sdk.Topology()
	if t == nil {
		return b, sdk.ErrNotReady
	}
	err = sdk.ErrNoNodes
	for _, n := range t.Nodes() {
		if err = c.pools.One(n, func(_ topology.Node, p *node) error {
			return p.use(func(r rueidis.Client) error { b = r.B(); return nil })
		}); err == nil {
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
	return c.pools.Nodes(func(n topology.Node, p *node) error {
		return p.use(func(r rueidis.Client) error { return fn(n, r) })
	})
}

func (c *Client) on(r sdk.Route, fn func(rueidis.Client) error) error {
	l, err := c.pools.Use(r)
	if err != nil {
		return err
	}
	defer l.Done()
	return l.Value().use(fn)
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
