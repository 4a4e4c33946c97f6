package rediscache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// servers are Redis servers as far as this package uses them, without time.
type servers map[string]map[string]string // node, key, value

func (s servers) do(node string, cmd Command) Reply {
	m := s[node]
	get := func(k string) any {
		if v, ok := m[k]; ok {
			return v
		}
		return nil
	}
	count := func(k string, drop bool) Reply {
		_, ok := m[k]
		if drop {
			delete(m, k)
		}
		if ok {
			return Reply{Value: int64(1)}
		}
		return Reply{Value: int64(0)}
	}
	switch cmd[0] {
	case "GET":
		return Reply{Value: get(cmd[1])}
	case "EXISTS":
		return count(cmd[1], false)
	case "DEL":
		return count(cmd[1], true)
	case "SET":
		if cmd[len(cmd)-1] == "NX" && get(cmd[1]) != nil {
			return Reply{}
		}
		m[cmd[1]] = cmd[2]
		return Reply{Value: "OK"}
	case "EVAL":
		if cmd[1] == readScript {
			if get(cmd[3]) == nil {
				return Reply{}
			}
			return Reply{Value: []any{get(cmd[3]), int64(-1)}}
		}
		if cmd[1] == releaseScript {
			return count(cmd[3], m[cmd[3]] == cmd[4])
		}
		return s.put(m, cmd[2:])
	}
	return Reply{Err: fmt.Errorf("unknown: %q", cmd)}
}

// put is putScript.
func (s servers) put(m map[string]string, a []string) Reply {
	no := Reply{Value: int64(0)}
	key, args := a[1], a[2:]
	if a[0] == "2" {
		if m[a[2]] != a[7] {
			return no
		}
		delete(m, a[2])
		args = a[3:]
	}
	begins, size := args[0], args[1]
	if v, ok := m[key]; ok && (size != "*" && size != strconv.Itoa(len(v)) || !strings.HasPrefix(v, begins)) {
		return no
	}
	m[key] = args[2]
	return Reply{Value: int64(1)}
}

// client is one of several whose commands are carried out one at a time, in an order
// that the game draws.
type client struct {
	turn, done chan struct{}
	s          servers
	ops        int // that have ended
	bars       map[string]bar
}

// bar is what a writer put in the place of leases: it lasts longer than the operation takes.
type bar struct {
	by  *client
	ops int // of it before
}

func (c *client) Send(_ context.Context, n topology.Node, cmds []Command) []Reply {
	var out []Reply
	for _, cmd := range cmds { // a pipeline is not atomic
		c.done <- struct{}{}
		<-c.turn
		out = append(out, c.s.do(n.ID, cmd))
		if cmd[0] == "SET" && strings.HasPrefix(cmd[2], barMark) {
			c.bars[n.ID] = bar{c, c.ops}
		}
	}
	return out
}

// fixed is a source of one topology.
type fixed struct{ t *topology.Topology }

func (f fixed) Watch(ctx context.Context, _ topology.Ref, fn func(*topology.Topology) error) error {
	if err := fn(f.t); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func holding(t *testing.T, topo *topology.Topology) *sdk.Client {
	t.Helper()
	c, err := sdk.New(fixed{topo})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// event is an operation that has been carried out; times are numbers of steps.
type event struct {
	kind       Kind
	value      string // "" for none
	begin, end int
}

// stale reports whether a read got what had been overwritten or deleted.
func stale(all []event, read event) bool {
	for _, w := range all {
		if w.kind != Set || w.value != read.value {
			continue
		}
		for _, x := range all {
			if x.kind != Get && x.value != read.value && x.begin > w.end && x.end < read.begin {
				return true
			}
		}
	}
	return false
}

// sides are clients before a key goes over to c in steps, after it did, and after all steps.
func sides(t *testing.T) (key string, behind, ahead, over *sdk.Client) {
	t.Helper()
	plane := shardtest.New(t, "a", "b")
	before := plane.Begin(0, func(d *topology.Declared) { d.Nodes = append(d.Nodes, topology.Node{ID: "c", Weight: 1}) })
	after := plane.Step(.999)
	behind, ahead, over = holding(t, before), holding(t, after), holding(t, plane.Finish())
	for i := 0; ; i++ {
		key = fmt.Sprint("k", i)
		r, err1 := behind.Route(key)
		s, err2 := ahead.Route(key)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if s.ID() == "c" && r.ID() == "a" {
			return key, behind, ahead, over
		}
	}
}

// TestRules plays clients of one key, half of them a step behind the others (the last step
// included), in random interleavings of their single commands, with evictions: no read gets
// what an acknowledged operation had overwritten or deleted before.
func TestRules(t *testing.T) {
	key, behind, ahead, over := sides(t)
	games, seen := 20_000, Stats{}
	if testing.Short() {
		games = 2000
	}
	for seed := range games {
		g := &game{key: key, sides: [][]*sdk.Client{{behind, ahead}, {ahead, over}}[seed/2%2], rng: rand.New(rand.NewPCG(uint64(seed), 7)), fence: seed%2 == 1}
		if bad := g.play(t.Context()); bad != "" {
			t.Fatalf("game %d: %s", seed, bad)
		}
		seen.Through += g.stats.Through
		seen.Copied += g.stats.Copied
	}
	if seen.Through < uint64(games)/20 || seen.Copied < uint64(games)/150 {
		t.Errorf("the games show too little: %+v", seen)
	}
}

// game is one run.
type game struct {
	key   string
	sides []*sdk.Client
	rng   *rand.Rand
	fence bool
	clock int
	log   []event
	stats Stats
}

const players = 3

// setNX is a Kind of the game alone: Cache.SetNX.
const setNX = Del + 1

func (g *game) play(ctx context.Context) string {
	s, bars := servers{"a": {}, "b": {}, "c": {}}, map[string]bar{}
	var clients []*client
	for p := range players {
		c := &client{turn: make(chan struct{}), done: make(chan struct{}), s: s, bars: bars}
		clients = append(clients, c)
		kinds := make([]Kind, 3)
		for i := range kinds {
			kinds[i] = Kind(g.rng.IntN(4))
			if i == 0 && p == 0 {
				kinds[i] = Set
			}
		}
		side := g.sides[g.rng.IntN(2)]
		go g.player(ctx, p, c, side, kinds)
	}
	live := make([]*client, 0, players)
	for _, c := range clients {
		<-c.done // waits for its first turn
		live = append(live, c)
	}
	for len(live) > 0 {
		g.clock++
		node := []string{"a", "b", "c"}[g.rng.IntN(3)]
		if b := bars[node]; strings.HasPrefix(s[node][lease(g.key)], barMark) && b.by.ops > b.ops && g.rng.IntN(2) == 0 { // its time is over
			delete(s[node], lease(g.key))
		}
		if g.rng.IntN(8) == 0 { // an eviction
			delete(s[node], g.key)
			continue
		}
		i := g.rng.IntN(len(live))
		live[i].turn <- struct{}{}
		if _, more := <-live[i].done; !more {
			live = append(live[:i], live[i+1:]...)
		}
	}
	for _, e := range g.log {
		if e.kind == Get && e.value != "" && stale(g.log, e) {
			return fmt.Sprintf("%+v is old in %+v", e, g.log)
		}
	}
	for node, m := range s {
		if v, ok := m[lease(g.key)]; ok && !strings.HasPrefix(v, barMark) {
			return "a lease is left at " + node
		}
	}
	return ""
}

// player carries out its operations. Only one player runs at any time, so that the log
// needs no lock.
func (g *game) player(ctx context.Context, p int, c *client, side *sdk.Client, kinds []Kind) {
	defer close(c.done)
	cache := New(side, c, Config{ReadThrough: true, Fence: g.fence})
	c.done <- struct{}{}
	<-c.turn
	for i, kind := range kinds {
		op := &Op{Kind: kind, Key: g.key}
		if kind == Set || kind == setNX {
			op.Value = fmt.Sprint("v", p, i)
		}
		e := event{kind: kind, begin: g.clock}
		if kind == setNX {
			stored, err := cache.SetNX(ctx, op.Key, op.Value, 0)
			if err != nil || !stored {
				c.ops++
				continue
			}
			e.kind = Set
		} else {
			cache.Do(ctx, op)
		}
		c.ops++
		e.value, e.end = op.Value, g.clock
		if kind == Get && op.Found && op.Value == "" {
			e.value = "nobody's"
			g.log = append(g.log, event{kind: Set, value: e.value}, event{kind: Del, begin: 1, end: e.begin - 1}) // it is old
		}
		g.clock++
		g.log = append(g.log, e)
	}
	got := cache.Stats()
	g.stats.Through += got.Through
	g.stats.Copied += got.Copied
}
