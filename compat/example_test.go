package compat_test

import (
	"fmt"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/topology"
)

// The node that PHP's memcached extension takes with OPT_LIBKETAMA_COMPATIBLE.
func ExampleNew() {
	nodes := []topology.Node{
		{ID: "a", Addr: "10.0.1.1:11211", Weight: 1, Position: 1},
		{ID: "b", Addr: "10.0.1.2:11211", Weight: 2, Position: 2},
	}
	m, err := compat.New(topology.Foreign{Mode: topology.ModeKetama}, nodes)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(nodes[m.LocateKey("user:17")].ID, m.Hash, m.Ring.NumPoints())
	// Output: b md5 316
}

// The moves of "redis-cli --cluster rebalance" when an empty master joins three.
func ExampleRedisRebalance() {
	_, moves := compat.RedisRebalance(compat.RedisCreate(3), []float64{1, 1, 1, 1}, compat.RedisOptions{Threshold: 2, UseEmpty: true})
	for _, m := range moves {
		fmt.Printf("%d slots from %d to %d\n", m.Count, m.From, m.To)
	}
	// Output:
	// 1366 slots from 1 to 3
	// 1365 slots from 2 to 3
	// 1365 slots from 0 to 3
}
