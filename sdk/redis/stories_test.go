package redis_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	shardredis "github.com/shardd/shardd/sdk/redis"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/test/stories"
	"github.com/shardd/shardd/topology"
)

// story is random commands to real servers between random changes of a topology, and
// what the last command wrote for each key.
type story struct {
	t            *testing.T
	c            *shardredis.Cache
	rnd          *rand.Rand
	prefix       string
	want         map[string]string
	n            int
	hits, misses int
}

// TestFenceStories: whatever is published between commands, a fenced read has what was
// written last, or misses; and SetNX succeeds after a miss, and after a hit fails.
func TestFenceStories(t *testing.T) {
	servers := start(t, ring, 5, 3).servers
	for seed := range uint64(len(topology.Algorithms()) * 2) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		spec := stories.Spec(rnd, topology.Algorithms()[seed%uint64(len(topology.Algorithms()))])
		f := fleet{servers: servers}
		var nodes []topology.Node
		for i := range servers {
			n := f.node(i)
			n.Zone = fmt.Sprint("z", i%3)
			nodes = append(nodes, n)
		}
		f.plane = shardtest.NewFrom(t, topology.Declared{Spec: spec, Nodes: nodes[:3]})
		client, cache := caches(t, f, shardredis.CacheConfig{Fence: true, ReadThrough: true})
		s := story{t: t, c: cache, rnd: rnd, prefix: fmt.Sprint(seed, "-"), want: map[string]string{}}
		teller := stories.Teller{Plane: f.plane, Rand: rnd, Nodes: nodes}
		for range 40 {
			teller.Publish()
			for range 25 {
				s.command()
			}
		}
		if s.hits < s.misses/4 {
			t.Errorf("%d hits and %d misses", s.hits, s.misses)
		}
		must(t, client.Close())
		if t.Failed() {
			t.Fatalf("seed %d, %+v:\n%v", seed, spec, teller.Log)
		}
	}
}

func (s *story) key() string { return s.prefix + fmt.Sprint(s.rnd.IntN(30)) }

func (s *story) command() {
	s.t.Helper()
	key, ctx := s.key(), s.t.Context()
	s.n++
	value := fmt.Sprint("v", s.n)
	switch s.rnd.IntN(8) {
	case 0, 1:
		must(s.t, s.c.Set(ctx, key, value, 0).Err())
		s.want[key] = value
	case 2:
		must(s.t, s.c.Del(ctx, key).Err())
		delete(s.want, key)
	case 3:
		missed := s.get(key) == nil
		set, err := s.c.SetNX(ctx, key, value, 0).Result()
		if err != nil && !errors.Is(err, redis.Nil) || set != missed {
			s.t.Errorf("%s: SetNX after missed=%v: %v, %v", key, missed, set, err)
		}
		if set {
			s.want[key] = value
		}
	case 4:
		keys := make([]string, 10)
		for i := range keys {
			keys[i] = s.key()
		}
		all, err := s.c.MGet(ctx, keys...).Result()
		must(s.t, err)
		for i, v := range all {
			s.check(keys[i], v)
		}
	default:
		s.get(key)
	}
}

func (s *story) get(key string) any {
	s.t.Helper()
	v, err := s.c.Get(s.t.Context(), key).Result()
	if errors.Is(err, redis.Nil) {
		s.check(key, nil)
		return nil
	}
	must(s.t, err)
	s.check(key, v)
	return v
}

func (s *story) check(key string, v any) {
	s.t.Helper()
	want, has := s.want[key]
	switch {
	case v == nil && has:
		s.misses++
	case v == nil:
	case v != want:
		s.t.Errorf("%s is %q, not %q", key, v, want)
	default:
		s.hits++
	}
}
