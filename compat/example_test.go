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

var three = []topology.Node{
	{ID: "a", Addr: "10.0.1.1:11211", Weight: 1, Position: 1},
	{ID: "b", Addr: "10.0.1.2:11211", Weight: 1, Position: 2},
	{ID: "c", Addr: "10.0.1.3:11211", Weight: 1, Position: 3},
}

// gomemcache's ServerList: a hash modulo the number of servers. Which server a
// key is on today, before anything is changed.
func ExampleModulo() {
	m, err := compat.New(topology.Foreign{Mode: topology.ModeGomemcache}, three)
	if err != nil {
		fmt.Println(err)
		return
	}
	table := m.Modulo
	fmt.Println(table.Size(), three[table.Locate(m.Hash.Sum("user:17"))].ID)
	// Output: 3 c
}

// Jump over a plain list: the order of the list is the mapping, so only the last
// node can leave without moving the keys of others.
func ExampleJump() {
	m, err := compat.New(topology.Foreign{Mode: topology.ModeJump}, three)
	if err != nil {
		fmt.Println(err)
		return
	}
	jump := m.Jump
	fmt.Println(jump.Buckets(), three[jump.Locate(m.Hash.Sum("user:17"))].ID)
	// Output: [0 1 2] c
}

// go-redis' Ring is a rendezvous: each node has a score for the key.
func ExampleScore() {
	m, err := compat.New(topology.Foreign{Mode: topology.ModeGoRedisRing}, three)
	if err != nil {
		fmt.Println(err)
		return
	}
	score := m.Score
	for _, i := range score.AppendReplicas(nil, m.Hash.Sum("user:17"), 3) {
		fmt.Print(three[i].ID, " ")
	}
	// Output: a c b
}

// Some systems, such as Caddy since 2.10, hash key and node together: such a
// mapping takes keys, no hashes, and serves for planning only.
func ExampleKeyed() {
	m, err := compat.New(topology.Foreign{Mode: topology.ModeCaddy, Distribution: "2.10"}, three)
	if err != nil {
		fmt.Println(err)
		return
	}
	keyed := m.Keyed
	fmt.Println(three[keyed.LocateKey("user:17")].ID)
	// Output: b
}
