// Package owner is the server half of sharding: a node's own answer to "is this key
// mine", such that no two nodes ever say yes at the same time.
//
//	o, err := owner.New(client, leases, owner.Config{ID: "shard-3"})
//	claim, err := o.Owns("user:1")
//	if err != nil { ... } // not mine (and whose), not yet mine, or no lease
//	store.Write(key, value, claim.Fence)
//
// # Law
//
// At any moment at most one node owns a key. A key's owners follow one another with
// fences that grow: a store that refuses a write whose fence is below the greatest it
// has seen for the key is safe from owners that were stopped in between. On one node
// OnLost returns before anybody can acquire what was lost, and OnAcquired is called
// before Owns says yes. (When it is the lease that was lost, OnLost is called a tenth of
// the lease's time before others may acquire.)
//
// The rules, with leases and records in one linearizable store:
//
//  1. A node serves only while its lease is valid by its own clock, counted from before
//     the last renewal was sent.
//  2. When a node goes over to version v it first stops serving what it does not own
//     in v (OnLost), and then writes "settled on v" to its record.
//  3. What it gains in v it serves only after a reading, later than that write, in
//     which no record is of a version after v, and every record of a version s before v
//     is of a node that does not own the key in s.
//
// Why that suffices: two nodes that served one key would have settled on two versions,
// say N on v and M on s before v. Each wrote its record before it read the others', so
// one of the two readings saw the other's record: N's saw M's, and M owns the key in s,
// or M's saw N's, which is of a later version. A record that is gone is that of a node
// whose lease ended in the store, which is after it ended by its own clock. The test
// TestNeverTwo looks for a counterexample. The fence is the store's revision at the
// reading: whoever acquires later has read later, after the loser's last write.
//
// # Cost
//
// Owns is a lookup, a look at the clock, and no I/O. A new version costs one write and
// one or more readings of all records; keys change hands in about two round trips to
// the store when all nodes follow, and after Config.TTL when a node died. A node that
// is alive but does not follow holds up its own keys and no others, as long as its version
// is among the last 32, or was when the others first read of it: what it owns by one that
// nobody remembers may be anything. While versions come faster than they reach a node it
// keeps what it has, and takes its time to go over; after some minutes without being able to
// acquire anything it lets go of all.
//
// # Source
//
// Leases counted conservatively: Gray and Cheriton, "Leases" (SOSP 1989). Fencing
// tokens: Chubby's sequencers (Burrows, OSDI 2006), and Kleppmann, "Designing
// Data-Intensive Applications", chapter 8. Write one's own flag, then read the other's:
// Dekker's algorithm.
//
// # What it does not do
//
// Without the store nobody owns anything once leases have run out: exclusive ownership
// and availability without a control plane exclude each other. A machine that is
// suspended with its clock stopped can believe in its lease when it wakes: that is what
// the fence is for.
package owner
