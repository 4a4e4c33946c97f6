// Package clusterfile reads and writes cluster files: the YAML (or JSON) in
// which an operator declares a cluster.
//
//	cluster: cache
//	algorithm: ring            # ring | jump | rendezvous | maglev | slots
//	ring: {vnodes: 160}        # or maglev: {table_size: 65537}, slots: {count: 16384},
//	                           # jump: {variant: classic, unit: 1}, rendezvous: {table: 0}
//	key_hash: xxh64            # or crc16, as Redis Cluster hashes
//	hash_tag: "{}"             # hash only what stands between; default "{}" for crc16, else ""
//	# compat: {mode: twemproxy, hash: fnv1a_64}   instead of algorithm, key_hash and hash_tag:
//	#                          the mapping of a foreign system, see topology.Modes; the order of
//	#                          nodes is that of its list, label: NAME is what it hashes where that
//	#                          is not addr, and under redis-slots slots: "0-5460" what a node has
//	replicas: 1
//	bounded_load: 1.25         # 0 = off
//	zone_aware: false
//	nodes:
//	  - {id: cache-a, addr: "10.0.0.1:11211", weight: 1, zone: z1}
//	    # also label: NAME, and state: active, joining, draining, down or left
//
// Law: a file is taken whole or refused with one error that says where
// (file, line, column, field), what is wrong and what to do. Nothing is
// guessed: unknown fields, numbers in quotes, names without quotes that YAML
// reads as numbers (but for a label in plain digits, such as a server id), and
// parameters of an algorithm that is not chosen are all refused. Absent fields
// get the documented defaults; an absent weight is 1 (under mode go-zero 100,
// its unit).
//
// Cost: about linear in the file, which may have at most MaxSize bytes (32,000
// nodes: 0.9 s). Anchors, aliases, tags and merge keys are refused, so a small
// file cannot become a large one.
package clusterfile
