// Package bounded keeps the load of each node under a cap relative to the
// average: consistent hashing with bounded loads, for costs that are numbers.
//
// # Law
//
// E is the nodes that may take requests, w_i their weights, W their sum, L_i the
// cost in flight at node i as this process sees it, T the sum of L over E. A
// request of cost q >= 1 may go to node i if and only if
//
//	L_i * W < c * (T + q) * w_i
//
// which for whole numbers is L_i < cap_i, cap_i = ceil(c (T + q) w_i / W). After
// the admission L_i <= cap_i + q - 1: over its cap by less than the request. For
// q = 1 that is L_i + 1 <= ceil(c (T + 1) w_i / W).
//
// For c >= 1 some node of E always admits, because the caps add up to
// c (T + q) > T. Where only some nodes are asked (the replicas of a key), or the
// loads are estimates, all of them may refuse: then Least names the one with the
// least L_i / w_i, and Force counts what it takes as over the cap.
//
// The load of a node is reserved by compare-and-swap: a check followed by an
// addition would exceed the cap by the number of concurrent pickers.
//
// # What a process sees
//
// [Own] counts its own requests: exact, of no age, and blind to all other
// clients. Caps of all clients together are still caps (with C clients the sum
// stays under c*T/N + C(1+c/N)), but a client with less than about one request
// in flight for each node bounds nothing.
//
// [Reported] adds what the node said of itself in its last answer (Report),
// less what was our own at that time: as old as the last answer from that node;
// see Group.Fade for nodes that send none.
//
// Periodic loads do not fit either: with thresholds on one sample all clients
// turn away from the same node at once, and back at once (Mitzenmacher, "How
// Useful Is Old Information", 2000). Publish shares to turn away instead: Spill.
//
// # Cost
//
// Admit and Release are two atomic read-modify-writes each, no lock, no division,
// no allocation. The total is one word that all cores write; Options.Every lets it
// lag.
//
// Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded
// Loads" (2016), for the cap; the strict comparison is HAProxy's (served < slots),
// where Envoy admits one more (active <= slots).
//
// # What it does not do
//
// It knows no keys and no order of preference: the caller asks one node after
// the other. It does not bound the cost of a single request.
package bounded
