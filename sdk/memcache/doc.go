// Package memcache puts the SDK under bradfitz/gomemcache: which server has a key
// is answered by the topology.
//
// Two ways:
//
//   - [Selector] is a memcache.ServerSelector, for programs that make their own
//     memcache.Client: memcache.NewFromSelector(shardmemcache.NewSelector(client)).
//     That one line is all that changes.
//   - [Client] has the methods of memcache.Client and a pool for each node, which it
//     warms up before the first use, caps, renews by age and by number of requests,
//     and closes when the node has left.
//
// # Law
//
// A key goes where sdk.Client.Route says; one call works on one snapshot of the
// topology. At most Config.MaxConns connections a node are open at any time. A
// connection is never given up within a request. GetMulti asks every node once, all
// at the same time.
//
// # Cost
//
// Over memcache.Client: one lookup (package placement) and about 150 ns for the
// pool and its cap; a round trip to memcached is at least 20 us.
//
// # Source
//
// gomemcache's ServerSelector; proxies of memcached (twemproxy's server_connections,
// mcrouter's pools) for capped, long-lived connections a server.
//
// # What it does not do
//
// It does not retry, since gomemcache cannot tell what was done. It checks no health:
// a node that is published as down is passed over (sdk.Route.Detour), one that fails
// is not.
package memcache
