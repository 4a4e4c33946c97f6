// Package topology holds the values that every other package agrees on: nodes,
// the spec of a placement, versions, and the immutable Topology that joins
// them, together with its canonical binary form and its content digest.
//
// Law: two topologies with the same content digest are the same bytes, and the
// owner of a key is a function of those bytes alone. Nodes are held sorted by
// ID, so the order in which they were listed never matters.
//
// Tables that are state rather than a function of the nodes (slots, Maglev
// entries, Jump's bucket array, a rendezvous table) live in an [Object], which
// a topology refers to by digest: immutable, content-addressed and packed at
// ceil(log2 nodes) bits an entry.
//
// A [Delta] leads from one topology to a later one in a few hundred bytes, and
// names the digests of both.
//
// The package does no I/O, knows no placement algorithm and no store, and
// imports nothing of this module. The canonical form is described language
// neutrally in docs/spec/topology.md.
package topology
