package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/sdk"
	shardredis "github.com/shardd/shardd/sdk/redis"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is real servers and a plane whose nodes they are: r0, r1, ...
type fleet struct {
	servers []*realserver.Server
	plane   *shardtest.Plane
}

// cluster is Redis Cluster's placement.
var cluster = topology.Spec{Algorithm: topology.Slots, KeyHash: topology.CRC16, HashTag: "{}"}

// start starts n servers, the first use of which are in the topology.
func start(t *testing.T, spec topology.Spec, n, use int) fleet {
	t.Helper()
	f := fleet{servers: realserver.ForTest(t, realserver.Redis(), n)}
	var nodes []topology.Node
	for i := range use {
		nodes = append(nodes, f.node(i))
	}
	f.plane = shardtest.NewFrom(t, topology.Declared{Spec: spec, Nodes: nodes})
	return f
}

func (f fleet) node(i int) topology.Node {
	return topology.Node{ID: fmt.Sprintf("r%d", i), Addr: f.servers[i].Addr, Weight: 1}
}

// direct returns a client of server i alone.
func (f fleet) direct(t *testing.T, i int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: f.servers[i].Addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// owned checks that the keys, and only they, are on their owners' servers.
func (f fleet) owned(t *testing.T, keys []string) {
	t.Helper()
	for i := range f.servers {
		c := f.direct(t, i)
		want := 0
		for _, key := range keys {
			mine := f.plane.Owner(key) == fmt.Sprintf("r%d", i)
			if mine {
				want++
			}
			if n := c.Exists(t.Context(), key).Val(); (n == 1) != mine {
				t.Errorf("r%d has %s: %d, owner is %s", i, key, n, f.plane.Owner(key))
			}
		}
		if n := c.DBSize(t.Context()).Val(); int(n) != want {
			t.Errorf("r%d has %d keys, want %d", i, n, want)
		}
	}
}

func keysOf(n int) []string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("user:%d", i))
	}
	return keys
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

// TestAgree: the three ways put the same keys on the same servers, which are the
// SDK's owners, before and after a node joins.
func TestAgree(t *testing.T) {
	f := start(t, cluster, 3, 2)
	ways := map[string]redis.UniversalClient{
		"ring":    shardredis.NewRing(f.plane.Client(), nil),
		"cluster": shardredis.NewCluster(f.plane.Client(), nil),
		"client":  shardredis.New(f.plane.Client(), shardredis.Config{}),
	}
	keys := keysOf(60)
	check := func(name string, c redis.UniversalClient) {
		t.Helper()
		for _, key := range keys {
			if err := c.Set(t.Context(), key, name, 0).Err(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		f.owned(t, keys)
		for i := range f.servers {
			if err := f.direct(t, i).FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range ways {
		check(name, c)
	}
	f.plane.Add(f.node(2))
	for name, c := range ways {
		until(t, name+" following", func() bool { // go-redis loads slots in the background
			for _, key := range keys {
				if err := c.Set(t.Context(), key, name, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			return f.direct(t, 2).DBSize(t.Context()).Val() > 5
		})
		for i := range f.servers {
			f.direct(t, i).FlushAll(t.Context())
		}
		check(name, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClusterSlots: ranges cover all slots; nodes that are down stand back.
func TestClusterSlots(t *testing.T) {
	spec := cluster
	spec.Replicas = 2
	plane := shardtest.NewFrom(t, topology.Declared{Spec: spec, Nodes: []topology.Node{
		{ID: "a", Addr: "h:1", Weight: 1}, {ID: "b", Addr: "h:2", Weight: 1}, {ID: "c", Addr: "h:3", Weight: 1}}})
	slots := shardredis.ClusterSlots(plane.Client())
	next := func(nodes int) {
		t.Helper()
		got, err := slots(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, s := range got {
			if s.Start != at || s.End < s.Start || len(s.Nodes) < 1 || len(s.Nodes) > 2 {
				t.Fatalf("at %d: %+v", at, s)
			}
			at = s.End + 1
			if len(s.Nodes) < nodes {
				t.Fatalf("%+v", s)
			}
			for _, n := range s.Nodes {
				if nodes == 1 && n.ID == "a" {
					t.Fatalf("a is down: %+v", s)
				}
			}
		}
		if at != 16384 {
			t.Fatalf("%d slots", at)
		}
	}
	next(2)
	plane.SetState("a", topology.StateDown)
	next(1)
	for name, c := range map[string]*sdk.Client{
		"algorithm": shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}}).Client(),
		"hash":      shardtest.New(t, "a").Client(),
	} {
		if _, err := shardredis.ClusterSlots(c)(t.Context()); !errors.Is(err, shardredis.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRingGoesRound: what the ring counts as down, or the topology, is passed over
// to the next in order, and nothing else moves.
func TestRingGoesRound(t *testing.T) {
	plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Rendezvous},
		Nodes: []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}})
	c := plane.Client()
	hash := shardredis.NewConsistentHash(c)
	all, some, none := hash([]string{"a", "b", "c"}), hash([]string{"c", "a", "stranger"}), hash(nil)
	for _, key := range keysOf(200) {
		order, err := c.RouteN(nil, key, 3)
		if err != nil {
			t.Fatal(err)
		}
		want := order[0].ID()
		if got := all.Get(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
		if want == "b" {
			want = order[1].ID()
		}
		if got := some.Get(key); got != want {
			t.Errorf("%s without b: %s, want %s", key, got, want)
		}
		if got := none.Get(key); got != "" {
			t.Errorf("%s: %s of nobody", key, got)
		}
	}
	plane.SetState("b", topology.StateDown)
	if got := hash([]string{"a", "b", "c"}); got.Get("user:1") == "b" || got.Get("user:2") == "b" {
		t.Error("b is down")
	}
}

// TestCommands: typed commands, those of many keys, pipelines and transactions.
func TestCommands(t *testing.T) {
	f := start(t, topology.Spec{Algorithm: topology.Ring, HashTag: "{}"}, 3, 3)
	c := shardredis.New(f.plane.Client(), shardredis.Config{})
	defer c.Close()
	ctx := t.Context()
	keys := keysOf(50)
	var pairs []any
	var want []any
	for i, key := range keys {
		pairs = append(pairs, key, i)
		want = append(want, fmt.Sprint(i))
	}
	if err := c.MSet(ctx, pairs...).Err(); err != nil {
		t.Fatal(err)
	}
	f.owned(t, keys)
	got, err := c.MGet(ctx, append(keys, "nobody", keys[0])...).Result()
	if diff := cmp.Diff(append(append([]any{}, want...), nil, "0"), got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	raw, err := c.Do(ctx, "MGET", keys[0], keys[1], keys[2], keys[3]).Slice()
	if diff := cmp.Diff(want[:4], raw); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for name, n := range map[string]*redis.IntCmd{
		"exists": c.Exists(ctx, append(keys, "nobody")...), "touch": c.Touch(ctx, keys...),
		"unlink": c.Unlink(ctx, keys[:10]...)} {
		if w := map[string]int64{"exists": 50, "touch": 50, "unlink": 10}[name]; n.Val() != w && name != "unlink" || n.Err() != nil {
			t.Errorf("%s: %v", name, n)
		}
	}
	if n, err := c.Do(ctx, "del", keys[10], keys[11], keys[12]).Int(); n != 3 || err != nil {
		t.Errorf("del: %d, %v", n, err)
	}
	testRefusals(t, c)
	testPipelines(t, c)
	if err := c.Node("ch", func(n *redis.Client) error {
		sub := n.Subscribe(ctx, "ch")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			return err
		}
		return c.Node("ch", func(n *redis.Client) error { return n.Publish(ctx, "ch", "m").Err() })
	}); err != nil {
		t.Error(err)
	}
	var seen []string
	if err := c.ForEachNode(func(n topology.Node, r *redis.Client) error {
		seen = append(seen, n.ID)
		return r.FlushAll(ctx).Err()
	}); err != nil || fmt.Sprint(seen) != "[r0 r1 r2]" {
		t.Error(seen, err)
	}
}

func testRefusals(t *testing.T, c *shardredis.Client) {
	t.Helper()
	ctx := t.Context()
	a, b := "user:1", other(t, c, "user:1")
	for name, got := range map[string]error{
		"rename":      c.Rename(ctx, a, b).Err(),
		"sinter":      c.SInter(ctx, a, b).Err(),
		"eval":        c.Eval(ctx, "return 1", []string{a, b}).Err(),
		"transaction": txErr(c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, a); p.Incr(ctx, b); return nil })),
	} {
		if !errors.Is(got, shardredis.ErrCrossNode) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, got := range map[string]error{
		"scan": c.Scan(ctx, 0, "*", 10).Err(), "publish": c.Publish(ctx, "ch", "m").Err(), "ping": c.Ping(ctx).Err(),
		"empty transaction": txErr(c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); return nil })),
		"conn":              c.Conn().Get(ctx, "k").Err(),
		"watch":             c.Watch(ctx, func(*redis.Tx) error { return nil }),
		"subscribe":         subscribeErr(ctx, c),
	} {
		if !errors.Is(got, shardredis.ErrNoKey) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func subscribeErr(ctx context.Context, c *shardredis.Client) error {
	sub := c.Subscribe(ctx, "ch")
	defer sub.Close()
	_, err := sub.Receive(ctx)
	return err
}

func txErr(_ []redis.Cmder, err error) error { return err }

// other returns a key of another node than key's.
func other(t *testing.T, c *shardredis.Client, key string) string {
	t.Helper()
	addr := func(key string) (a string) {
		if err := c.Node(key, func(n *redis.Client) error { a = n.Options().Addr; return nil }); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for i := range 1000 {
		if k := fmt.Sprint("other", i); addr(k) != addr(key) {
			return k
		}
	}
	t.Fatal("all keys on one node")
	return ""
}

func testPipelines(t *testing.T, c *shardredis.Client) {
	t.Helper()
	ctx := t.Context()
	var sums []*redis.IntCmd
	var all *redis.SliceCmd
	var missing *redis.StringCmd
	cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 100 {
			key := fmt.Sprint("n", i%10)
			p.Incr(ctx, key)
			sums = append(sums, p.IncrBy(ctx, key, 10)) // in order on its node
		}
		all = p.MGet(ctx, "n0", "n1", "n2", "n3", "n4")
		missing = p.Get(ctx, "nobody")
		p.Ping(ctx)
		return nil
	})
	if !errors.Is(err, redis.Nil) || len(cmds) != 203 { // the first error, as with one server
		t.Errorf("%d commands, %v", len(cmds), err)
	}
	for i, s := range sums {
		if want := int64(11 * (i/10 + 1)); s.Val() != want || s.Err() != nil {
			t.Errorf("%d: %v, want %d", i, s, want)
		}
	}
	if diff := cmp.Diff([]any{"110", "110", "110", "110", "110"}, all.Val()); diff != "" || all.Err() != nil {
		t.Error(all.Err(), diff)
	}
	if !errors.Is(missing.Err(), redis.Nil) || !errors.Is(cmds[202].Err(), shardredis.ErrNoKey) {
		t.Errorf("%v, %v", missing, cmds[202])
	}
	cmds, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "{t}a", "1", 0)
		p.Incr(ctx, "{t}a")
		p.Get(ctx, "{t}a")
		return nil
	})
	if err != nil || len(cmds) != 5 && len(cmds) != 3 {
		t.Fatalf("%v, %v", cmds, err)
	}
	if v := c.Get(ctx, "{t}a").Val(); v != "2" {
		t.Errorf("after the transaction: %q", v)
	}
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		if err := c.Set(ctx, "{t}a", "changed", 0).Err(); err != nil {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "{t}a", "lost", 0); return nil })
		return err
	}, "{t}a")
	if v := c.Get(ctx, "{t}a").Val(); v != "changed" || !errors.Is(err, redis.TxFailedErr) {
		t.Errorf("watched: %q, %v", v, err)
	}
	if err := c.Watch(ctx, nil, "user:1", other(t, c, "user:1")); !errors.Is(err, shardredis.ErrCrossNode) {
		t.Errorf("watched on two nodes: %v", err)
	}
}
