package memcache_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	shardmemcache "github.com/shardd/shardd/sdk/memcache"
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
