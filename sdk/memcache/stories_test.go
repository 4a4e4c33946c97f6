package memcache_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	shardmemcache "github.com/shardd/shardd/sdk/memcache"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/test/stories"
	"github.com/shardd/shardd/topology"
)

// story is random commands to real servers between random changes of a topology, and
// what the last command wrote for each key.
type story struct {
	t      *testing.T
	c      *shardmemcache.Client
	rnd    *rand.Rand
	want   map[string]string
	n      int
	hits   int
	misses int
}

// TestFenceStories: whatever is published between commands, a fenced read has what was
// written last, or misses; and a command that needs that there be none succeeds after a
// miss.
func TestFenceStories(t *testing.T) {
	servers := start(t, 5, 3).servers
	for seed := range uint64(len(topology.Algorithms()) * 2) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		spec := stories.Spec(rnd, topology.Algorithms()[seed%uint64(len(topology.Algorithms()))])
		f := fleet{servers: servers}
		var nodes []topology.Node
		for i := range servers {
			nodes = append(nodes, zoned(f, i))
		}
		f.plane = shardtest.NewFrom(t, topology.Declared{Spec: spec, Nodes: nodes[:3]})
		c := shardmemcache.New(f.plane.Client(), shardmemcache.Config{Fence: true, ReadThrough: true})
		s := story{t: t, c: c, rnd: rnd, want: map[string]string{}}
		teller := stories.Teller{Plane: f.plane, Rand: rnd, Nodes: nodes}
		for range 40 {
			teller.Publish()
			for range 25 {
				s.command(seed)
			}
		}
		if s.hits < s.misses/4 {
			t.Errorf("seed %d, %v: %d hits and %d misses", seed, spec.Algorithm, s.hits, s.misses)
		}
		must(t, c.FlushAll(), c.Close())
		if t.Failed() {
			t.Fatalf("seed %d, %+v:\n%v", seed, spec, teller.Log)
		}
	}
}

func zoned(f fleet, i int) topology.Node {
	n := f.node(i)
	n.Zone = fmt.Sprint("z", i%3)
	return n
}

func (s *story) command(seed uint64) {
	s.t.Helper()
	key := fmt.Sprintf("%d-%d", seed, s.rnd.IntN(30))
	s.n++
	value := fmt.Sprint("v", s.n)
	item := &memcache.Item{Key: key, Value: []byte(value)}
	switch s.rnd.IntN(11) {
	case 0, 1:
		must(s.t, s.c.Set(item))
		s.want[key] = value
	case 2:
		if err := s.c.Delete(key); err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
			s.t.Fatal(err)
		}
		delete(s.want, key)
	case 3:
		missed := s.get(key) == nil
		if err := s.c.Add(item); missed && err != nil || !missed && !errors.Is(err, memcache.ErrNotStored) {
			s.t.Errorf("%s: add after missed=%v: %v", key, missed, err)
		}
		if missed {
			s.want[key] = value
		}
	case 4:
		if it := s.get(key); it != nil {
			it.Value = item.Value
			if err := s.c.CompareAndSwap(it); err != nil {
				s.t.Errorf("%s: swap: %v", key, err)
			}
			s.want[key] = value
		}
	case 5:
		it := s.get(key)
		err := s.c.Replace(item)
		if it == nil && !errors.Is(err, memcache.ErrNotStored) || it != nil && err != nil {
			s.t.Errorf("%s: replace of %v: %v", key, it, err)
		}
		if it != nil {
			s.want[key] = value
		}
	case 6:
		it := s.get(key)
		err := s.c.Append(item)
		if it == nil && !errors.Is(err, memcache.ErrNotStored) || it != nil && err != nil {
			s.t.Errorf("%s: append to %v: %v", key, it, err)
		}
		if it != nil {
			s.want[key] += value
		}
	case 7:
		it := s.get(key)
		err := s.c.Touch(key, 1000)
		if it == nil && !errors.Is(err, memcache.ErrCacheMiss) || it != nil && err != nil {
			s.t.Errorf("%s: touch of %v: %v", key, it, err)
		}
	case 8:
		keys := make([]string, 10)
		for i := range keys {
			keys[i] = fmt.Sprintf("%d-%d", seed, s.rnd.IntN(30))
		}
		all, err := s.c.GetMulti(keys)
		must(s.t, err)
		for _, k := range keys {
			s.check(k, all[k])
		}
	default:
		s.get(key)
	}
}

func (s *story) get(key string) *memcache.Item {
	s.t.Helper()
	it, err := s.c.Get(key)
	if err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
		s.t.Fatal(err)
	}
	s.check(key, it)
	return it
}

func (s *story) check(key string, it *memcache.Item) {
	s.t.Helper()
	want, has := s.want[key]
	switch {
	case it == nil && has:
		s.misses++
	case it == nil:
	case string(it.Value) != want:
		s.t.Errorf("%s is %q, not %q", key, it.Value, want)
	default:
		s.hits++
	}
}

// TestOtherStandsIn: while a key's owner is down and its keys are changing theirs, the
// other owner may be who stands in: it is asked once, and a write does not delete what it
// has just read.
func TestOtherStandsIn(t *testing.T) {
	f := start(t, 3, 2)
	c := newClient(t, f, shardmemcache.Config{ReadThrough: true})
	routes := f.plane.Client()
	f.plane.SetState("m0", topology.StateDown)
	f.plane.Begin(.5, func(d *topology.Declared) { d.Nodes[1].Weight = 4 })
	one, two := 0, 0
	for i := range 400 {
		key := fmt.Sprint("key:", i)
		r, err := routes.Route(key)
		must(t, err)
		if !r.Detour() {
			continue
		}
		if other, ok := r.Other(); ok && other.ID == r.ID() {
			t.Errorf("%s: %s is both", key, r.ID())
		} else if ok {
			two++
			continue
		}
		one++
		must(t, c.Set(&memcache.Item{Key: key, Value: []byte("v")}))
		it, err := c.Get(key)
		must(t, err)
		it.Value = []byte("w")
		must(t, c.CompareAndSwap(it))
	}
	if one == 0 {
		t.Errorf("no key is like that; %d with two", two)
	}
}

// TestOtherGone: reads of keys whose other owner is dead are misses; those of one call wait
// for it once.
func TestOtherGone(t *testing.T) {
	f := start(t, 3, 2)
	c := newClient(t, f, shardmemcache.Config{ReadThrough: true})
	f.plane.Begin(.9, func(d *topology.Declared) { d.Nodes = append(d.Nodes, f.node(2)) })
	var keys []string
	for i := 0; len(keys) < 50; i++ {
		if key := fmt.Sprint("key:", i); f.plane.Owner(key) == "m2" {
			keys = append(keys, key)
		}
	}
	f.servers[0].Stop()
	f.servers[1].Stop()
	if it, err := c.Get(keys[0]); !errors.Is(err, memcache.ErrCacheMiss) {
		t.Errorf("%v, %v", it, err)
	}
	if all, err := c.GetMulti(keys); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
