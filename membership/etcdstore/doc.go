// Package etcdstore is the membership store on etcd. internal/etcdkv has the
// layout, membership/storetest the behaviour that it shares with the store in
// memory.
//
// # Law
//
// Every write is one transaction that compares what it was made from: an edit
// the declared state's key, a version meta, head and the election key; both
// also every part of the contents that they refer to. A reader finds through
// head and declared state only what is whole and has its digest. Nothing that
// does not decode, or decodes to something of another cluster, is ever applied.
//
// # Cost
//
// An edit or a publication of a cluster of some hundred nodes is one reading
// and one transaction. What was read stays in memory by its digest, so a change
// fetches only what is new. Old versions are collected after every eighth.
//
// # What it does not do
//
// It does not compact etcd, which may be shared: run etcd with
// --auto-compaction-retention (the embedded one does), or every version and
// every declared state stays in its history until the quota is full.
//
// It keeps no clock: who leads is decided by etcd's lease, 5 s by default.
package etcdstore
