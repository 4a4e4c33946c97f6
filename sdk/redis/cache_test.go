package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	shardredis "github.com/shardd/shardd/sdk/redis"
	"github.com/shardd/shardd/topology"
)

var ring = topology.Spec{Algorithm: topology.Ring}

// caches returns a client of the fleet and a cache of it.
func caches(t *testing.T, f fleet, cfg shardredis.CacheConfig) (*shardredis.Client, *shardredis.Cache) {
	t.Helper()
	c := shardredis.New(f.plane.Client(), shardredis.Config{})
	t.Cleanup(func() { c.Close() })
	return c, c.Cache(cfg)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mget returns the values that are there, by key.
func mget(t *testing.T, c *shardredis.Cache, keys []string) map[string]string {
	t.Helper()
	values, err := c.MGet(t.Context(), keys...).Result()
	must(t, err)
	found := map[string]string{}
	for i, v := range values {
		if s, ok := v.(string); ok {
			found[keys[i]] = s
		}
	}
	return found
}

// get returns a value, "" for a miss.
func get(t *testing.T, c *shardredis.Cache, key string) string {
	t.Helper()
	v, err := c.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}

// TestCacheCommands: each command does what it does with one server.
func TestCacheCommands(t *testing.T) {
	f := start(t, ring, 3, 3)
	for _, cfg := range []shardredis.CacheConfig{{}, {ReadThrough: true}, {Fence: true}, {ReadThrough: true, Fence: true}} {
		_, c := caches(t, f, cfg)
		ctx, keys := t.Context(), keysOf(40)
		want := map[string]string{}
		for i, key := range keys {
			must(t, c.Set(ctx, key, i, 0).Err())
			want[key] = fmt.Sprint(i)
		}
		if diff := cmp.Diff(want, mget(t, c, append(keys, "nobody"))); diff != "" {
			t.Error(diff)
		}
		if err := c.Get(ctx, "nobody").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("nobody: %v", err)
		}
		first, err1 := c.SetNX(ctx, "nx", []byte("a"), time.Hour).Result()
		second, err2 := c.SetNX(ctx, "nx", "b", 0).Result()
		if !first || second || err1 != nil || err2 != nil || get(t, c, "nx") != "a" {
			t.Errorf("%+v: set %v, %v; %v, %v", cfg, first, second, err1, err2)
		}
		must(t, c.Set(ctx, "short", true, 30*time.Millisecond).Err())
		until(t, "an end", func() bool { return get(t, c, "short") == "" })
		if ok := c.SetNX(ctx, "short", 1.5, 20*time.Millisecond).Val(); !ok || get(t, c, "short") != "1.5" {
			t.Errorf("%+v: set after an end: %v", cfg, ok)
		}
		until(t, "its end", func() bool { return get(t, c, "short") == "" })
		if n, err := c.Del(ctx, append(keys[:10:10], "nobody")...).Result(); n != 10 || err != nil {
			t.Errorf("%+v: %d deleted, %v", cfg, n, err)
		}
		pipelined(t, c, keys[10:])
		for _, err := range []error{c.Set(ctx, "k", struct{}{}, 0).Err(), c.SetNX(ctx, "k", nil, 0).Err(), c.Set(ctx, "k", "v", redis.KeepTTL).Err()} {
			if !errors.Is(err, shardredis.ErrValue) {
				t.Errorf("%v", err)
			}
		}
		for i := range f.servers {
			must(t, f.direct(t, i).FlushAll(ctx).Err())
		}
	}
}

func pipelined(t *testing.T, c *shardredis.Cache, keys []string) {
	t.Helper()
	var before, after []*redis.StringCmd
	var dels *redis.IntCmd
	var wrong *redis.StatusCmd
	err := c.Pipelined(t.Context(), func(p *shardredis.CachePipe) error {
		for i, key := range keys {
			before = append(before, p.Get(key))
			p.Set(key, fmt.Sprint("new", i), time.Hour)
			after = append(after, p.Get(key))
		}
		dels = p.Del(keys[0], "nobody", keys[1])
		after = append(after, p.Get(keys[0]))
		wrong = p.Set("k", struct{}{}, 0)
		return nil
	})
	if !errors.Is(err, redis.Nil) || dels.Val() != 2 || !errors.Is(wrong.Err(), shardredis.ErrValue) {
		t.Errorf("%v, %v, %v", err, dels, wrong)
	}
	for i := range keys {
		if before[i].Val() != fmt.Sprint(i+10) || after[i].Val() != fmt.Sprint("new", i) {
			t.Errorf("%v, then %v", before[i], after[i])
		}
	}
	if last := after[len(keys)]; !errors.Is(last.Err(), redis.Nil) {
		t.Errorf("after its deletion: %v", last)
	}
}

// TestReadThrough: while a node takes its keys over in steps nothing is missed, nothing
// old is served, nothing deleted comes back, and what is read goes over with its time to
// live.
func TestReadThrough(t *testing.T) {
	for _, fence := range []bool{false, true} {
		t.Run(fmt.Sprint("fence ", fence), func(t *testing.T) { testReadThrough(t, fence) })
	}
}

func testReadThrough(t *testing.T, fence bool) {
	f := start(t, ring, 3, 2)
	_, c := caches(t, f, shardredis.CacheConfig{ReadThrough: true, Fence: fence})
	ctx, keys := t.Context(), keysOf(200)
	want := map[string]string{}
	ttl := func(i int) time.Duration { return time.Duration(i%2) * time.Hour }
	for i, key := range keys {
		must(t, c.Set(ctx, key, "first", ttl(i)).Err())
		want[key] = "first"
	}
	check := func(what string) {
		t.Helper()
		if diff := cmp.Diff(want, mget(t, c, keys)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		for _, key := range keys {
			if v := get(t, c, key); v != want[key] {
				t.Errorf("%s: %s: %q", what, key, v)
			}
		}
	}
	change := func(from int) {
		t.Helper()
		for i := from; i < len(keys); i += 5 {
			want[keys[i]] = fmt.Sprint("written ", from)
			must(t, c.Set(ctx, keys[i], want[keys[i]], ttl(i)).Err())
		}
		for i := from + 1; i < len(keys); i += 20 {
			_, had := want[keys[i]]
			if n, err := c.Del(ctx, keys[i]).Result(); err != nil || (n == 1) != had {
				t.Errorf("%s: %d deleted, %v", keys[i], n, err)
			}
			delete(want, keys[i])
		}
		for i := from + 2; i < len(keys); i += 20 {
			if ok, err := c.SetNX(ctx, keys[i], "nx", 0).Result(); err != nil || ok != (want[keys[i]] == "") {
				t.Errorf("%s: set %v, %v", keys[i], ok, err)
			} else if ok {
				want[keys[i]] = "nx"
			}
		}
	}
	f.plane.Begin(.5, func(d *topology.Declared) { d.Nodes = append(d.Nodes, f.node(2)) })
	change(0)
	check("half")
	if s := c.Stats(); s.Through == 0 || s.Copied != s.Through || s.OtherErrors != 0 {
		t.Errorf("%+v", s)
	}
	f.lives(t, keys, want, ttl)
	if !fence { // going back: what was written on the new owner is read through
		f.plane.Step(.2)
		check("a step back")
		change(2)
	}
	f.plane.Step(.999)
	check("nearly over")
	change(3)
	f.plane.Finish()
	check("over")
	for i := range f.servers { // leases end by themselves
		for _, key := range f.direct(t, i).Keys(ctx, "*").Val() {
			if key, ok := strings.CutSuffix(key, "\xf5fill"); ok && f.direct(t, i).TTL(ctx, key+"\xf5fill").Val() <= 0 {
				t.Errorf("a lease of %s is for ever", key)
			}
		}
	}
}

// lives checks that what was copied to the third server kept its time to live.
func (f fleet) lives(t *testing.T, keys []string, want map[string]string, ttl func(int) time.Duration) {
	t.Helper()
	third, seen := f.direct(t, 2), 0
	for i, key := range keys {
		if f.plane.Owner(key) != "r2" || want[key] != "first" {
			continue
		}
		seen++
		left := third.PTTL(t.Context(), key).Val()
		if none := ttl(i) == 0; none && left != -1 || !none && (left <= 59*time.Minute || left > time.Hour) {
			t.Errorf("%s lives %s on, was to live %s", key, left, ttl(i))
		}
	}
	if seen < 5 {
		t.Errorf("only %d keys were copied", seen)
	}
}

// TestCacheRace reads, writes and deletes the same keys from many sides while owners
// change in steps, forth and back: a writer reads what it wrote or nothing, and what was
// deleted in the end is gone.
func TestCacheRace(t *testing.T) {
	f := start(t, ring, 3, 2)
	_, c := caches(t, f, shardredis.CacheConfig{ReadThrough: true, Fence: true})
	keys := keysOf(20)
	stop := make(chan struct{})
	var users sync.WaitGroup
	var done atomic.Int64
	for w, key := range keys { // each key has one writer, whose values grow
		users.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					must(t, c.Del(t.Context(), key).Err())
					return
				default:
				}
				if err := c.Set(t.Context(), key, i, 0).Err(); err != nil {
					t.Error(err)
				}
				if v, err := c.Get(t.Context(), key).Int(); err != nil && !errors.Is(err, redis.Nil) || err == nil && v != i {
					t.Errorf("%d: %s is %d after %d was written, %v", w, key, v, i, err)
				}
				done.Add(1)
			}
		})
	}
	for range 2 {
		users.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := c.MGet(t.Context(), keys...).Err(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	work := func(n int64) {
		from := done.Load()
		until(t, "work", func() bool { return done.Load() >= from+n })
	}
	f.plane.Begin(0, func(d *topology.Declared) { d.Nodes = append(d.Nodes, f.node(2)) })
	for _, share := range []float64{.1, .2, .3, .2, .3, .4, .5, .6, .7, .8, .9} {
		work(100)
		f.plane.Step(share)
	}
	work(100)
	f.plane.Finish()
	close(stop)
	users.Wait()
	if left := mget(t, c, keys); len(left) != 0 {
		t.Errorf("deleted and there: %v", left)
	}
}

// TestOtherGone: without its other owner a key is missed, and not written.
func TestOtherGone(t *testing.T) {
	f := start(t, ring, 2, 1)
	client := shardredis.New(f.plane.Client(), shardredis.Config{Options: &redis.Options{MaxRetries: -1, DialerRetries: 1}})
	defer client.Close()
	c := client.Cache(shardredis.CacheConfig{ReadThrough: true})
	ctx := t.Context()
	f.plane.Begin(.5, func(d *topology.Declared) {
		n := f.node(1)
		n.Addr = "127.0.0.1:1" // nobody is there
		d.Nodes = append(d.Nodes, n)
	})
	moving := 0
	for _, key := range keysOf(40) {
		if f.plane.Owner(key) != "r0" {
			continue
		}
		before := c.Stats().OtherErrors
		if v := get(t, c, key); v != "" {
			t.Errorf("%s: %q", key, v)
		}
		goes := c.Stats().OtherErrors > before
		if goes {
			moving++
		}
		for what, err := range map[string]error{"set": c.Set(ctx, key, "v", 0).Err(), "del": c.Del(ctx, key).Err(), "setnx": c.SetNX(ctx, key, "v", 0).Err()} {
			if (err != nil) != goes {
				t.Errorf("%s %s, whose owner changes: %v: %v", what, key, goes, err)
			}
		}
	}
	if moving < 3 {
		t.Errorf("only %d keys move", moving)
	}
}
