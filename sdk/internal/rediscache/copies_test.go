package rediscache

import (
	"testing"

	"github.com/shardd/shardd/sdk"
)

// scene carries out operations command by command, in an order that the test says.
type scene struct {
	t   *testing.T
	s   servers
	key string
}

func newScene(t *testing.T, key string) *scene {
	return &scene{t, servers{"a": {}, "b": {}, "c": {}}, key}
}

// actor is an operation under way.
type actor struct {
	c    *client
	over bool
}

func (sc *scene) begin(side *sdk.Client, fn func(*Cache)) *actor {
	a := &actor{c: &client{turn: make(chan struct{}), done: make(chan struct{}), s: sc.s, bars: map[string]bar{}}}
	cache := New(side, a.c, Config{ReadThrough: true})
	go func() {
		defer close(a.c.done)
		fn(cache)
	}()
	sc.await(a)
	return a
}

func (sc *scene) await(a *actor) {
	if _, more := <-a.c.done; !more {
		a.over = true
	}
}

// carry carries out so many commands more, or what there is.
func (sc *scene) carry(a *actor, n int) {
	for ; n > 0 && !a.over; n-- {
		a.c.turn <- struct{}{}
		sc.await(a)
	}
}

const all = 100

func (sc *scene) do(side *sdk.Client, kind Kind, value string) *Op {
	op := &Op{Kind: kind, Key: sc.key, Value: value}
	sc.carry(sc.begin(side, func(c *Cache) { c.Do(sc.t.Context(), op) }), all)
	return op
}

func (sc *scene) reading(side *sdk.Client) *actor {
	return sc.begin(side, func(c *Cache) { c.Do(sc.t.Context(), &Op{Kind: Get, Key: sc.key}) })
}

// TestCopiesBothWays: readers that are a step apart do not hand a value that is being
// deleted from the owner to the other one and back, past the deletions.
func TestCopiesBothWays(t *testing.T) {
	key, behind, ahead, _ := sides(t)
	for _, kind := range []Kind{Del, Set} {
		sc := newScene(t, key)
		sc.do(ahead, Set, "old")
		op := &Op{Kind: kind, Key: key, Value: "new"}
		writer := sc.begin(ahead, func(c *Cache) { c.Do(t.Context(), op) })
		clear := func() { // what ended leases of operations long ago
			for _, m := range sc.s {
				delete(m, lease(key))
			}
		}
		clear()
		sc.carry(writer, 2) // deleted at a
		one := sc.reading(behind)
		sc.carry(one, 4)    // misses at a, reads at c
		sc.carry(writer, 2) // written at c
		if kind == Set {
			delete(sc.s["c"], key) // an eviction
		}
		sc.carry(one, 1) // copies to a
		two := sc.reading(ahead)
		sc.carry(two, 4)      // misses at c, reads at a
		sc.carry(writer, all) // deleted at a again
		sc.carry(one, all)
		sc.carry(two, all) // copies to c
		if got := sc.do(ahead, Get, ""); op.Err != nil || got.Found && got.Value == "old" {
			t.Errorf("kind %d, %v: %q", kind, op.Err, got.Value)
		}
	}
}

// TestWritesEndLeases: what is written and soon gone again lets no reader put back what was
// there before.
func TestWritesEndLeases(t *testing.T) {
	key, _, ahead, over := sides(t)
	setNX := func(c *Cache) {
		if ok, err := c.SetNX(t.Context(), key, "new", 0); !ok || err != nil {
			t.Error(ok, err)
		}
	}
	for name, write := range map[string]func(*scene){
		"set after all steps":   func(sc *scene) { sc.do(over, Set, "new") },
		"setnx after all steps": func(sc *scene) { sc.carry(sc.begin(over, setNX), all) },
		"setnx": func(sc *scene) {
			delete(sc.s["a"], key) // an eviction
			sc.carry(sc.begin(ahead, setNX), all)
		},
	} {
		sc := newScene(t, key)
		sc.s["a"][key] = "old"
		one := sc.reading(ahead)
		sc.carry(one, 4) // misses at c, reads at a
		write(sc)
		delete(sc.s["c"], key) // an eviction
		sc.carry(one, all)     // copies to c
		if got := sc.do(over, Get, ""); got.Found {
			t.Errorf("%s: %q", name, got.Value)
		}
	}
}

// TestAddOverStale: what counts as a miss does not keep SetNX from storing, whatever it is,
// and what another client stores meanwhile does.
func TestAddOverStale(t *testing.T) {
	key, _, _, over := sides(t)
	for _, stale := range []string{"", "\xf5", "\xf5\x80", "\xf5\x01\x00", "\xf5\x00\x00", "plain", "a plain value that is longer than any stamp"} {
		for _, raced := range []bool{false, true} {
			sc := newScene(t, key)
			sc.s["c"][key] = stale
			stored := false
			a := &actor{c: &client{turn: make(chan struct{}), done: make(chan struct{}), s: sc.s}}
			go func() {
				defer close(a.c.done)
				stored, _ = New(over, a.c, Config{Fence: true}).SetNX(t.Context(), key, "new", 0)
			}()
			sc.await(a)
			sc.carry(a, 1)
			if raced {
				r, _ := over.Route(key)
				sc.s["c"][key] = stamped(r.FirstSince(), "other")
			}
			sc.carry(a, all)
			if stored == raced {
				t.Errorf("over %q, raced=%v: stored=%v", stale, raced, stored)
			}
		}
	}
}
