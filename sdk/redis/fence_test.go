package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shardredis "github.com/shardd/shardd/sdk/redis"
	"github.com/shardd/shardd/topology"
)

// TestFence: a server that left and came back does not serve what was overwritten or
// deleted meanwhile; what was owned without a gap is served.
func TestFence(t *testing.T) {
	f := start(t, ring, 3, 3)
	_, c := caches(t, f, shardredis.CacheConfig{Fence: true})
	ctx, keys := t.Context(), keysOf(60)
	home, want := map[string]string{}, map[string]string{}
	for _, key := range keys {
		must(t, c.Set(ctx, key, "old", 0).Err())
		home[key], want[key] = f.plane.Owner(key), "old"
	}
	f.plane.Remove("r2")
	for i, key := range keys {
		if home[key] != "r2" {
			continue
		}
		delete(want, key)
		if i%2 == 0 {
			must(t, c.Set(ctx, key, "new", 0).Err())
		} else {
			must(t, c.Del(ctx, key).Err())
		}
	}
	f.plane.Add(f.node(2)) // with all that it had: the process went on
	if diff := cmp.Diff(want, mget(t, c, keys)); diff != "" {
		t.Error(diff)
	}
	stale := 0
	for i, key := range keys {
		if get(t, c, key) != want[key] {
			t.Errorf("%s of %s: %q", key, home[key], get(t, c, key))
		}
		if home[key] != "r2" {
			continue
		}
		stale++
		if raw := f.direct(t, 2).Get(ctx, key).Val(); !strings.HasSuffix(raw, "old") {
			t.Errorf("r2 had %q, nothing that could have been served", raw)
		}
		if i%2 == 0 { // SetNX takes the old value for none
			ok, err := c.SetNX(ctx, key, "filled", 0).Result()
			again := c.SetNX(ctx, key, "again", 0).Val()
			if !ok || err != nil || again || get(t, c, key) != "filled" {
				t.Errorf("%s: %v, %v, %v: %q", key, ok, err, again, get(t, c, key))
			}
			continue
		}
		must(t, c.Set(ctx, key, "newer", 0).Err())
		if v := get(t, c, key); v != "newer" {
			t.Errorf("%s: %q", key, v)
		}
	}
	if got := c.Stats().Stale; stale == 0 || got < uint64(stale) {
		t.Errorf("%d keys of r2, %d misses by the fence", stale, got)
	}
}

// TestUnstamped: values of clients without a fence are misses, or hits if they may pass;
// all clients read what any writes with a fence.
func TestUnstamped(t *testing.T) {
	f := start(t, ring, 2, 2)
	_, plain := caches(t, f, shardredis.CacheConfig{})
	_, strict := caches(t, f, shardredis.CacheConfig{Fence: true})
	_, passing := caches(t, f, shardredis.CacheConfig{Fence: true, PassUnstamped: true})
	ctx := t.Context()
	must(t, plain.Set(ctx, "k", "v", 0).Err(), plain.Set(ctx, "l", "\xf5\xff", 0).Err())
	if s, p, q := get(t, strict, "k"), get(t, passing, "k"), get(t, passing, "l"); s != "" || p != "v" || q != "\xf5\xff" {
		t.Errorf("%q, %q, %q", s, p, q)
	}
	if ok := passing.SetNX(ctx, "k", "w", 0).Val(); ok {
		t.Error("set over a value that passes")
	}
	if ok := strict.SetNX(ctx, "k", "w", 0).Val(); !ok || get(t, strict, "k") != "w" || get(t, passing, "k") != "w" {
		t.Errorf("%v: %q, %q", ok, get(t, strict, "k"), get(t, passing, "k"))
	}
}

// TestFencedOther: what a server kept while it was away is not read through to, either,
// when its keys go over to another one in steps.
func TestFencedOther(t *testing.T) {
	f := start(t, ring, 3, 2)
	_, c := caches(t, f, shardredis.CacheConfig{Fence: true, ReadThrough: true})
	ctx, keys, home := t.Context(), keysOf(100), map[string]string{}
	for _, key := range keys {
		must(t, c.Set(ctx, key, "old", 0).Err())
		home[key] = f.plane.Owner(key)
	}
	f.plane.Remove("r1")
	for _, key := range keys {
		must(t, c.Set(ctx, key, "new", 0).Err())
	}
	f.plane.Add(f.node(1)) // back with all that it had
	f.plane.Begin(.999, func(d *topology.Declared) { d.Nodes = append(d.Nodes, f.node(2)) })
	moved := 0
	for _, key := range keys {
		if home[key] == "r1" && f.plane.Owner(key) == "r2" {
			moved++
			if v := get(t, c, key); v != "" {
				t.Errorf("%s: %q was there before r1 left", key, v)
			}
		}
	}
	if moved < 5 {
		t.Errorf("only %d keys went from r1 to r2", moved)
	}
}

// TestFenceAroundDown: what a node that is published as down misses, it does not serve
// when it is up again; nor does what stood in for it when it does so again.
func TestFenceAroundDown(t *testing.T) {
	f := start(t, ring, 3, 3)
	_, c := caches(t, f, shardredis.CacheConfig{Fence: true, ReadThrough: true})
	var keys []string // of r2
	for _, key := range keysOf(100) {
		if f.plane.Owner(key) == "r2" {
			keys = append(keys, key)
			must(t, c.Set(t.Context(), key, "first", 0).Err())
		}
	}
	for _, value := range []string{"second", "third"} {
		for _, state := range []topology.State{topology.StateDown, topology.StateActive} {
			f.plane.SetState("r2", state)
			if found := mget(t, c, keys); len(found) != 0 {
				t.Errorf("%s: %v", state, found)
			}
			for _, key := range keys {
				must(t, c.Set(t.Context(), key, value, 0).Err())
			}
			if found := mget(t, c, keys); len(found) != len(keys) {
				t.Errorf("%s: %d of %d", state, len(found), len(keys))
			}
		}
	}
}

// TestFenceAroundHealth: what one client goes round for its health, no version tells. Its
// keys wait.
func TestFenceAroundHealth(t *testing.T) {
	f := start(t, ring, 3, 3)
	follow := f.plane.Client()
	client := shardredis.New(follow, shardredis.Config{})
	defer client.Close()
	c := client.Cache(shardredis.CacheConfig{Fence: true})
	_, other := caches(t, f, shardredis.CacheConfig{Fence: true})
	ctx := t.Context()
	must(t, c.Set(ctx, "k", "v", 0).Err())
	home := f.plane.Owner("k")
	follow.SetHealth(home, false)
	if v := get(t, c, "k"); v != "" {
		t.Errorf("served by another: %q", v)
	}
	if found := mget(t, c, []string{"k"}); len(found) != 0 {
		t.Errorf("served by another: %v", found)
	}
	for _, err := range []error{c.Set(ctx, "k", "v", 0).Err(), c.SetNX(ctx, "k", "v", 0).Err(), c.Del(ctx, "k").Err()} {
		if !errors.Is(err, shardredis.ErrDetour) {
			t.Errorf("written elsewhere: %v", err)
		}
	}
	must(t, other.Set(ctx, "k", "w", 0).Err()) // it finds the node well
	follow.SetHealth(home, true)
	if v := get(t, c, "k"); v != "w" {
		t.Errorf("%q", v)
	}
}
