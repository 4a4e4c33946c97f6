// Package httplb is a http.RoundTripper that sends each request to the node of a
// topology that its key belongs to, or to any node by a load-balancing policy.
//
//	transport := httplb.New(client, httplb.Config{Key: httplb.KeyHeader("X-User")})
//	defer transport.Close()
//	http.Client{Transport: transport}.Get("http://cache/profile") // the host is kept as Host
//
// The same transport makes a reverse proxy of httputil.ReverseProxy: see the example.
//
// # Law
//
// A request with a key goes where sdk.Client.Acquire says, and is in that node's load
// until its answer's body is closed. Without a key it goes where AcquireAny says. A
// request is sent to another node only if no connection could be opened to the first
// (Config.Tries), so no node has seen it before. Connections to one node are at most
// Config.MaxConns; each node has its own pool, closed when the node has left and its
// last answer was read.
//
// # Cost
//
// Over http.Transport: an admission (package sdk), a copy of the request, and one
// small value for the body.
//
// # What it does not do
//
// It does not retry what may have been done: sdk.Client.Do with resilience does where
// the caller knows better. With HTTP/2 a connection has no number of requests, only an
// age.
package httplb
