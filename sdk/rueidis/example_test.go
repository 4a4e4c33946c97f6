package rueidis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	shardrueidis "github.com/shardd/shardd/sdk/rueidis"
)

func follow() (*sdk.Client, error) {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		return nil, err
	}
	return sdk.New(source)
}

func Example() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	cache := shardrueidis.New(client, shardrueidis.Config{})
	defer cache.Close()
	err = cache.MSet(context.Background(), map[string]string{"user:1": "Ada"}) // split by node
	fmt.Println(err)                                                           // there is no shardd here
	// Output: sdk: no topology yet; call WaitReady first
}

// rueidis' builder makes the commands; the client finds the node of their keys.
func ExampleClient() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardrueidis.New(client, shardrueidis.Config{})
	defer rdb.Close()
	b, err := rdb.B()
	if err != nil {
		fmt.Println(err) // there is no shardd here
		return
	}
	err = rdb.Do(context.Background(), b.Set().Key("user:1").Value("Ada").Build()).Error()
	fmt.Println(err)
	// Output: sdk: no topology yet; call WaitReady first
}

// At most 16 connections a node, none older than ten minutes.
func ExampleConfig() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardrueidis.New(client, shardrueidis.Config{
		Option:   rueidis.ClientOption{ClientName: "web"},
		MaxConns: 16,
		MaxAge:   10 * time.Minute,
	})
	defer rdb.Close()
	fmt.Println(rdb.Stats().Renewed, "renewals")
	// Output: 0 renewals
}

func ExampleStats() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardrueidis.New(client, shardrueidis.Config{MaxRequests: 1_000_000})
	defer rdb.Close()
	stats := rdb.Stats()
	fmt.Println(stats.Renewed)
	// Output: 0
}

// A cache whose keys go over to other nodes while it is in use.
func ExampleCache() {
	client, err := follow()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	rdb := shardrueidis.New(client, shardrueidis.Config{})
	defer rdb.Close()
	cache := rdb.Cache(shardrueidis.CacheConfig{ReadThrough: true, Fence: true})
	name, err := cache.Get(context.Background(), "user:1")
	switch {
	case rueidis.IsRedisNil(err):
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
	cfg := shardrueidis.CacheConfig{Fence: true, PassUnstamped: true}
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
	rdb := shardrueidis.New(client, shardrueidis.Config{})
	defer rdb.Close()
	s := rdb.Cache(shardrueidis.CacheConfig{ReadThrough: true}).Stats()
	fmt.Printf("%d found at the other owner, %d of them copied\n", s.Through, s.Copied)
	// Output: 0 found at the other owner, 0 of them copied
}
