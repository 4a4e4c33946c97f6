// Package etcdkv is the one place that knows how clusters lie in etcd: the keys,
// the records, content-addressed objects in parts, fenced transactions with
// their limits, and the Get-then-Watch loop that everything follows etcd by.
//
// # Layout
//
//	<prefix>/.clusters/<name>                  directory: the cluster's id
//	<prefix>/<name>/meta                       id, epoch, history, format
//	<prefix>/<name>/declared                   generation and digest of the declared state
//	<prefix>/<name>/head                       the newest version; written last, read first
//	<prefix>/<name>/topology/<epoch>.<seq>     one kept version: digest, tables, report, cause
//	<prefix>/<name>/chain/<epoch>.<seq>        history and digest of one version
//	<prefix>/<name>/object/<digest>/<part>     contents: topologies, tables, reports, declared states
//	<prefix>/<name>/leader                     the election key, under a lease
//	<prefix>/<name>/live/<node>                a node's presence, under its own lease
//	<prefix>/<name>/member/<node>              what admission remembers of it, without a lease
//
// The small keys are JSON records, to be read by people too; whatever can grow
// is a content: addressed by the digest of its bytes, compressed where that
// helps, in parts of 512 KiB, never changed. A record becomes visible in one
// transaction that compares every part which it leads to, so a half-written or
// half-collected content is never referred to.
//
// # Law
//
// A transaction is applied whole or not at all, and only if the keys it was
// made from have not been written since. A reading shows several keys at one
// revision, linearizably. A follower is called with the newest state after
// every change, however the stream breaks: readings replace state as a whole,
// events only tell that it is time for one.
//
// # Cost
//
// An edit or a publication is one reading and one transaction; contents above
// 256 KiB add a transaction for each MiB. A follower costs one stream, and one
// small reading every Options.Poll.
//
// # Source
//
// Get at a revision, then watch from the next: etcd's documentation, "Interacting
// with etcd", and client/v3/mirror. Limits measured on etcd 3.7.3: 128
// operations a transaction, 1.5 MiB a request. Fencing by the election key:
// etcd's client/v3/concurrency.
//
// The package knows nothing of placement and decides nothing: what may be
// published is membership's business, what may be taken the SDK's.
package etcdkv
