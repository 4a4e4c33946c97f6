package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardd/shardd/topology"
)

// Errors that callers decide on.
var (
	// ErrNotOwner says that another node owns the key; it comes as *NotOwnerError.
	ErrNotOwner = errors.New("owner: another node owns the key")
	// ErrPending says that the key is this node's by its version, but that its
	// previous owner has not let go yet. Wait some milliseconds, or let the client
	// try again.
	ErrPending = errors.New("owner: the key is not acquired yet")
	// ErrNoLease says that this node has no valid lease: it owns nothing. The store
	// cannot be reached, or another process has the node's id.
	ErrNoLease = errors.New("owner: no valid lease")

	// ErrTaken says that another process holds the node's record.
	ErrTaken = errors.New("owner: another process has this node's lease")
	// ErrLost says that the lease has ended in the store.
	ErrLost = errors.New("owner: the lease has ended")
)

// NotOwnerError says whose the key is by this node's version.
type NotOwnerError struct {
	Node    topology.Node // zero if no node owns anything
	Version topology.Version
}

// Error names the owner.
func (e *NotOwnerError) Error() string {
	return fmt.Sprintf("%v: by version %s it belongs to %q", ErrNotOwner, e.Version, e.Node.ID)
}

// Unwrap returns ErrNotOwner.
func (e *NotOwnerError) Unwrap() error { return ErrNotOwner }

// Record is what a node says of itself to the others, under its lease.
type Record struct {
	ID      string
	Settled topology.Ref // it serves no key that it does not own by this; zero = it serves nothing
}

// Leases keeps the records of a cluster's nodes: memlease, and etcdlease for etcd.
// All of it is linearizable.
type Leases interface {
	// Take makes the node's record under a fresh lease of ttl, settled on nothing.
	// Errors: ErrTaken, ctx's, the store's.
	Take(ctx context.Context, id string, ttl time.Duration) (Lease, error)
}

// Lease is a node's record and its lease.
type Lease interface {
	// Settle writes the record. A write that failed and is made all the same, later,
	// changes nothing once another one has succeeded. One call at a time. ErrLost: the
	// lease has ended.
	Settle(ctx context.Context, ref topology.Ref) error
	// Records reads the records of all nodes, and the revision of the store, which
	// grows with every write to any of them.
	Records(ctx context.Context) (all []Record, revision uint64, err error)
	// Renew gives the lease its whole time again, from the moment at which the store
	// answers. ErrLost: it has ended.
	Renew(ctx context.Context) error
	// End gives the record up at once.
	End(ctx context.Context) error
}
