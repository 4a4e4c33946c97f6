// Command redis shards go-redis over three plain Redis servers: typed commands, commands
// of many keys, and a pipeline; then a fourth server joins, and what it gets is what the
// published movement says.
//
//	go run ./examples/redis
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/examples/internal/redisfleet"
	shardredis "github.com/shardd/shardd/sdk/redis"
	"github.com/shardd/shardd/topology"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, 20_000); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, keys int) error {
	fleet, stop, err := redisfleet.Start(ctx, 4, 3)
	if err != nil {
		return err
	}
	defer stop()
	rdb := shardredis.New(fleet.Client, shardredis.Config{MaxConns: 8}) // was: redis.NewClient(...)
	defer rdb.Close()
	names, err := store(ctx, rdb, keys)
	if err != nil {
		return err
	}
	if err := sizes(ctx, out, rdb); err != nil {
		return err
	}
	edit, err := fleet.Plane.AddNode(ctx, fleet.Nodes[3])
	if err != nil {
		return err
	}
	if err := fleet.Wait(ctx, redisfleet.Version(edit.Version)); err != nil {
		return err
	}
	values, err := rdb.MGet(ctx, names...).Result() // one MGET to each of the four
	if err != nil {
		return err
	}
	missed := 0
	for _, v := range values {
		if v == nil {
			missed++
		}
	}
	fmt.Fprintf(out, "redis-4 joined: %.1f %% of the keys moved, %.1f %% was published\n", 100*float64(missed)/float64(keys), 100*edit.Movement.Ratio)
	return nil
}

// store writes the keys, a thousand in a pipeline.
func store(ctx context.Context, rdb *shardredis.Client, keys int) (names []string, err error) {
	for i := range keys {
		names = append(names, fmt.Sprintf("user:%d", i))
	}
	for i := 0; i < keys; i += 1000 {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range names[i:min(i+1000, keys)] {
				p.Set(ctx, name, "v", 0)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func sizes(ctx context.Context, out io.Writer, rdb *shardredis.Client) error {
	return rdb.ForEachNode(func(n topology.Node, r *redis.Client) error {
		size, err := r.DBSize(ctx).Result()
		fmt.Fprintf(out, "%s has %d keys\n", n.ID, size)
		return err
	})
}
