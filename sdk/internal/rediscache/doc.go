// Package rediscache is what the caches of sdk/redis and sdk/rueidis do: strings on plain
// Redis servers, read through to the key's other owner while its owner changes in steps,
// and fenced against what a server kept while it was away.
//
// # Law
//
// A read returns no value that was overwritten or deleted by an operation which began
// after that value was acknowledged and ended before the read began, as long as all
// clients use this package and are at most one step of the transition apart (and, for a
// node that comes back with its memory, have Fence). A miss is always allowed.
//
// Four rules make it hold. The test that plays clients in random interleavings of their
// commands fails without the first deletion, without the second, without the lease, and
// where a deletion removes the key before the lease; without the bars and without the end
// of leases TestCopiesBothWays and TestWritesEndLeases do:
//
//   - A write or a deletion is three steps: the key is deleted at its other owner, written
//     or deleted at its owner, and deleted at the other owner again. The first keeps
//     readers from finding the old value there, the last takes away what a client that is
//     a step behind wrote there meanwhile.
//   - A value is copied to the owner only under a lease ("Scaling Memcache at Facebook",
//     NSDI 2013, section 3.2.1): a key beside the key with the reader's nonce, taken
//     before the other owner is read. Writes and deletions remove it, after the last step
//     of the transition, too; the copy is refused without it. So a deletion that comes
//     between reading and copying is not undone.
//   - While the owner changes, a write or a deletion puts a bar where the lease would be, at
//     both owners. Else a reader that is a step behind takes the old value from the owner
//     to the other one after it was deleted there, and another one back. The bar at the
//     other owner is taken away with the second deletion, that at the owner ends with its
//     time, 5 s: until then nothing is copied to there.
//   - The copy is made only if the key is absent and, as far as the client knows, has the
//     same two owners still; with the time to live that was left.
//
// A stamp is the version since which the node has served the key (sdk.Route.FirstSince)
// when the value was written, before the value: 0xf5, then epoch and seq as unsigned
// varints (encoding/binary). It is the same in sdk/memcache. 0xf5 occurs in no UTF-8 text.
//
// # Cost
//
// Without a transition one command a key (MGET for many; with ReadThrough two for what
// writes or deletes, in one pipeline), all nodes at once. With one, a
// miss costs one more round trip; a value found at the other owner four, once; a write or
// deletion of a key that moves three.
//
// # What it does not do
//
// Nothing waits for all clients to have a version (transitions of kind none have no such
// gate): a client that is more than one step behind, or has not heard of the transition,
// writes where nobody looks any more. Redis' replicas and fail-over are not looked at. It
// knows no types but strings.
package rediscache
