package redis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	shardredis "github.com/shardd/shardd/sdk/redis"
)

func follow() (*sdk.Client, error) {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		return nil, err
	}
	return sdk.New(source)
}

// A program that uses redis.Client changes the line that makes it.
func ExampleClient() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardredis.New(client, shardredis.Config{MaxConns: 32}) // was: redis.NewClient(...)
	defer rdb.Close()
	err = rdb.MSet(context.Background(), "user:1", "Ada", "user:2", "Grace").Err() // split by node
	fmt.Println(err)                                                               // there is no shardd here
	// Output: sdk: no topology yet; call WaitReady first
}

func ExampleRing() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ring := shardredis.NewRing(client, &redis.RingOptions{PoolSize: 20}) // was: redis.NewRing(...)
	defer ring.Close()
	fmt.Println(ring.Len(), "shards: no topology yet")
	// Output: 0 shards: no topology yet
}

func ExampleCluster() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardredis.NewCluster(client, &redis.ClusterOptions{MaxRedirects: 1}) // was: redis.NewClusterClient(...)
	defer rdb.Close()
	fmt.Println(rdb.Get(context.Background(), "user:1").Err())
	// Output: sdk: no topology yet; call WaitReady first
}

func ExampleClusterSlots() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: shardredis.ClusterSlots(client)})
	defer rdb.Close()
	// Call rdb.ReloadState after changes, or use NewCluster, which does.
	// Output:
}

func ExampleNewConsistentHash() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ring := redis.NewRing(&redis.RingOptions{
		Addrs:             map[string]string{"cache-a": "10.0.0.1:6379", "cache-b": "10.0.0.2:6379"}, // by node id
		NewConsistentHash: shardredis.NewConsistentHash(client),
	})
	defer ring.Close()
	// Output:
}

// At most 32 connections a node, pipelines included, none older than ten minutes or with
// more than a million requests.
func ExampleConfig() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardredis.New(client, shardredis.Config{
		Options:     &redis.Options{ClientName: "web"},
		MaxConns:    32,
		WarmUp:      4,
		MaxAge:      10 * time.Minute,
		MaxRequests: 1_000_000,
	})
	defer rdb.Close()
	fmt.Println(rdb.Get(context.Background(), "user:1").Err()) // there is no shardd here
	// Output: sdk: no topology yet; call WaitReady first
}

// A cache whose keys go over to other nodes while it is in use, and whose nodes may leave
// and come back with what they had.
func ExampleCache() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardredis.New(client, shardredis.Config{})
	defer rdb.Close()
	cache := rdb.Cache(shardredis.CacheConfig{ReadThrough: true, Fence: true})
	name, err := cache.Get(context.Background(), "user:1").Result()
	switch {
	case errors.Is(err, redis.Nil):
		fmt.Println("a miss: ask the database, and cache.Set")
	case err != nil:
		fmt.Println(err) // there is no shardd here
	default:
		fmt.Println(name)
	}
	// Output: sdk: no topology yet; call WaitReady first
}

// With PassUnstamped a cache that had no fence keeps its values while it gets one.
func ExampleCacheConfig() {
	cfg := shardredis.CacheConfig{Fence: true, PassUnstamped: true}
	fmt.Println(cfg.Fence, cfg.PassUnstamped, cfg.ReadThrough)
	// Output: true true false
}

func ExampleCacheStats() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardredis.New(client, shardredis.Config{})
	defer rdb.Close()
	s := rdb.Cache(shardredis.CacheConfig{ReadThrough: true}).Stats()
	fmt.Printf("%d found at the other owner, %d of them copied\n", s.Through, s.Copied)
	// Output: 0 found at the other owner, 0 of them copied
}

func ExampleCachePipe() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardredis.New(client, shardredis.Config{})
	defer rdb.Close()
	cache := rdb.Cache(shardredis.CacheConfig{ReadThrough: true})
	var ada *redis.StringCmd
	err = cache.Pipelined(context.Background(), func(p *shardredis.CachePipe) error { // each node its part
		p.Set("user:1", "Ada", time.Hour)
		p.Set("user:2", "Grace", time.Hour)
		ada = p.Get("user:1")
		return nil
	})
	fmt.Println(err, ada.Val()) // there is no shardd here
	// Output: sdk: no topology yet; call WaitReady first
}
