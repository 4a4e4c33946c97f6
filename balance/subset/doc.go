// Package subset decides which nodes a client should know at all: with many
// clients and many nodes, connections and health checks cost more than requests,
// and a client that spreads few requests over all nodes learns nothing of any.
//
//	Deterministic  the same load on every node, to the connection; needs a number
//	               for each client (Numbers gives them out)
//	Random         rendezvous by a seed; needs nothing, moves least, is uneven
//	Aperture       a window on a fixed order that widens and narrows with load
//
// # Law
//
// Deterministic: with n nodes, subsets of k and n div k subsets a round, every
// whole round of clients puts exactly one client on each of (n div k) * k nodes.
// If k divides n, every node has the same number of clients; if not, n mod k
// nodes are left out of each round, different ones in each, and the numbers vary
// (300 nodes, 300 clients, k = 90: 78 to 100 instead of 90).
//
// Random: the loads are binomial; 300 clients with 30 of 300 nodes each put
// 53 % to 153 % of the mean on a node. When a node comes or goes, each subset
// changes by one entry at most.
//
// # Source
//
// Site Reliability Engineering, 2016, chapter 20; gRPC A68; Finagle's aperture.
//
// # What it does not do
//
// Functions work on indices and ids; they keep no connections.
package subset
