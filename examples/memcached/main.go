// Command memcached shows what moving keys costs a cache, on real servers: four
// memcached processes, of which three are in use. 100,000 keys are stored
// through bradfitz/gomemcache, with the SDK choosing the server; the fourth
// server is added through shardd's API; the keys are read again. Keys that
// moved are missed, all others hit: the hit rate is 1 - movement.
//
//	go run ./examples/memcached
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/examples/internal/devserver"
	"github.com/shardd/shardd/internal/realserver"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	shardmemcache "github.com/shardd/shardd/sdk/memcache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := run(ctx, os.Stderr, 100_000)
	if err == nil {
		err = r.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memcached:", err)
		os.Exit(1)
	}
}

// result is what was seen.
type result struct {
	keys     int
	hits     int
	movement float64 // share of the key space, as published with the version
}

func (r result) hitRate() float64 { return float64(r.hits) / float64(r.keys) }

// print fails if the cache and the published movement disagree by more than half
// a percentage point.
func (r result) print(w io.Writer) error {
	fmt.Fprintf(w, "hit rate      %.2f %% (%d of %d keys)\n", 100*r.hitRate(), r.hits, r.keys)
	fmt.Fprintf(w, "1 - movement  %.2f %%\n", 100*(1-r.movement))
	if d := r.hitRate() - (1 - r.movement); math.Abs(d) > 0.005 {
		return fmt.Errorf("they differ by %.2f points, more than 0.5", 100*math.Abs(d))
	}
	return nil
}

func run(ctx context.Context, talk io.Writer, keys int) (result, error) {
	running, stop, err := realserver.StartN(ctx, realserver.Memcached(), 4)
	if err != nil {
		return result{}, err
	}
	defer stop()
	var servers []string
	for _, s := range running {
		servers = append(servers, s.Addr)
	}
	url, stopShardd, err := devserver.Start(ctx)
	if err != nil {
		return result{}, err
	}
	defer stopShardd()
	plane := devserver.Plane{URL: url, Cluster: "cache"}
	// Ids are names for life and all that placement hashes; the ports of this
	// run are only where the nodes are just now.
	nodes := make([]devserver.Node, len(servers))
	for i, addr := range servers {
		nodes[i] = devserver.Node{ID: fmt.Sprintf("cache-%d", i+1), Addr: addr}
	}
	if _, err := plane.Declare(ctx, nodes[:3]); err != nil {
		return result{}, err
	}

	source, err := httpsource.New("cache", []string{url})
	if err != nil {
		return result{}, err
	}
	client, err := sdk.New(source)
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.WaitReady(ready); err != nil {
		return result{}, err
	}
	cache := memcache.NewFromSelector(shardmemcache.NewSelector(client))
	cache.MaxIdleConns = workers
	defer cache.Close()

	fmt.Fprintf(talk, "storing %d keys on %v\n", keys, servers[:3])
	if err := batches(ctx, keys, func(batch []string) error { return store(cache, batch) }); err != nil {
		return result{}, err
	}
	r := result{keys: keys}
	fmt.Fprintf(talk, "adding %s\n", servers[3])
	edit, err := plane.AddNode(ctx, nodes[3])
	if err != nil {
		return r, err
	}
	r.movement = edit.Movement.Ratio
	if err := follow(ctx, client, edit.Version); err != nil {
		return r, err
	}
	fmt.Fprintf(talk, "reading them again by version %s\n", edit.Version)
	var hits atomic.Int64
	err = batches(ctx, keys, func(batch []string) error {
		found, err := cache.GetMulti(batch)
		for key, item := range found {
			if string(item.Value) != key {
				return fmt.Errorf("key %s has the value of another: %q", key, item.Value)
			}
		}
		hits.Add(int64(len(found)))
		return err
	})
	r.hits = int(hits.Load())
	return r, err
}

func store(cache *memcache.Client, keys []string) error {
	for _, key := range keys {
		if err := cache.Set(&memcache.Item{Key: key, Value: []byte(key)}); err != nil {
			return err
		}
	}
	return nil
}

// follow waits until lookups go by the version.
func follow(ctx context.Context, client *sdk.Client, version string) error {
	arrived := make(chan struct{})
	cancel := client.OnChange(func(c sdk.Change) {
		if c.To.Version().String() == version {
			close(arrived)
		}
	})
	defer cancel()
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.NewTimer(10 * time.Second).C:
		return fmt.Errorf("version %s has not arrived", version)
	}
}

const (
	workers   = 8
	batchSize = 200
)

// batches calls fn with all keys, so many at a time, from some goroutines at
// once, and returns the first error.
func batches(ctx context.Context, keys int, fn func(batch []string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				first := int(next.Add(batchSize)) - batchSize
				if first >= keys {
					return
				}
				var batch []string
				for i := first; i < min(first+batchSize, keys); i++ {
					batch = append(batch, fmt.Sprintf("user:%d", i))
				}
				if err := fn(batch); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
