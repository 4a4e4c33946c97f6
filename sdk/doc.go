// Package sdk follows the topology of a cluster and routes keys by it, in the
// process that has the keys: no network hop, no lock and no allocation per key.
//
// A [Client] takes topologies from a [Source] (sdk/etcdsource, sdk/httpsource,
// sdk/filesource), checks them, builds the lookup table away from the lookups,
// and swaps one pointer. [Client.Route] loads that pointer, hashes the key and locates it.
//
// # Law
//
//   - The owner of a key is a function of the topology and the key, the same in
//     every client that holds the same version (package placement).
//   - A client moves only forward along the chain of versions of its own
//     cluster. A topology of another cluster, of a forked history or of an
//     earlier version is refused, reported and kept out: [ErrCluster],
//     [ErrForked], [ErrOlder]. The whole rule is the function admit.
//   - A source that fails, says nothing or sends what cannot be used changes
//     nothing: lookups go on by the last good topology, and [Client.Age] tells
//     how old it is. Only a topology that says so leaves a client without nodes
//     ([ErrNoNodes]), and the next one with nodes mends it.
//   - With a snapshot file ([WithSnapshot]) that holds across restarts, too: a
//     client starts from what the process before held and only goes on from
//     there. [State] says so, and how old it is.
//   - Every call works on one snapshot. Nothing handed out changes later.
//   - A node's load is bounded as package balance/bounded says, along the key's
//     order of preference ([Client.Acquire], [WithBoundedLoad]). A request is released
//     at the very counter that it was taken from; counters outlive versions for
//     nodes that stay, and begin anew for one that left and came back or stands at
//     another address.
//   - Ownership is not health. Requests go round a node that is bad by its own check,
//     as the source tells ([ReportHealth]), or by this process's word
//     ([Client.SetHealth]); see [Client.Overlay]. Who is ejected, has its breaker open or drains gets
//     no requests ([WithResilience]), and no key moves for it.
//   - While owners change in steps each key is with one of its two owners, the same
//     one in all clients of a version; [Route.Other] names the other. With
//     [Route.OwnedSince] a cache can tell what it stored before it lost a key, and with
//     [Route.FirstSince] one that writes each key to one node.
//
// # Cost
//
// Route is one atomic load, the hash and the lookup of the algorithm (package
// placement); see BenchmarkRoute. A new version costs one table build in the
// goroutine of the source; two tables are in memory until the old one is
// collected. A snapshot file is written in a goroutine of its own, at most once a
// second. Acquire and Done add four atomic read-modify-writes to a Route's cost,
// whatever the number of nodes (BenchmarkAcquireRatio); a policy or resilience adds
// the clock, and what the parts cost. Loads, slow starts and departures are looked
// after in a goroutine of their own every 100 ms, from when something asks for it.
//
// # What it does not do
//
// It opens no connection to the nodes, and looks at their health only through a
// probe that it is given (Resilience.Probe) and the outcomes that it is told.
package sdk
