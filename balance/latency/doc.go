// Package latency has costs made from how long requests took, for the choosers
// of package balance:
//
//	PeakEWMA     the latest peak, fading, times requests in flight: tower, Finagle, brpc
//	SquaredEWMA  average latency x (in flight + 1)^2
//	Success      success rate against lag: kratos, go-zero
//	ServerQueue  the queue lengths that servers put into their replies
//
// All are meant for balance.NewP2C: a full scan over latencies herds.
//
// # Law
//
// A cost is never NaN, never negative, and a node that nothing is known of does
// not start at 0: it is charged a default latency, or at most one request at a
// time is sent to it until its first answer. State is kept per node, outlives
// pickers (Bind carries it on) and is updated without locks.
//
// # Cost
//
// Two or three math.Exp for Pick and Done; see docs/algorithms/policies-latency.md
// for figures, and for when not to use them.
package latency
