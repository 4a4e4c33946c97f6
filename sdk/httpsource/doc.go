// Package httpsource brings topologies from shardd servers to a sdk.Client over
// HTTP, without etcd in the client.
//
// A [Source] holds one watch open on one of the servers: a stream of JSON lines
// with whole versions and heartbeats. It presents what the client holds, so the
// server proves that what it sends descends from it. When the stream ends, falls
// silent, or its server turns out to serve another cluster, another line of
// versions or an older one, the source reports that and goes to the next server,
// with a jittered pause of at most a second, or as long as Retry-After says.
// Tables are fetched by digest and kept while they are in use.
//
// # Law
//
// A topology is delivered only if the server that sends it has accepted the
// held version as one of its chain (the law of sdk.Source). A server that is
// down, hangs, lags or lies costs time, never a wrong topology.
//
// # Cost
//
// One connection and one goroutine a Watch. A version costs one message; a table
// that is not there yet, one request.
//
// # What it does not do
//
// It does not cache topologies on disk and does not balance servers: the first
// one is drawn at random, then the one that works is kept.
package httpsource
