package memcache_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	shardmemcache "github.com/shardd/shardd/sdk/memcache"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// TestFence: a server that left and came back does not serve what was overwritten
// meanwhile; what it owned without a gap it serves.
func TestFence(t *testing.T) {
	f := start(t, 3, 3)
	fenced, plain := newClient(t, f, shardmemcache.Config{Fence: true}), newClient(t, f, shardmemcache.Config{})
	keys := make([]string, 60)
	for i := range keys {
		keys[i] = fmt.Sprint("user:", i)
		must(t, fenced.Set(&memcache.Item{Key: keys[i], Value: []byte("old")}))
	}
	home := map[string]string{}
	for _, key := range keys {
		home[key] = f.plane.Owner(key)
	}
	f.plane.Remove("m2")
	for _, key := range keys {
		if home[key] == "m2" {
			must(t, fenced.Set(&memcache.Item{Key: key, Value: []byte("new")}))
		}
	}
	f.plane.Add(f.node(2)) // with all that it had: the process went on
	all, err := fenced.GetMulti(keys)
	must(t, err)
	stale := 0
	for _, key := range keys {
		it, err := fenced.Get(key)
		if home[key] == "m2" {
			if !errors.Is(err, memcache.ErrCacheMiss) || all[key] != nil {
				t.Errorf("%s: %v, %v", key, it, err)
			}
			if raw, err := plain.Get(key); err == nil && len(raw.Value) > 3 {
				stale++
			}
			continue
		}
		if err != nil || string(it.Value) != "old" || all[key] == nil || string(all[key].Value) != "old" {
			t.Errorf("%s of %s: %v, %v", key, home[key], it, err)
		}
	}
	if stale == 0 {
		t.Error("m2 had nothing that could have been served")
	}
	k := keys[0]
	must(t, fenced.Set(&memcache.Item{Key: k, Value: []byte("a")}), fenced.Append(&memcache.Item{Key: k, Value: []byte("b")}))
	it, err := fenced.Get(k)
	must(t, err)
	if string(it.Value) != "ab" {
		t.Errorf("appended: %q", it.Value)
	}
	it.Value = []byte("c")
	must(t, fenced.CompareAndSwap(it))
	if it, err = fenced.Get(k); err != nil || string(it.Value) != "c" {
		t.Errorf("swapped: %v, %v", it, err)
	}
	_, up := fenced.Increment(k, 1)
	_, down := fenced.Decrement(k, 1)
	for _, err := range []error{up, down, fenced.Prepend(it)} {
		if !errors.Is(err, shardmemcache.ErrFenced) {
			t.Errorf("%v", err)
		}
	}
}

// TestFenceAroundDown: what a node that is published as down misses, it does not serve
// when it is up again; what stands in for it serves what it stored while it does so,
// and nothing of an earlier time.
func TestFenceAroundDown(t *testing.T) {
	f := start(t, 3, 3)
	c, plain := newClient(t, f, shardmemcache.Config{Fence: true}), newClient(t, f, shardmemcache.Config{})
	var keys []string // of m2
	for i := range 100 {
		if key := fmt.Sprint("user:", i); f.plane.Owner(key) == "m2" {
			keys = append(keys, key)
			must(t, c.Set(&memcache.Item{Key: key, Value: []byte("first")}))
		}
	}
	check := func(what, want string) {
		t.Helper()
		all, err := c.GetMulti(keys)
		must(t, err)
		for _, key := range keys {
			it, err := c.Get(key)
			if want == "" && (!errors.Is(err, memcache.ErrCacheMiss) || all[key] != nil) {
				t.Fatalf("%s: %s: %v, %v", what, key, it, err)
			}
			if want != "" && (err != nil || string(it.Value) != want || all[key] == nil) {
				t.Fatalf("%s: %s: %v, %v", what, key, it, err)
			}
		}
	}
	set := func(value string) {
		t.Helper()
		for _, key := range keys {
			must(t, c.Set(&memcache.Item{Key: key, Value: []byte(value)}))
		}
		check("just set", value)
	}
	for _, value := range []string{"second", "third"} {
		f.plane.SetState("m2", topology.StateDown)
		check("down", "")
		set(value + ", standing in")
		f.plane.SetState("m2", topology.StateActive)
		if raw, err := plain.Get(keys[0]); err != nil || len(raw.Value) < 5 {
			t.Fatalf("m2 has nothing that could be served: %v", err)
		}
		check("up again", "")
		set(value)
	}
}

// TestFenceAroundHealth: what one client goes round for its health, no version tells.
// Its keys wait.
func TestFenceAroundHealth(t *testing.T) {
	f := start(t, 3, 3)
	client := f.plane.Client()
	c := shardmemcache.New(client, shardmemcache.Config{Fence: true})
	t.Cleanup(func() { c.Close() })
	other := newClient(t, f, shardmemcache.Config{Fence: true})
	item := &memcache.Item{Key: "k", Value: []byte("v")}
	must(t, c.Set(item))
	home := f.plane.Owner("k")
	client.SetHealth(home, false)
	if all, err := c.GetMulti([]string{"k"}); err != nil || len(all) > 0 {
		t.Errorf("served by another: %v, %v", all, err)
	}
	if _, err := c.Get("k"); !errors.Is(err, memcache.ErrCacheMiss) {
		t.Errorf("get: %v", err)
	}
	for _, err := range []error{c.Set(item), c.Add(item), c.Replace(item), c.CompareAndSwap(item), c.Append(item), c.Delete("k"), c.Touch("k", 9)} {
		if !errors.Is(err, shardmemcache.ErrDetour) {
			t.Errorf("written elsewhere: %v", err)
		}
	}
	must(t, other.Set(&memcache.Item{Key: "k", Value: []byte("w")})) // it finds the node well
	client.SetHealth(home, true)
	if it, err := c.Get("k"); err != nil || string(it.Value) != "w" {
		t.Errorf("up again: %v, %v", it, err)
	}
}

// TestFenceWithReplicas: the first of a key's nodes is written, so one that was its
// second meanwhile has missed what was.
func TestFenceWithReplicas(t *testing.T) {
	f := start(t, 3, 3)
	f.plane = shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring, Replicas: 2}, Nodes: []topology.Node{f.node(0), f.node(1)}})
	c := newClient(t, f, shardmemcache.Config{Fence: true})
	keys := make([]string, 60)
	for i := range keys {
		keys[i] = fmt.Sprint("user:", i)
		must(t, c.Set(&memcache.Item{Key: keys[i], Value: []byte("old")}))
	}
	f.plane.Add(f.node(2))
	moved := map[string]bool{}
	for _, key := range keys {
		if moved[key] = f.plane.Owner(key) == "m2"; moved[key] {
			must(t, c.Set(&memcache.Item{Key: key, Value: []byte("new")}))
		}
	}
	f.plane.Remove("m2")
	for _, key := range keys {
		it, err := c.Get(key)
		if moved[key] && !errors.Is(err, memcache.ErrCacheMiss) || !moved[key] && (err != nil || string(it.Value) != "old") {
			t.Errorf("%s, moved %v: %v, %v", key, moved[key], it, err)
		}
	}
}

// TestFenceReadsThrough: what the other owner has of an earlier time, when it had left
// and come back before, is no hit for read-through either.
func TestFenceReadsThrough(t *testing.T) {
	f := start(t, 3, 2)
	c := newClient(t, f, shardmemcache.Config{Fence: true, ReadThrough: true})
	keys := make([]string, 60)
	home := map[string]string{}
	for i := range keys {
		keys[i] = fmt.Sprint("user:", i)
		home[keys[i]] = f.plane.Owner(keys[i])
		must(t, c.Set(&memcache.Item{Key: keys[i], Value: []byte("old")}))
	}
	f.plane.Remove("m1")
	for _, key := range keys {
		must(t, c.Set(&memcache.Item{Key: key, Value: []byte("new")}))
	}
	f.plane.Add(f.node(1)) // with "old" of all its keys
	f.plane.Begin(.9, func(d *topology.Declared) { d.Nodes = append(d.Nodes, f.node(2)) })
	through := 0
	for _, key := range keys {
		it, err := c.Get(key)
		if home[key] == "m1" && !errors.Is(err, memcache.ErrCacheMiss) {
			t.Errorf("%s: %v, %v", key, it, err)
		}
		if home[key] == "m0" && f.plane.Owner(key) == "m2" {
			if through++; err != nil || string(it.Value) != "new" {
				t.Errorf("%s is with m0: %v, %v", key, it, err)
			}
		}
	}
	if through == 0 {
		t.Error("nothing was read through")
	}
}

// TestReadThrough: while a node takes its keys over in steps nothing is missed, nothing
// old is served, and nothing deleted comes back.
func TestReadThrough(t *testing.T) {
	for _, fence := range []bool{false, true} {
		f := start(t, 3, 2)
		c := newClient(t, f, shardmemcache.Config{ReadThrough: true, Fence: fence})
		keys := make([]string, 200)
		want := map[string]string{}
		for i := range keys {
			keys[i] = fmt.Sprint("user:", i)
			want[keys[i]] = "first"
			must(t, c.Set(&memcache.Item{Key: keys[i], Value: []byte("first")}))
		}
		check := func(what string) {
			t.Helper()
			all, err := c.GetMulti(keys)
			must(t, err)
			for _, key := range keys {
				it, err := c.Get(key)
				if want[key] == "" {
					if !errors.Is(err, memcache.ErrCacheMiss) || all[key] != nil {
						t.Errorf("%s: %s was deleted: %v, %v", what, key, it, err)
					}
					continue
				}
				if err != nil || string(it.Value) != want[key] || all[key] == nil || string(all[key].Value) != want[key] {
					t.Errorf("%s: %s: %v, %v", what, key, it, err)
				}
			}
		}
		change := func(from int) {
			t.Helper()
			for i := from; i < len(keys); i += 5 {
				want[keys[i]] = fmt.Sprint("written ", from)
				must(t, c.Set(&memcache.Item{Key: keys[i], Value: []byte(want[keys[i]])}))
			}
			for i := from + 1; i < len(keys); i += 20 {
				if err := c.Delete(keys[i]); err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
					t.Fatal(err)
				}
				want[keys[i]] = ""
			}
		}
		f.plane.Begin(.5, func(d *topology.Declared) { d.Nodes = append(d.Nodes, f.node(2)) })
		check("half")
		change(0)
		check("half, changed")
		if !fence { // going back: what was written on the new owner is read through
			f.plane.Step(.2)
			check("a step back")
			change(2)
			f.plane.Step(.7)
			check("and forth")
		}
	}
}
