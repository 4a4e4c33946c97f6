// Package migrate says what a change of a cluster will cost before it is made.
//
// # Law
//
// A plan is a function of two mappings and, if given, of a list of keys: which
// share of the key space moves, between which nodes, what the least possible
// would be (package placement computes it), and how many of the listed keys and
// bytes that is. Planning changes nothing and talks to nobody but the
// [Versions] it is given.
//
// Where a plan's target is a cluster file, it is the update of the source to the
// file's spec and nodes, as publishing the file would make it. Under maglev,
// slots and jump that differs from the file's first publication, since tables
// are refilled and never rebuilt.
//
// # Cost
//
// That of placement.Update and placement.Movement; counting keys costs two
// lookups a key, and no memory that grows with their number.
//
// # What it does not do
//
// It moves no data.
package migrate
