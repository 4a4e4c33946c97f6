// Package httpsource brings topologies from shardd servers to a sdk.Client over
// HTTP, without etcd in the client.
//
// A [Source] holds one watch open on one of the servers: a stream of JSON lines
// with whole versions, deltas and heartbeats. It presents what the client holds,
// so the server proves that what it sends descends from it. When the stream ends,
// falls silent, or its server turns out to serve another cluster, another line of
// versions or an older one, the source reports that and goes to the next server,
// with a jittered pause of at most a second, or as long as Retry-After says.
// Versions come as deltas where the server has what the client holds; what a
// delta leads to is checked by its digest, and fetched whole if that differs.
// Tables come with deltas, or are fetched by digest, and are kept while they are
// in use.
//
// # Law
//
// A topology is delivered only if the server that sends it has accepted the
// held version as one of its chain (the law of sdk.Source). A server that is
// down, hangs, lags or lies costs time, never a wrong topology.
//
// # Cost
//
// One connection and one goroutine a Watch. A version costs one message, of some
// hundred bytes where few nodes change; a table that is not there yet, one
// request.
//
// # What it does not do
//
// It does not cache topologies on disk and does not balance servers: the first
// one is drawn at random, then the one that works is kept.
package httpsource
