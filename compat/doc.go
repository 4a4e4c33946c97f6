// Package compat maps keys as foreign systems do: key for key what the
// memcached clients, proxies, load balancers and Go libraries compute that a
// fleet may be using today.
//
// A mode is: the order of the list of nodes, the label of each, how many points
// or entries its weight gives, how these are derived, the lookup rule, and the
// hash and tag of keys. Modes are lines of tables (modes.go, rings.go,
// tables.go) over a few engines:
//
//	ring     package ring on foreign points; upper and nearest come down to lower
//	modulo   a table, indexed by hash modulo size
//	jump     package jump over the plain list
//	score    highest random weight
//	keyed    key and node hashed together, for planning only
//
// # Law
//
// A Mapping depends on the configuration, on the nodes' labels or addresses,
// weights and states, and, where the foreign system looks at the order of its
// list, on their positions; never on the order of the argument. What a foreign
// system does beside the mapping (health checks, retries, ejection) is not here.
//
// # Cost
//
// New: linear in points and entries, plus a sort. Lookups on rings cost what
// package ring's do; modulo is a division and a load; score asks every node.
//
// # Source
//
// The software itself, named with its version in docs/algorithms/compat.md; the
// tests replay what it answered.
package compat
