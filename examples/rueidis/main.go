// Command rueidis keeps a cache on plain Redis servers through rueidis while the servers
// change. A fourth server takes its keys over in steps: until it has them, what it misses
// is read from where it was, and copied. Then a server leaves, its keys are written
// elsewhere, and it comes back with all that it had: none of that is served.
//
//	go run ./examples/rueidis
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardd/shardd/examples/internal/redisfleet"
	shardrueidis "github.com/shardd/shardd/sdk/rueidis"
	"github.com/shardd/shardd/topology"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := run(ctx, os.Stdout, 20_000, 3*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "rueidis:", err)
		os.Exit(1)
	}
}

// result is what was seen.
type result struct {
	reads        int // while keys went over
	missed       int // of those
	missedAfter  int // when all had gone over
	copied       uint64
	stale, fence int // old values that were served, and that were refused
}

func run(ctx context.Context, out io.Writer, keys int, ramp time.Duration) (r result, err error) {
	fleet, stop, err := redisfleet.Start(ctx, 4, 3)
	if err != nil {
		return r, err
	}
	defer stop()
	rdb := shardrueidis.New(fleet.Client, shardrueidis.Config{MaxConns: 8})
	defer rdb.Close()
	cache := rdb.Cache(shardrueidis.CacheConfig{ReadThrough: true, Fence: true})
	names, err := store(ctx, cache, keys)
	if err != nil {
		return r, err
	}
	if err := sizes(ctx, out, rdb); err != nil {
		return r, err
	}
	if err := join(ctx, fleet, cache, names, ramp, &r); err != nil {
		return r, err
	}
	fmt.Fprintf(out, "redis-4 joined in steps: %d of %d reads missed meanwhile, %d of %d afterwards; %d values were copied to it\n",
		r.missed, r.reads, r.missedAfter, len(names), r.copied)
	if err := comeBack(ctx, fleet, cache, names, &r); err != nil {
		return r, err
	}
	fmt.Fprintf(out, "redis-1 left and came back: %d old values served, %d refused\n", r.stale, r.fence)
	return r, nil
}

// store writes the keys, each node its part in one pipeline.
func store(ctx context.Context, cache *shardrueidis.Cache, keys int) ([]string, error) {
	values := make(map[string]string, keys)
	for i := range keys {
		values[fmt.Sprintf("user:%d", i)] = "old"
	}
	return slices.Sorted(maps.Keys(values)), cache.MSet(ctx, values, time.Hour)
}

func sizes(ctx context.Context, out io.Writer, rdb *shardrueidis.Client) error {
	return rdb.ForEachNode(func(n topology.Node, r rueidis.Client) error {
		size, err := r.Do(ctx, r.B().Dbsize().Build()).AsInt64()
		fmt.Fprintf(out, "%s has %d keys\n", n.ID, size)
		return err
	})
}

// join adds the fourth server in steps, and reads all keys again and again until it has
// its share.
func join(ctx context.Context, fleet *redisfleet.Fleet, cache *shardrueidis.Cache, names []string, ramp time.Duration, r *result) error {
	if _, err := fleet.Plane.RampNode(ctx, fleet.Nodes[3], ramp); err != nil {
		return err
	}
	moving := func(t *topology.Topology) bool { return t.Transition() != nil }
	if err := fleet.Wait(ctx, moving); err != nil {
		return err
	}
	for {
		found, err := cache.MGet(ctx, names...)
		if err != nil {
			return err
		}
		if !moving(fleet.Client.Topology()) { // all keys have gone over
			break
		}
		r.reads += len(names)
		r.missed += len(names) - len(found)
	}
	found, err := cache.MGet(ctx, names...)
	r.missedAfter, r.copied = len(names)-len(found), cache.Stats().Copied
	return err
}

// comeBack has the first server leave, writes all keys, and has it come back.
func comeBack(ctx context.Context, fleet *redisfleet.Fleet, cache *shardrueidis.Cache, names []string, r *result) error {
	edit, err := fleet.Plane.Declare(ctx, fleet.Nodes[1:])
	if err != nil {
		return err
	}
	if err := fleet.Wait(ctx, redisfleet.Version(edit.Version)); err != nil {
		return err
	}
	values := make(map[string]string, len(names))
	for _, name := range names {
		values[name] = "new"
	}
	if err := cache.MSet(ctx, values, time.Hour); err != nil {
		return err
	}
	if edit, err = fleet.Plane.Declare(ctx, fleet.Nodes); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, redisfleet.Version(edit.Version)); err != nil {
		return err
	}
	before := cache.Stats().Stale
	found, err := cache.MGet(ctx, names...)
	for _, value := range found {
		if value != "new" {
			r.stale++
		}
	}
	r.fence = int(cache.Stats().Stale - before)
	return err
}
