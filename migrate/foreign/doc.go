// Package foreign reads the configuration of other systems as a cluster, and
// writes a cluster as theirs.
//
// A parser takes bytes and returns what a cluster file would say: the foreign
// mapping (compat mode and its parameters), and the nodes with address, weight,
// label, place in the list and, for a Redis Cluster, slots. It does no I/O.
//
//	format         reads                                   writes
//	twemproxy      a pool of a YAML file                   the pool
//	nginx          an upstream block, of nginx.conf too    the upstream block
//	haproxy        a backend or listen section             the backend
//	redis-cluster  nodes.conf, CLUSTER NODES               redis-cli commands (redis-cli)
//	memcached      a list of "host:port weight"            -
//	go-redis-ring  Ring options in YAML or JSON            -
//	thanos         a hashring of hashring.json, nodes only -
//	envoy-eds      ClusterLoadAssignment in JSON           the same, with hash_key
//	mcrouter       -                                       a pool in JSON, nodes only
//
// # Law
//
// Nothing that decides where a key goes is passed over: a directive is read, or
// on the list of those that decide nothing about it, or an *Error that names line
// and directive. What only decides what happens in trouble (failing servers, full
// queues) is passed over with a note. Where a format is both read and written,
// what is written reads back as the same mapping: Export reads its own output and
// compares before it returns it. A mapping that the target does not compute is
// refused with ErrCannot.
//
// # Cost
//
// Linear in the file, which may have MaxSize bytes; Export costs two builds of the
// mapping and one comparison.
//
// # Source
//
// The software's own parsers and documentation: twemproxy 0.5.0 (nc_conf.c),
// nginx 1.22 (ngx_conf_file.c, ngx_http_upstream.c), HAProxy 2.6 configuration
// manual (sections 2, 4 and 5), Redis 7.0 (CLUSTER NODES), go-redis v9
// (RingOptions), Thanos (receive hashring file), Envoy v3 API
// (ClusterLoadAssignment), mcrouter (pools and PoolRoute).
//
// # What it does not do
//
// It follows no include and expands no environment variable: both are refused
// where they could matter. It knows nothing of what is changed at run time.
package foreign
