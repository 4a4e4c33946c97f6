package memcache_test

import (
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	shardmemcache "github.com/shardd/shardd/sdk/memcache"
)

// A program that uses gomemcache changes the line that makes its client.
func ExampleSelector() {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	cache := memcache.NewFromSelector(shardmemcache.NewSelector(client)) // was: memcache.New("10.0.0.1:11211", ...)
	defer cache.Close()
	_, err = cache.Get("user:1") // there is no shardd here
	fmt.Println(err)
	// Output: sdk: no topology yet; call WaitReady first
}

// With pools of its own it also changes the type: the methods are the same.
func ExampleClient() {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	cache := shardmemcache.New(client, shardmemcache.Config{MaxConns: 32, WarmUp: 4})
	defer cache.Close()
	err = cache.Set(&memcache.Item{Key: "user:1", Value: []byte("Ada")})
	fmt.Println(err)
	// Output: sdk: no topology yet; call WaitReady first
}

// How many connections were replaced before they grew too old, for a metric.
func ExampleStats() {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	cache := shardmemcache.New(client, shardmemcache.Config{MaxAge: 10 * time.Minute, MaxRequests: 100_000})
	defer cache.Close()
	stats := cache.Stats()
	fmt.Println(stats.Renewed)
	// Output: 0
}
