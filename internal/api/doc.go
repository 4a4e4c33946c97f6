// Package api holds what the two ends of shardd's HTTP API share: paths, entity
// tags, the messages and errors on the wire, strict decoding, and a typed
// [Client] that the command line and sdk/httpsource use. The server is
// internal/server.
//
// # Law
//
// Errors travel as {"error":{"code","message","hint"}} and arrive as an [*Error]
// that wraps the sentinel the server had (membership.ErrConflict and so on), so
// that a caller decides alike on both sides of the wire.
//
// Topologies travel in their canonical encoding, inside the JSON, and are
// checked against their digest on arrival. The readable fields beside it are for
// people; nothing decides on them.
//
// # Endpoints
//
//	GET  /v1/clusters
//	GET  /v1/clusters/{cluster}/topology           JSON, or with Accept: application/octet-stream a saved topology; ?version=E.S
//	GET  /v1/clusters/{cluster}/watch?after=E.S&digest=D&id=CLUSTERID
//	GET  /v1/clusters/{cluster}/objects/{digest}   one table; never changes
//	GET  /v1/clusters/{cluster}/spec               the declared state
//	PUT  /v1/clusters/{cluster}/spec               declares spec and nodes, whole; If-Match; ?wait=5s&by=&why=
//	POST /v1/clusters/{cluster}/nodes/{id}/{verb}  add, remove, weight; If-Match; ?wait=5s&by=&why=
//	GET  /v1/clusters/{cluster}/history?limit=20
//	GET  /v1/clusters/{cluster}/movement/{version}
//	GET  /v1/clusters/{cluster}/route?key=K        or key_hex=; n=
//	GET  /healthz /readyz /metrics
package api
