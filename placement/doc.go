// Package placement joins a topology and an algorithm into the mapping from key
// to node, derives the next mapping from the one before, and says exactly which
// share of the keys moves between two of them.
//
// # Law
//
// The owner of a key is a pure function of the topology's bytes and the key: of
// the owning nodes alone under ring and rendezvous, of the table in the topology
// under maglev, slots and jump. Two processes that hold the same topology hold
// the same [Table.Digest]. [Update] refills the table before, it never rebuilds
// it, so a change moves the least that its new shares allow.
//
// # Cost
//
// [Table.Locate] is the algorithm's own lookup behind one switch: no lock, no
// allocation, no interface call. [New] and [Update] cost what the algorithm's
// build costs plus one pass for the mapping digest. [Movement] is linear in
// points and table entries; its methods are listed at [Method].
//
// # Source
//
// Refill: the quotas are those of largest remainder, with the ceilings given
// first to nodes that hold more than their floor. The movement of weighted
// rendezvous is the probability Jaccard index of Moulton and Jiang, "Maximally
// Consistent Sampling and the Jaccard Index of Probability Distributions" (2018).
// docs/algorithms/movement.md derives every formula.
//
// # What it does not do
//
// No I/O, no clock, no health: a node that fails its checks owns its keys on. It
// chooses no replica for a request (package balance does) and moves no data
// (package migrate does).
package placement
