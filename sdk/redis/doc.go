// Package redis puts the SDK under redis/go-redis: which server has a key is
// answered by the topology.
//
// Three ways, from the least change to the most:
//
//   - [NewConsistentHash] is RingOptions.NewConsistentHash, and [NewRing] a
//     redis.Ring whose shards follow the topology.
//   - [ClusterSlots] is ClusterOptions.ClusterSlots, and [NewCluster] a
//     redis.ClusterClient whose slots do. The nodes are plain Redis servers; the
//     topology has Redis Cluster's placement: 16384 slots by CRC16.
//   - [Client] shards over plain Redis servers by any algorithm. It is a
//     redis.Client with all its typed commands, pipelines and transactions, and
//     splits commands of many keys by node. Its [Cache] is for strings that are
//     cached: it reads through to a key's other owner while its owner changes in
//     steps, and takes what a server kept while it was away for misses.
//
// # Law
//
// A key goes where sdk.Client.Route says; one command or pipeline works on one
// snapshot of the topology where it can be had in one piece. A command whose keys
// are on several nodes is either split and its answers joined (MGET, MSET, DEL,
// UNLINK, EXISTS, TOUCH) or refused with ErrCrossNode; none is done by half at one
// node only. Commands to one node keep their order; between nodes there is none. At
// most Config.MaxConns connections a node are open, and none is given up within a
// command. What a Cache promises stands there.
//
// # Cost
//
// Over redis.Client: one lookup, a map access and two atomic operations for the
// pool. A command that is split costs a goroutine for each node.
//
// # Source
//
// go-redis' own hooks for other placements: its documentation of ClusterSlots names
// an external service as their use. Leases for copies: "Scaling Memcache at Facebook",
// NSDI 2013, section 3.2.1.
//
// # What it does not do
//
// A command that is split is not atomic, as MSET on one server is. Publish and
// subscribe have no key: use Client.Node. It moves no data, but for what a Cache copies
// when it is read; see package migrate.
package redis
