// Package affinity keeps requests that belong together on one node, as far as its load
// allows: sessions ([Sessions]), and prompts with a common beginning ([Chain],
// [Prefixes]), as model serving with a cache of prefixes wants it.
//
// # Law
//
// Sessions: a session goes to the first node in its order (sdk.Client.RouteN of its id)
// whose load is under its cap, and stays there. One that is not at the head of its order
// goes there only when that node's load is below Low of its cap; one that is at the head
// leaves it only when it is at its cap. When the head of its order changes, as at a
// scale-out, a session moves at most once for it, until it has been idle or the head
// changes again; a node that is gone from the order is left at once. At most Max
// sessions are remembered; the one that was quiet for longest is forgotten first, and
// begins anew with its next request.
//
// Prefixes: the hash of chunk i covers chunks 0 to i, so that equal hashes are equal
// beginnings. The node that served the longest beginning comes first.
//
// # Cost
//
// A pick takes one lock and O(1) steps besides the loads that it asks for. Memory is
// some 200 bytes a session and 100 bytes a prefix. Time is an argument.
//
// # Source
//
// Consistent hashing with bounded loads for sessions, with hysteresis against moving
// back and forth; prefix hashes by block are those of vLLM's prefix cache and of the
// routers of llm-d and KubeAI, where one overloaded worker must not turn affinity off
// for all.
//
// # What it does not do
//
// It is one router's memory. With several routers, order by hash makes them agree while
// loads are under the caps, and only then. It measures no load: the caller says it.
package affinity
