// Package shardtest is a control plane inside the process, for tests of programs
// that use the SDK: no server, no network, no port.
//
//	plane := shardtest.New(t, "a", "b", "c") // version 1.1, three nodes
//	client := plane.Client()                 // ready; closed when the test ends
//	plane.Assign("user:1", "b")              // from now on b owns user:1
//	plane.Remove("b")                        // and now it has left
//
// A [Plane] publishes versions by the same code as a controller and hands them to
// every client that watches it. It is also made to misbehave: it holds versions
// back ([Plane.Delay], [Plane.Hold]), goes away ([Plane.Away]), drops its watches
// ([Plane.Drop]), goes back as a restored store does ([Plane.GoBack]), begins an
// epoch ([Plane.RaiseEpoch]), or offers a topology that a client should refuse
// ([Plane.Offer]).
//
// # Law
//
// As long as nobody calls Offer, a Plane keeps the law of sdk.Source: a client is
// delivered only what continues the line that it holds. Publish, Add, Remove and
// the others return after every client that watches and is not kept waiting on
// purpose goes by the new version, so that a test needs no sleep.
//
// # Cost
//
// One goroutine for each client's watch, which is the client's own. With
// testing/synctest all of it runs in virtual time.
//
// # What it does not do
//
// It has no HTTP API: for other languages, or to test what goes over the wire,
// run `shardd dev`. It admits no nodes by lease; see membership/memstore.
package shardtest
