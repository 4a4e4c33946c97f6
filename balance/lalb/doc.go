// Package lalb is brpc's locality-aware load balancer: each node has a weight
// made from its measured throughput and latency, and a pick draws by weight from
// a tree of sums.
//
// # Law
//
//	base weight = SCALE * qps / average latency
//
// over the last 128 answers of the node. The weight is lowered while requests in
// flight take longer than usual: with d the age of their mean start and p = 1.5
// * average latency, it is base * p / d once d >= p. A node gets requests in
// proportion to its weight; as it slows down under them its weight falls, until
// all nodes' marginal gains meet. The numbers are integers, and every select,
// feedback, failure, add and remove agrees with brpc's code, event by event.
//
//	SCALE   (2^63 - 1) div 72000000 div 127
//	new     the mean weight (SCALE for the first node)
//	floor   qps counts as at least 1, the weight is at least 1000; see Config.Floor
//	error   added to the last answer's latency: (left * 1.2 * latency + done *
//	        time-out) / (done + left), done and left the attempts made and left
//	down    base = min(base, mean weight) when it is drawn
//
// # Cost
//
// Pick and Done walk and update a complete binary tree, children of i at 2i+1
// and 2i+2: O(log n), below 1 us at n = 1,024. Picks take no lock; Done takes one
// of the node's own while it adds the sample. State per node: 2 KiB.
//
// # Source
//
// brpc src/brpc/policy/locality_aware_load_balancer.{h,cpp} at 71871ee9. Articles
// describe it with a quadratic latency, a lower bound of avg + max(3 * bound,
// MIN) and a factor avg / delay; the code has none of these.
//
// # What it does not do
//
// Set weights other than 0 do not matter. A node that has never answered is not
// punished for what it has in flight and keeps the mean weight for as long as it
// hangs (Config.ColdLatency mends that). After a node has been slow its weight
// is small, few requests measure it, and return takes many seconds: 17 to 28 s
// when 1 ms and 3 ms change places. Do not use it where nodes are alike; P2C is
// simpler and quicker.
package lalb
