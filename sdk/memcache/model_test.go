package memcache_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	shardmemcache "github.com/shardd/shardd/sdk/memcache"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// story is random commands to real servers between random changes of a topology, and
// what the last command wrote for each key.
type story struct {
	t      *testing.T
	f      fleet
	c      *shardmemcache.Client
	rnd    *rand.Rand
	want   map[string]string
	log    []string
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
		spec := topology.Spec{Algorithm: topology.Algorithms()[seed%uint64(len(topology.Algorithms()))], Replicas: uint32(1 + rnd.IntN(3)), ZoneAware: rnd.IntN(4) == 0}
		f := fleet{servers: servers}
		var nodes []topology.Node
		for i := range 3 {
			nodes = append(nodes, zoned(f, i))
		}
		f.plane = shardtest.NewFrom(t, topology.Declared{Spec: spec, Nodes: nodes})
		c := shardmemcache.New(f.plane.Client(), shardmemcache.Config{Fence: true, ReadThrough: true})
		s := story{t: t, f: f, c: c, rnd: rnd, want: map[string]string{}}
		for range 40 {
			s.publish()
			for range 25 {
				s.command(seed)
			}
		}
		if s.hits < s.misses/4 {
			t.Errorf("seed %d, %v: %d hits and %d misses", seed, spec.Algorithm, s.hits, s.misses)
		}
		must(t, c.FlushAll(), c.Close())
		if t.Failed() {
			t.Fatalf("seed %d, %+v:\n%v", seed, spec, s.log)
		}
	}
}

func zoned(f fleet, i int) topology.Node {
	n := f.node(i)
	n.Zone = fmt.Sprint("z", i%3)
	return n
}

func (s *story) publish() {
	p := s.f.plane
	if p.Topology().Transition() != nil {
		switch s.rnd.IntN(3) {
		case 0:
			p.Finish()
			s.log = append(s.log, "finish")
		default:
			share := s.rnd.Float64()
			p.Step(share)
			s.log = append(s.log, fmt.Sprintf("step %.2f", share))
		}
		return
	}
	edit, what := s.edit()
	if !strings.HasPrefix(what, "remove") && s.rnd.IntN(2) == 0 {
		share := s.rnd.Float64()
		p.Begin(share, edit)
		s.log = append(s.log, fmt.Sprintf("begin %.2f %s", share, what))
		return
	}
	p.Publish(edit)
	s.log = append(s.log, what)
}

// edit is a change that leaves two nodes up.
func (s *story) edit() (func(*topology.Declared), string) {
	nodes := slices.Clone(s.f.plane.Topology().Nodes())
	i := s.rnd.IntN(5)
	id := fmt.Sprint("m", i)
	at := slices.IndexFunc(nodes, func(n topology.Node) bool { return n.ID == id })
	up := 0
	for k, n := range nodes {
		if k != at && n.State == topology.StateActive && n.Weight > 0 {
			up++
		}
	}
	var what string
	kind := s.rnd.IntN(4)
	switch {
	case at < 0:
		nodes, what = append(nodes, zoned(s.f, i)), "add "+id
	case nodes[at].State != topology.StateActive:
		nodes[at].State, what = topology.StateActive, "up "+id
	case kind == 0 || up < 2:
		nodes[at].Weight = uint32(1 + s.rnd.IntN(3))
		what = fmt.Sprint("weight ", id, " ", nodes[at].Weight)
	case kind == 1:
		nodes, what = slices.Delete(nodes, at, at+1), "remove "+id
	case kind == 2:
		nodes[at].State, what = topology.StateDown, "down "+id
	default:
		nodes[at].State, what = topology.StateDraining, "drain "+id
	}
	return func(d *topology.Declared) { d.Nodes = nodes }, what
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
			s.t.Errorf("%s: add after missed=%v: %v; %v", key, missed, err, s.log)
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
		s.t.Errorf("%s is %q, not %q; %v", key, it.Value, want, s.log)
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
