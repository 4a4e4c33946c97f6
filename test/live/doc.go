// Package live proves the foreign mappings against the software itself: its tests
// start nginx, HAProxy, nutcracker, memcached and Redis on free loopback ports, read
// the very configuration that these run with as a foreign one, and compare where
// every key of the recorded lists goes. A test whose program is missing is skipped
// by name, or fails if SHARDD_REQUIRE_SERVICES is 1.
package live
