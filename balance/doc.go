// Package balance picks one of several nodes for a request, by load.
//
// A Picker is an immutable arrangement of a Set of candidates, made anew on
// every change of the set; the counters (a Node's requests in flight, latency
// estimates, turns) live outside of it and outlive it. Pick returns a Ticket, a
// small value; the request's end is told by Ticket.Done.
//
//	pool := balance.NewPool()
//	nodes, err := pool.Update(identities)       // on every change
//	set, err := balance.NewSet(members)         // nodes with their weights
//	picker, err := balance.NewP2C(set, nil)     // or previous.Next(set)
//
//	t, err := picker.Pick(now, seed, nil)       // per request
//	... send to t.Node() ...
//	t.Done(now, balance.Outcome{Result: balance.Success})
//
// # Law
//
// Every pick is released exactly once and to the very counter it was taken
// from: the first Done by any copy of the ticket counts, all others change
// nothing, and a node that left and came back has new counters. Requests in
// flight are therefore never negative and are 0 when nothing is in flight.
//
// A candidate of weight 0 is never picked. A pick is bounded: it returns a
// candidate that is not on the exclude list, or an error (ErrNoNode,
// ErrExcluded); there is no loop that draws until it is lucky. The share of a
// node that is excluded goes to all others by weight, not to its neighbour.
//
// Time and chance are arguments: now is the time since any fixed origin on a
// monotonic clock, seed is 64 bits that differ from pick to pick (a counter
// will do: they are mixed by SplitMix64). The same arguments give the same
// picks, so tests and simulators run in virtual time.
//
// # Cost
//
// No pick waits for another and none takes a lock; steady picks allocate
// nothing. P2C and LeastRequest: two draws, two loads, four atomic
// read-modify-writes for Pick and Done together, independent of the number of
// nodes. See docs/algorithms/policies.md for measured figures of every policy,
// their formulas, defaults and sources, and when not to use them.
//
// # Family
//
// This package has the choosers over a cost: Random, FullScan (join the shortest
// queue), LeastRequest (d choices), P2C, RandomTwo (nginx), GoLeft; the cost is the
// number of requests in flight unless another one is given. Beside it:
//
//	wrr       turns by weight: round robin, expanded, smooth (nginx), EDF, static
//	          stride, reported load (gRPC), least connections, weighted least
//	          request (Envoy)
//	latency   costs by latency: Peak EWMA, EWMA x (in flight + 1)^2, success rate
//	lalb      locality-aware (brpc): a tree of weights measured from latency
//	c3        replica ranking with cubic rate control
//	prequal   probing: least requests in flight and latency, hot and cold
//	subset    which nodes a client should know at all
//
// # What it does not do
//
// It knows no topology, no network and no health: a caller that finds a node
// unwell makes the next Set without it (or with Member.Down). It retries
// nothing, and it does not bound a node's load.
package balance
