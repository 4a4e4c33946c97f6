// Package c3 is C3, replica ranking with cubic rate control (Suresh, Canini,
// Schmid, Feldmann, "C3: Cutting Tail Latency in Cloud Data Stores via Adaptive
// Replica Selection", NSDI 2015).
//
// # Law
//
// A node's score is what a request is expected to take there; the smallest wins:
//
//	score = R - 1/mu + q^3 / mu,   q = 1 + outstanding * clients + Q
//
// R is the response time that this client sees, 1/mu the service time and Q the
// queue length that the server puts into its replies (balance.Outcome.Service
// and Queue), each an average with weight Alpha for the newest reply. The cube
// keeps a client from piling onto a node that is a little faster; outstanding *
// clients is what all clients together may have sent since the reply. Where
// servers report nothing, 1/mu is R and Q is 0: then the score is R * q^3.
//
// With rate control each node has a limit of requests per Interval, raised along
// a cubic curve while the node answers as fast as it is sent to, and cut when it
// does not. A node at its limit is passed over for the next best; if all are,
// Pick returns ErrLimited.
//
// # Cost
//
// A pick ranks Choices nodes, or all: C3 is meant for the three replicas of a
// key (Choices 0 and a set of three). No locks on picks; Done takes one of the
// node's own while it moves the rate.
//
// # Source
//
// The paper, section 3, and the authors' simulator absim (client.py). There beta
// stands both for the cut, R = R * beta with 0.2, and in the inflection of the
// curve, where 0.2 would belong to a cut to 0.8; so it does here. Elasticsearch's
// adaptive replica selection uses the score without rate control, with alpha 0.3
// and ranks in milliseconds.
//
// # What it does not do
//
// Weights other than 0 do not matter. It does not queue requests that all limits
// refuse; the caller waits, for Picker.Wait at least.
package c3
