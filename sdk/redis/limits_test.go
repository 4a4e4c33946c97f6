package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/sdk"
	shardredis "github.com/shardd/shardd/sdk/redis"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// TestFollows: keys go over without an error while nodes come and go, and the
// connections of a node that left are closed.
func TestFollows(t *testing.T) {
	f := start(t, topology.Spec{Algorithm: topology.Ring}, 3, 2)
	c := shardredis.New(f.plane.Client(), shardredis.Config{WarmUp: 3, MaxConns: 8, MaxAge: 50 * time.Millisecond})
	defer c.Close()
	third := f.direct(t, 2)
	conns := func() int {
		list, err := third.ClientList(context.Background()).Result()
		if err != nil {
			t.Error(err)
		}
		n := 0
		for _, b := range list {
			if b == '\n' {
				n++
			}
		}
		return n - 1 // our own
	}
	var wrong, done atomic.Int64
	stop := make(chan struct{})
	var users sync.WaitGroup
	for g := range 4 {
		users.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := c.MSet(context.Background(), fmt.Sprint(g, i%99), i, fmt.Sprint(i%77), i).Err(); err != nil {
					wrong.Add(1)
					t.Log(err)
				}
				done.Add(1)
			}
		})
	}
	until(t, "requests", func() bool { return done.Load() > 100 })
	f.plane.Add(f.node(2))
	until(t, "keys on the third", func() bool { return third.DBSize(context.Background()).Val() > 10 })
	if n := conns(); n < 3 || n > 8 {
		t.Errorf("%d connections, want 3 to 8", n)
	}
	f.plane.Remove("r2")
	until(t, "closing its connections", func() bool { return conns() == 0 })
	close(stop)
	users.Wait()
	if wrong.Load() != 0 {
		t.Errorf("%d of %d failed", wrong.Load(), done.Load())
	}
}

// TestErrors: what the SDK cannot answer stands in the commands.
func TestErrors(t *testing.T) {
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}})
	c := shardredis.New(plane.Client(), shardredis.Config{})
	defer c.Close()
	for _, err := range []error{c.Get(t.Context(), "k").Err(), c.MGet(t.Context(), "k", "l").Err()} {
		if !errors.Is(err, sdk.ErrNoNodes) {
			t.Error(err)
		}
	}
	if _, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Get(t.Context(), "k"); return nil }); !errors.Is(err, sdk.ErrNoNodes) {
		t.Error(err)
	}
}

// info returns a number of a server's INFO.
func info(t *testing.T, c *redis.Client, name string) int {
	t.Helper()
	all, err := c.Info(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(all) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(v))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// counted counts the connections that are open, and the most that were.
type counted struct{ open, most, made atomic.Int64 }

func (n *counted) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.made.Add(1)
	now := n.open.Add(1)
	for most := n.most.Load(); now > most && !n.most.CompareAndSwap(most, now); most = n.most.Load() {
	}
	return &countedConn{Conn: nc, n: n}, nil
}

type countedConn struct {
	net.Conn
	n    *counted
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.n.open.Add(-1) })
	return c.Conn.Close()
}

// TestCap: however many commands, pipelines and transactions there are, a node has no
// more connections than allowed, all of them of use, and none is left open.
func TestCap(t *testing.T) {
	f := start(t, topology.Spec{Algorithm: topology.Ring}, 1, 1)
	var n counted
	c := shardredis.New(f.plane.Client(), shardredis.Config{MaxConns: 3, WarmUp: 9, Options: &redis.Options{Dialer: n.dial}})
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 30 {
				var err error
				switch i % 3 {
				case 0:
					err = c.Set(t.Context(), "k", "v", 0).Err()
				case 1:
					_, err = c.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Incr(t.Context(), "n"); p.Get(t.Context(), "k"); return nil })
				default:
					_, err = c.TxPipelined(t.Context(), func(p redis.Pipeliner) error { p.Incr(t.Context(), "m"); return nil })
				}
				if err != nil && !errors.Is(err, redis.Nil) {
					t.Errorf("%d: %v", g, err)
				}
			}
		})
	}
	all.Wait()
	if n.most.Load() != 3 {
		t.Errorf("%d connections at most, want 3", n.most.Load())
	}
	if err := c.Close(); err != nil || n.open.Load() != 0 {
		t.Errorf("%d connections left, %v", n.open.Load(), err)
	}
}

// TestMaxRequests: connections are replaced after so many requests, and under many users
// nothing is lost or done twice.
func TestMaxRequests(t *testing.T) {
	f := start(t, topology.Spec{Algorithm: topology.Ring}, 1, 1)
	direct := f.direct(t, 0)
	run := func(most int) (made int) {
		t.Helper()
		c := shardredis.New(f.plane.Client(), shardredis.Config{MaxRequests: most, MaxConns: 4})
		defer c.Close()
		before := info(t, direct, "total_connections_received")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					if err := c.Incr(t.Context(), "sum").Err(); err != nil {
						t.Error(err)
					}
				}
				if _, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for range 50 {
						p.Incr(t.Context(), "sum")
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if sum, err := direct.GetDel(t.Context(), "sum").Int(); sum != 800 || err != nil {
			t.Errorf("%d increments of 800, %v", sum, err)
		}
		return info(t, direct, "total_connections_received") - before
	}
	// 408 requests; opening a connection is one or two of its ten.
	if made := run(10); made < 40 || made > 60 {
		t.Errorf("%d connections for 408 requests, 10 each", made)
	}
	if made := run(0); made > 4 {
		t.Errorf("%d connections without a limit", made)
	}
}

// TestOptions: what a Config makes of go-redis' options.
func TestOptions(t *testing.T) {
	f := start(t, topology.Spec{Algorithm: topology.Ring}, 1, 1)
	of := func(cfg shardredis.Config) (o redis.Options) {
		t.Helper()
		c := shardredis.New(f.plane.Client(), cfg)
		defer c.Close()
		if err := c.Node("k", func(n *redis.Client) error { o = *n.Options(); return nil }); err != nil {
			t.Fatal(err)
		}
		return o
	}
	age := func(cfg shardredis.Config, life, jitter time.Duration) {
		t.Helper()
		if o := of(cfg); o.ConnMaxLifetime != life || o.ConnMaxLifetimeJitter != jitter {
			t.Errorf("%s, %s; want %s, %s", o.ConnMaxLifetime, o.ConnMaxLifetimeJitter, life, jitter)
		}
	}
	age(shardredis.Config{}, 27*time.Minute, 3*time.Minute)
	age(shardredis.Config{MaxAge: time.Minute}, 54*time.Second, 6*time.Second)
	age(shardredis.Config{Options: &redis.Options{ConnMaxLifetime: time.Hour}}, time.Hour, 0)
	age(shardredis.Config{MaxAge: -1, Options: &redis.Options{ConnMaxLifetime: time.Hour}}, 0, 0)
	size := func(cfg shardredis.Config, pool, active int) {
		t.Helper()
		if o := of(cfg); o.PoolSize != pool || o.MaxActiveConns != active {
			t.Errorf("PoolSize %d, MaxActiveConns %d; want %d, %d", o.PoolSize, o.MaxActiveConns, pool, active)
		}
	}
	size(shardredis.Config{MaxConns: 64}, 64, 64)
	size(shardredis.Config{MaxConns: 64, Options: &redis.Options{PoolSize: 5}}, 5, 64)
	size(shardredis.Config{MaxConns: 3, Options: &redis.Options{PoolSize: 5}}, 3, 3)
}

// TestWarmUp: connections are open before the first command, as many as asked for.
func TestWarmUp(t *testing.T) {
	f := start(t, topology.Spec{Algorithm: topology.Ring}, 1, 1)
	for want, cfg := range map[int64]shardredis.Config{
		1: {}, 4: {WarmUp: 4}, 2: {WarmUp: 7, MaxConns: 2}, 0: {WarmUp: -1},
	} {
		var n counted
		cfg.Options = &redis.Options{Dialer: n.dial}
		c := shardredis.New(f.plane.Client(), cfg)
		if err := c.Node("k", func(*redis.Client) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if n.made.Load() != want {
			t.Errorf("%+v: %d connections before the first command, want %d", cfg, n.made.Load(), want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
