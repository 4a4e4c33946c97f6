// Package wrr has the policies that take turns by weight.
//
//	RoundRobin    one after the other
//	Expanded      a list with as many copies of a node as its weight
//	Smooth        nginx's smooth weighted round robin, with effective weights
//	EDF           earliest deadline first: Envoy, grpc-go
//	Stride        static stride: gRPC's weighted_round_robin
//	Reported      Stride with weights made from the load that servers report
//	LeastConn     nginx's least_conn: fewest connections by weight, ties by turns
//	WeightedLeast Envoy's weighted least request: EDF by weight / (active + 1)^bias
//
// # Law
//
// Over time a node gets its weight's share of the picks, and nobody with a
// weight above 0 starves. How smooth the turns are in between is the difference
// between them: see docs/algorithms/policies-turns.md.
//
// The turn is shared state. It lives in an atomic counter over an immutable run
// of turns computed ahead; a pick is one increment and one load. Nobody waits
// while the next run is computed: whoever needs it computes it, and the first
// to finish publishes his. Next carries the turns on to another set: a node that
// stays keeps the part of its turn that has passed, whatever its new weight is,
// so that weights may change every 100 ms (slow start) without anybody losing
// his place.
//
// # Cost
//
// One atomic increment besides what the ticket costs. A request with an exclude
// list takes further turns, at most 8, and then draws at random by weight; the
// turns it passed over are spent.
//
// # What it does not do
//
// But for LeastConn and WeightedLeast, turns do not look at load: a
// node that hangs keeps its share for ever (docs/algorithms/policies-unwell.md).
package wrr
