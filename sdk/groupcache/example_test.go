package groupcache_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shardd/shardd/sdk"
	shardgroupcache "github.com/shardd/shardd/sdk/groupcache"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func Example() {
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
	peers := shardgroupcache.New(client, shardgroupcache.Config{Self: "cache-a"})
	defer peers.Close()
	// groupcache.RegisterPeerPicker(func() groupcache.PeerPicker { return peers })
	// http.Handle("/_groupcache/", peers)
	_, remote := peers.PickPeer("user:1")
	fmt.Println(remote) // there is no shardd here: load it locally
	// Output: false
}

func ExamplePeers() {
	plane := shardtest.NewFrom(exampleTB{}, topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots}, Nodes: []topology.Node{
		{ID: "cache-a", Addr: "127.0.0.1:8001", Weight: 1}, {ID: "cache-b", Addr: "127.0.0.1:8002", Weight: 1}}})
	plane.Assign("user:1", "cache-a")
	plane.Assign("user:2", "cache-b")
	client, err := sdk.New(plane)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	peers := shardgroupcache.New(client, shardgroupcache.Config{Self: "cache-a"})
	defer peers.Close()
	if err := client.WaitReady(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"user:1", "user:2"} {
		_, remote := peers.PickPeer(key)
		fmt.Println(key, "is loaded by a peer:", remote)
	}
	// Output:
	// user:1 is loaded by a peer: false
	// user:2 is loaded by a peer: true
}

// Four connections to each peer from the start, sixteen at most, and none older than ten
// minutes.
func ExampleConfig() {
	cfg := shardgroupcache.Config{Self: "cache-a", WarmUp: 4, MaxConns: 16, MaxAge: 10 * time.Minute, Timeout: time.Second}
	fmt.Println(cfg.Self, cfg.MaxConns)
	// Output: cache-a 16
}

type exampleTB struct{}

func (exampleTB) Helper()                   {}
func (exampleTB) Cleanup(func())            {}
func (exampleTB) Fatalf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
