package rueidis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/shardd/shardd/sdk"
	shardrueidis "github.com/shardd/shardd/sdk/rueidis"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("user:", i)
	}
	return keys
}

// get returns a value, "" for a miss.
func get(t *testing.T, c *shardrueidis.Cache, key string) string {
	t.Helper()
	v, err := c.Get(t.Context(), key)
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
	return v
}

func check(t *testing.T, what string, c *shardrueidis.Cache, keys []string, want map[string]string) {
	t.Helper()
	found, err := c.MGet(t.Context(), keys...)
	must(t, err)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
	for _, key := range keys {
		if v := get(t, c, key); v != want[key] {
			t.Errorf("%s: %s: %q", what, key, v)
		}
	}
}

func TestCacheCommands(t *testing.T) {
	_, _, client := start(t, 3, 3)
	for _, cfg := range []shardrueidis.CacheConfig{{}, {ReadThrough: true}, {Fence: true}, {ReadThrough: true, Fence: true}} {
		c, ctx, keys, want := client.Cache(cfg), t.Context(), keysOf(40), map[string]string{}
		for i, key := range keys {
			want[key] = fmt.Sprint(i, "\x00\xff\r\n") // any bytes
		}
		must(t, c.MSet(ctx, want, time.Hour))
		check(t, "all", c, append(keys, "nobody"), want)
		first, err1 := c.SetNX(ctx, "nx", "a", time.Hour)
		second, err2 := c.SetNX(ctx, "nx", "b", 0)
		if !first || second || err1 != nil || err2 != nil || get(t, c, "nx") != "a" {
			t.Errorf("%+v: set %v, %v; %v, %v", cfg, first, second, err1, err2)
		}
		must(t, c.Set(ctx, "short", "", 30*time.Millisecond))
		if _, err := c.Get(ctx, "short"); err != nil {
			t.Errorf("an empty value: %v", err)
		}
		until(t, "its end", func() bool { _, err := c.Get(ctx, "short"); return rueidis.IsRedisNil(err) })
		if n, err := c.Del(ctx, append(keys, "nobody", "nx")...); n != 41 || err != nil {
			t.Errorf("%+v: %d deleted, %v", cfg, n, err)
		}
	}
	c := shardrueidis.New(shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}}).Client(), shardrueidis.Config{})
	defer c.Close()
	_, err1 := c.Cache(shardrueidis.CacheConfig{}).Get(t.Context(), "k")
	_, err2 := c.Cache(shardrueidis.CacheConfig{}).MGet(t.Context(), "k", "l")
	_, err3 := c.Cache(shardrueidis.CacheConfig{}).SetNX(t.Context(), "k", "v", 0)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, sdk.ErrNoNodes) {
			t.Error(err)
		}
	}
}

// TestFence: a server that left and came back does not serve what was overwritten or
// deleted meanwhile.
func TestFence(t *testing.T) {
	plane, nodes, client := start(t, 3, 3)
	c, plain := client.Cache(shardrueidis.CacheConfig{Fence: true}), client.Cache(shardrueidis.CacheConfig{})
	ctx, keys := t.Context(), keysOf(60)
	home, want := map[string]string{}, map[string]string{}
	for _, key := range keys {
		must(t, c.Set(ctx, key, "old", 0))
		home[key], want[key] = plane.Owner(key), "old"
	}
	plane.Remove("r2")
	for i, key := range keys {
		if home[key] != "r2" {
			continue
		}
		delete(want, key)
		if i%2 == 0 {
			must(t, c.Set(ctx, key, "new", 0))
		} else if _, err := c.Del(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	plane.Add(nodes[2]) // with all that it had: the process went on
	check(t, "back", c, keys, want)
	for _, key := range keys {
		if home[key] != "r2" {
			continue
		}
		if raw := get(t, plain, key); !strings.HasSuffix(raw, "old") {
			t.Errorf("r2 had %q, nothing that could have been served", raw)
		}
		if ok, err := c.SetNX(ctx, key, "filled", 0); !ok || err != nil || get(t, c, key) != "filled" {
			t.Errorf("%s: %v, %v: %q", key, ok, err, get(t, c, key))
		}
	}
	if c.Stats().Stale == 0 {
		t.Error("no miss by the fence")
	}
}

// TestReadThrough: while a node takes its keys over in steps nothing is missed, nothing
// old is served, nothing deleted comes back, and what is read goes over.
func TestReadThrough(t *testing.T) {
	for _, fence := range []bool{false, true} {
		plane, nodes, client := start(t, 3, 2)
		c := client.Cache(shardrueidis.CacheConfig{ReadThrough: true, Fence: fence})
		ctx, keys, want := t.Context(), keysOf(200), map[string]string{}
		for _, key := range keys {
			want[key] = "first"
		}
		must(t, c.MSet(ctx, want, time.Hour))
		change := func(from int) {
			t.Helper()
			for i := from; i < len(keys); i += 5 {
				want[keys[i]] = fmt.Sprint("written ", from)
				must(t, c.Set(ctx, keys[i], want[keys[i]], 0))
			}
			for i := from + 1; i < len(keys); i += 20 {
				_, had := want[keys[i]]
				if n, err := c.Del(ctx, keys[i]); err != nil || (n == 1) != had {
					t.Errorf("%s: %d deleted, %v", keys[i], n, err)
				}
				delete(want, keys[i])
			}
		}
		plane.Begin(.5, func(d *topology.Declared) { d.Nodes = append(d.Nodes, nodes[2]) })
		change(0)
		check(t, "half", c, keys, want)
		if s := c.Stats(); s.Through == 0 || s.Copied != s.Through || s.OtherErrors != 0 {
			t.Errorf("%+v", s)
		}
		for _, key := range keys {
			if plane.Owner(key) != "r2" || want[key] != "first" {
				continue
			}
			must(t, client.Node(key, func(n rueidis.Client) error {
				left, err := n.Do(ctx, n.B().Ttl().Key(key).Build()).AsInt64()
				if left < 3500 || left > 3600 {
					t.Errorf("%s lives %d s on", key, left)
				}
				return err
			}))
		}
		plane.Step(.999)
		check(t, "nearly over", c, keys, want)
		change(3)
		plane.Finish()
		check(t, "over", c, keys, want)
	}
}

// TestFenceAroundHealth: what one client goes round for its health, no version tells. Its
// keys wait.
func TestFenceAroundHealth(t *testing.T) {
	plane, _, _ := start(t, 3, 3)
	follow := plane.Client()
	client := shardrueidis.New(follow, shardrueidis.Config{})
	defer client.Close()
	c, ctx := client.Cache(shardrueidis.CacheConfig{Fence: true}), t.Context()
	must(t, c.Set(ctx, "k", "v", 0))
	follow.SetHealth(plane.Owner("k"), false)
	if v := get(t, c, "k"); v != "" {
		t.Errorf("served by another: %q", v)
	}
	_, err1 := c.SetNX(ctx, "k", "v", 0)
	_, err2 := c.Del(ctx, "k")
	for _, err := range []error{c.Set(ctx, "k", "v", 0), c.MSet(ctx, map[string]string{"k": "v"}, 0), err1, err2} {
		if !errors.Is(err, shardrueidis.ErrDetour) {
			t.Errorf("written elsewhere: %v", err)
		}
	}
	follow.SetHealth(plane.Owner("k"), true)
	if v := get(t, c, "k"); v != "v" {
		t.Errorf("%q", v)
	}
}
