// Package prequal is Prequal's client: it probes a few random nodes beside each
// query and sends the query to the best one in a pool of fresh answers
// (Wydrowski, Kleinberg, Rumble, Archer, "Load is not what you should balance:
// Introducing Prequal", NSDI 2024).
//
// # Law
//
// A probe's answer holds the node's requests in flight (RIF) from all clients
// and the latency that it expects at that RIF. The pool holds at most Pool
// answers, of different nodes. A pick takes by the hot-cold lexicographic rule:
//
//	hot   a node whose RIF is above the Quantile of recent answers' RIFs
//	pick  if all in the pool are hot, the least RIF; else the cold one with the
//	      least latency
//	few   with less than two usable answers, a random node by weight
//
// The RIF of an answer grows by 1 when a query goes there. An answer leaves the
// pool when it is older than MaxAge, when it has been used often enough, when a
// newer one of the same node comes, and by removal: Remove answers a query, the
// oldest and the worst in turn (the worst: the hot one with the largest RIF,
// without hot ones the slowest). An answer may be used
//
//	b = max(1, (1 + Delta) / ((1 - Pool/n) * Probes - Remove))
//
// times, so that picks use up the pool as fast as probes fill it; fractions are
// spread evenly over answers (the paper rounds at random).
//
// # Cost
//
// A pick looks at the pool, 16 answers, without a lock and without allocating. A
// report takes a lock and allocates the answer. The network pays Probes small
// requests a query.
//
// # Source
//
// Sections 4 and 5 of the paper; the constants are its published ones and are
// all settings here, since they could not be checked against a running system.
//
// # What it does not do
//
// It sends no probes: Probes says which nodes to ask after a pick, the caller
// asks, and Report takes the answer. Server is the other half, for the nodes.
// Use it where many clients each see a small part of the load; a single client
// sees all of it by itself, and P2C costs nothing.
package prequal
