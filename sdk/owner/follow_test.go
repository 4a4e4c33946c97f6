package owner_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/owner"
	"github.com/shardd/shardd/sdk/owner/memlease"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// follower returns an owner that follows by a source of the test's.
func follower(t *testing.T, src sdk.Source, store *memlease.Store, cfg owner.Config) *owner.Owner {
	t.Helper()
	client, err := sdk.New(src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	o, err := owner.New(client, store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// few returns a plane of few slots, whose versions are quickly made.
func few(t *testing.T, ids ...string) *shardtest.Plane {
	d := topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots, SlotCount: 64}}
	for _, id := range ids {
		d.Nodes = append(d.Nodes, topology.Node{ID: id, Weight: 1})
	}
	return shardtest.NewFrom(t, d)
}

// TestLagsByMany: a node that does not follow for many versions holds up its own keys
// and no others, however many those are.
func TestLagsByMany(t *testing.T) { synctest.Test(t, testLagsByMany) }

func testLagsByMany(t *testing.T) {
	plane, store := few(t, "a", "b", "c"), memlease.New()
	plane.AssignAll(map[string]string{"ka": "a", "kb": "b", "kc": "c"})
	behind := &slow{Plane: plane}
	b := follower(t, behind, store, owner.Config{ID: "b"})
	owners := map[string]*owner.Owner{"a": start(t, plane, store, owner.Config{ID: "a"}), "c": start(t, plane, store, owner.Config{ID: "c"})}
	time.Sleep(time.Second)
	behind.skipping(true)
	for i := range 40 {
		to := []string{"a", "c"}[i%2]
		plane.Assign("moving", to)
		time.Sleep(time.Second)
		fence(t, owners["a"], "ka")
		fence(t, owners["c"], "kc")
		fence(t, owners[to], "moving")
	}
	fence(t, b, "kb")
}

// TestLostInTime: who loses its lease is told while the store still counts it, so that
// nobody acquires meanwhile.
func TestLostInTime(t *testing.T) { synctest.Test(t, testLostInTime) }

func testLostInTime(t *testing.T) {
	plane, store := shardtest.New(t, "a", "b"), memlease.New()
	plane.Assign("k", "a")
	var mu sync.Mutex
	var said []string
	say := func(what string) func(owner.Transfer) {
		return func(tr owner.Transfer) {
			time.Sleep(500 * time.Millisecond) // to write what is not written
			mu.Lock()
			defer mu.Unlock()
			if tr.Has("k") {
				said = append(said, what)
			}
		}
	}
	behind := &slow{Plane: plane}
	follower(t, behind, store, owner.Config{ID: "a", OnLost: say("a lost"), OnAcquired: say("a acquired")})
	start(t, plane, store, owner.Config{ID: "b", OnLost: say("b lost"), OnAcquired: say("b acquired")})
	for i := range 10 {
		behind.skipping(false)
		store.Away("a", false)
		plane.Assign("k", "a")
		time.Sleep(time.Minute + time.Duration(i)*777*time.Millisecond)
		behind.skipping(true) // it does not know that k is to go
		store.Away("a", true)
		plane.Assign("k", "b")
		time.Sleep(time.Minute)
	}
	mu.Lock()
	defer mu.Unlock()
	want := slices.Repeat([]string{"a acquired", "a lost", "b acquired", "b lost"}, 10)
	if got := fmt.Sprint(said); got != fmt.Sprint(want[:len(want)-1]) {
		t.Error(got)
	}
}

// TestChurn: while versions come faster than some nodes can follow, keys that no
// version moves are served all the time, and acquired once.
func TestChurn(t *testing.T) { synctest.Test(t, testChurn) }

func testChurn(t *testing.T) {
	plane, store := few(t, "a", "b", "c"), memlease.New()
	plane.AssignAll(map[string]string{"ka": "a", "kb": "b", "kc": "c"})
	owners := map[string]*owner.Owner{}
	var mu sync.Mutex
	acquired := map[string]int{}
	for i, id := range []string{"a", "b", "c"} {
		count := func(d int) func(owner.Transfer) {
			return func(tr owner.Transfer) {
				mu.Lock()
				defer mu.Unlock()
				if tr.Has("k" + id) {
					acquired[id] += d
				}
			}
		}
		src := &late{plane, time.Duration(i) * 70 * time.Millisecond}
		owners[id] = follower(t, src, store, owner.Config{ID: id, OnAcquired: count(1), OnLost: count(100)})
	}
	time.Sleep(time.Second)
	for i := range 200 {
		plane.Assign("moving", []string{"a", "b", "c"}[i%3])
		time.Sleep(13 * time.Millisecond)
		for id, o := range owners {
			if _, err := o.Owns("k" + id); err != nil {
				t.Fatalf("version %d: k%s: %v", i, id, err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if acquired["a"] != 1 || acquired["b"] != 1 || acquired["c"] != 1 {
		t.Errorf("times acquired, and 100 times lost: %v", acquired)
	}
}

// late hands versions on after a lag, the newest of those that have come.
type late struct {
	*shardtest.Plane
	lag time.Duration
}

func (l *late) Watch(ctx context.Context, have topology.Ref, fn func(*topology.Topology) error) error {
	came := make(chan *topology.Topology, 1000)
	var handing sync.WaitGroup
	defer handing.Wait()
	handing.Go(func() {
		for {
			var t *topology.Topology
			select {
			case <-ctx.Done():
				return
			case t = <-came:
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(l.lag):
			}
			for len(came) > 0 {
				t = <-came
			}
			_ = fn(t)
		}
	})
	return l.Plane.Watch(ctx, have, func(t *topology.Topology) error {
		if t != nil {
			came <- t
		}
		return nil
	})
}

// TestHashChange: what a node serves still by an older version is known by the key hash
// of that version.
func TestHashChange(t *testing.T) { synctest.Test(t, testHashChange) }

func testHashChange(t *testing.T) {
	plane, store := shardtest.New(t, "a", "b", "c"), memlease.New()
	behind := &slow{Plane: plane}
	owners := []*owner.Owner{start(t, plane, store, owner.Config{ID: "a"}), follower(t, behind, store, owner.Config{ID: "b"}), start(t, plane, store, owner.Config{ID: "c"})}
	time.Sleep(time.Second)
	behind.skipping(true)
	plane.Publish(func(d *topology.Declared) { d.Spec.KeyHash, d.Spec.HashTag = topology.CRC16, "" })
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		for i := range 500 {
			key, n := fmt.Sprint("k", i), 0
			for _, o := range owners {
				if _, err := o.Owns(key); err == nil {
					n++
				}
			}
			if n > 1 {
				t.Fatalf("%s has %d owners", key, n)
			}
		}
	}
}
