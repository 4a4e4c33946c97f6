package redis_test

import (
	"context"
	"fmt"

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
