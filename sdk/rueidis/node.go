package rueidis

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardd/shardd/topology"
)

// node has the connections of one node: a rueidis.Client, which is replaced as a whole
// when it is old or has served enough. rueidis' own ConnLifetime gives what is in flight
// one second, and then sends it again, writes too.
type node struct {
	c    *Client
	at   topology.Node
	now  atomic.Pointer[generation]
	mu   sync.Mutex // held to change what follows
	live map[*generation]struct{}
	shut bool
}

// generation is one rueidis.Client of a node.
type generation struct {
	rueidis.Client
	of       *node
	refs     atomic.Int64 // requests in flight, and one while it is the node's newest
	requests atomic.Int64
	until    time.Time   // when it is too old; zero never
	replaced atomic.Bool // or on the way to be
	close    func()      // at most once
}

func (c *Client) open(at topology.Node) (*node, error) {
	if at.Addr == "" {
		return nil, fmt.Errorf("rueidis: node %q has no address; publish one, such as 10.0.0.1:6379", at.ID)
	}
	n := &node{c: c, at: at, live: make(map[*generation]struct{})}
	g, err := n.next()
	if err != nil {
		return nil, err
	}
	n.live[g] = struct{}{}
	n.now.Store(g)
	return n, nil
}

func (n *node) next() (*generation, error) {
	o := n.c.cfg.option()
	o.InitAddress, o.ForceSingleClient = []string{n.at.Addr}, true
	r, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	g := &generation{Client: r, of: n, close: sync.OnceFunc(r.Close)}
	g.refs.Store(1)
	if age := n.c.cfg.MaxAge; age > 0 {
		g.until = time.Now().Add(age - rand.N(age/5+1))
	}
	return g, nil
}

// use calls fn with the node's newest client: one request.
func (n *node) use(fn func(rueidis.Client) error) error {
	g := n.now.Load()
	for !g.acquire() {
		g = n.now.Load()
	}
	defer g.release()
	if n.c.spent(g) && !g.replaced.Swap(true) {
		n.c.background(func() { n.replace(g) })
	}
	return fn(g.Client)
}

// spent counts a request, and reports whether others are better served by a new client.
func (c *Client) spent(g *generation) bool {
	most := int64(c.cfg.MaxRequests)
	return most > 0 && g.requests.Add(1) >= most || !g.until.IsZero() && !time.Now().Before(g.until)
}

func (g *generation) acquire() bool {
	for {
		refs := g.refs.Load()
		if refs == 0 {
			return false
		}
		if g.refs.CompareAndSwap(refs, refs+1) {
			return true
		}
	}
}

// release closes a client that was replaced after its last request.
func (g *generation) release() {
	if g.refs.Add(-1) > 0 {
		return
	}
	g.close()
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	delete(g.of.live, g)
}

// replace connects anew; where that fails the old one goes on, and
// the next request after a second tries again.
func (n *node) replace(old *generation) {
	g, err := n.next()
	if err != nil {
		select {
		case <-time.After(time.Second):
			old.replaced.Store(false)
		case <-n.c.ctx.Done():
		}
		return
	}
	n.c.warmWires(n.c.ctx, g.Client)
	n.mu.Lock()
	if n.shut {
		n.mu.Unlock()
		g.close()
		return
	}
	n.live[g] = struct{}{}
	n.now.Store(g)
	n.mu.Unlock()
	n.c.renewed.Add(1)
	old.release()
}

// close closes all connections: after the last request, or under those that the grace
// was too short for.
func (n *node) close() {
	n.mu.Lock()
	n.shut = true
	live := n.live
	n.live = make(map[*generation]struct{})
	n.mu.Unlock()
	for g := range live {
		g.close()
	}
}

// warm waits for the first answers.
func (c *Client) warm(ctx context.Context, n *node) error {
	return n.use(func(r rueidis.Client) error {
		if err := r.Do(ctx, r.B().Ping().Build()).Error(); err != nil {
			return err
		}
		c.warmWires(ctx, r)
		return nil
	})
}

// warmWires has rueidis open all its connections for commands. It takes one at random
// for each command that has a key: after 16 commands for each of w connections, one is
// left out with a probability below w e^-16.
func (c *Client) warmWires(ctx context.Context, r rueidis.Client) {
	w := wires(c.cfg.option().PipelineMultiplex)
	if w == 1 {
		return
	}
	var all sync.WaitGroup
	for range 16 * w {
		all.Go(func() { _ = r.Do(ctx, r.B().Exists().Key("shardd").Build()).Error() })
	}
	all.Wait()
}

// wires is how many connections for commands rueidis opens for PipelineMultiplex.
func wires(multiplex int) int {
	if multiplex == 0 { // rueidis' default of one node
		multiplex = min(2, bits.Len(uint(runtime.GOMAXPROCS(0)))-1)
	}
	return 1 << max(0, multiplex)
}

// option is what the next client is made of.
func (c Config) option() rueidis.ClientOption {
	o := c.Option
	if c.MaxConns > 0 {
		c.limitConns(&o)
	}
	return o
}

// limitConns shares MaxConns out: rueidis has 2^PipelineMultiplex connections for
// commands, and two pools of BlockingPoolSize: for dedicated connections with blocking
// commands, and for streams.
func (c Config) limitConns(o *rueidis.ClientOption) {
	most := max(c.MaxConns, minConns)
	w := wires(o.PipelineMultiplex)
	for w > most-2 {
		w /= 2
	}
	if o.PipelineMultiplex = bits.Len(uint(w)) - 1; w == 1 {
		o.PipelineMultiplex = -1 // 0 is rueidis' default
	}
	pool := (most - w) / 2
	if o.BlockingPoolSize > 0 {
		pool = min(pool, o.BlockingPoolSize)
	}
	o.BlockingPoolSize = pool
}

// minConns is one connection for commands, one for blocking ones, one for streams.
const minConns = 3
