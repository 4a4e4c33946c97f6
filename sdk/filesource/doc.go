// Package filesource brings topologies from a file to a sdk.Client: what
// `shardd get -o topology` saves, or the snapshot file of another client. It is
// for programs that get their topology with their configuration, and for tests
// and machines without a control plane.
//
// A [Source] looks at the file at an interval and reads it when its identity,
// size or time of modification has changed. A file that is missing, damaged,
// half written or of a later release is reported and changes nothing: the client
// keeps the last good topology. The file that replaces another is best written
// beside it and renamed over it; one that is written in place is read again until
// its digest is right.
//
// # Law
//
// The law of sdk.Source. A file names its parent and no other ancestor, so it
// proves that it continues what the client holds only if it is the next version
// or of a later epoch. A file that is several versions further on in the same
// epoch is reported as sdk.ErrForked and not delivered, unless
// [WithTrustedWriter] says that who writes the file keeps to one line of
// versions. The client itself refuses another cluster, an older version, another
// history of the same epoch, and a next version with another parent, whoever
// wrote them.
//
// # Cost
//
// One goroutine and one stat of the file per interval; one reading and decoding
// of the file per change, and within 2 s of one.
//
// # Source
//
// That a file whose time of modification is younger than the clock's grain may
// change again unseen is git's "racy" problem (git documentation, racy-git).
//
// # What it does not do
//
// It reads saved topologies only, no cluster files: a topology is made by who
// publishes it. It uses no notification of the operating system: those miss
// changes on network file systems and mounted volumes.
package filesource
