package sdk

import (
	"errors"
	"fmt"

	"github.com/shardd/shardd/topology"
)

// Errors of lookups. All are returned as they are, so that a lookup that fails
// allocates nothing.
var (
	// ErrNotReady: no topology has come yet. Call WaitReady before the first
	// lookup; Client.State names the last problem of the source.
	ErrNotReady = errors.New("sdk: no topology yet; call WaitReady first")
	// ErrNoNodes: the topology, complete and valid, has no node that owns
	// keys. Fail the request as if all nodes were down; the client recovers
	// by itself when nodes are published.
	ErrNoNodes = errors.New("sdk: the topology has no node that owns keys")
	// ErrClosed: the client was closed. Make another one.
	ErrClosed = errors.New("sdk: client is closed")
)

// Reasons for which a topology is refused. They reach the caller inside a
// [*RefusedError]: through Client.State, Hooks.OnRefused, WaitReady and the
// source. The client keeps what it has.
var (
	// ErrCluster: the topology belongs to another cluster than the one that
	// this client follows. An address or a store is mixed up, or the cluster
	// was wiped and built anew. Mend the address; if the new cluster is
	// meant, start a new client with its id.
	ErrCluster = errors.New("another cluster")
	// ErrForked: the topology does not continue the line of versions that
	// this client holds: a copy of the store was written to, the store was
	// restored from a backup, or the client was away longer than the chain
	// is kept. Look at the store; after a restore, raise the epoch
	// (shardd epoch bump). Client.Reset is the way back for this client alone.
	ErrForked = errors.New("another line of versions")
	// ErrOlder: the topology comes before the one that this client holds: a
	// server lags, which mends itself, or the store went back, and then the
	// epoch has to be raised (shardd epoch bump).
	ErrOlder = errors.New("older version")
)

// RefusedError is a topology that was not taken, and why.
type RefusedError struct {
	Held    topology.Ref // what the client has and keeps; zero = nothing
	Offered topology.Ref // what was refused
	// Err is the reason: it wraps ErrCluster, ErrForked, ErrOlder,
	// topology.ErrUnknown, topology.ErrMissingObject, or is an error of
	// package placement.
	Err error
}

// Error names the offered version, the held one and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("sdk: version %s refused, staying on %s: %v", e.Offered, e.Held, e.Err)
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }
