// Package membership keeps the declared state and the published versions of
// clusters, and turns the one into the other.
//
// Law: versions of one cluster are published one after another, each fenced by
// the election key and by the head it was made from; declared state changes
// only by compare-and-swap on its generation. A refused write changes nothing.
//
// Stores: membership/etcdstore (etcd, the product) and membership/memstore
// (memory, for tests and examples), held to the same behaviour by
// membership/storetest.
package membership

import (
	"context"
	"errors"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Errors that callers decide on. All are wrapped with the operation.
var (
	// ErrConflict: the state is not the one the caller saw. Read it again
	// and decide anew.
	ErrConflict = errors.New("membership: conflict")
	// ErrNotLeader: the election key is no longer the caller's. Stop
	// publishing; another leader does it.
	ErrNotLeader = errors.New("membership: not leader")
	// ErrCompacted: the watch's start is no longer kept. Load, then watch.
	ErrCompacted = errors.New("membership: compacted")
	// ErrUnreachable: the store did not answer in time. Try again; what is
	// held stays valid.
	ErrUnreachable = errors.New("membership: store unreachable")
	// ErrNoCluster: there is no cluster of that name.
	ErrNoCluster = errors.New("membership: no such cluster")
	// ErrNoNode: there is no node of that id.
	ErrNoNode = errors.New("membership: no such node")
	// ErrExists: a cluster or node of that name is there already.
	ErrExists = errors.New("membership: exists already")
	// ErrTooLarge: the value is over a documented limit, which the message names.
	ErrTooLarge = errors.New("membership: too large")
	// ErrInvalid: the input is refused; the message says what and why.
	ErrInvalid = errors.New("membership: invalid")
)

// State is one linearizable reading of a cluster.
type State struct {
	ID         topology.ClusterID
	Epoch      uint64
	History    topology.History
	Declared   topology.Declared
	Generation uint64             // of Declared; raised by one with every accepted edit
	Head       *topology.Topology // newest version with its tables; nil before the first
	Applied    uint64             // the generation that Head was made from
}

// ETag returns the state's entity tag, `"EPOCH.SEQ+GENERATION"` with quotes.
// Only the generation decides whether an edit conflicts.
func (s State) ETag() string { return etag(s) }

// Edit changes declared state. Apply gets a copy and returns what it should
// become, or an error, which refuses the edit as it is.
type Edit struct {
	// Expect is the generation the caller saw; 0 = whatever is there (the
	// edit is applied again to fresh state when another came between).
	Expect uint64
	By     string // who; for the cause of the version that follows
	Why    string // free text
	Apply  func(topology.Declared) (topology.Declared, error)
}

// Publication is one version about to be published.
type Publication struct {
	Next       *topology.Topology // Seq is the head's + 1, Parent its digest; complete
	Movement   placement.Report   // stored beside it
	Generation uint64             // the declared generation it was made from
	Expect     topology.Ref       // the head it was made from; zero for the first
}

// Store is the state of one cluster. Implementations are safe for concurrent use.
type Store interface {
	// Load returns one linearizable reading.
	Load(ctx context.Context) (State, error)
	// Declare applies an edit by compare-and-swap and returns the state after it.
	// Errors: ErrConflict, ErrInvalid, whatever Edit.Apply returned.
	Declare(ctx context.Context, e Edit) (State, error)
	// Publish writes p under the leadership, or nothing. Errors: ErrConflict
	// (head or meta changed), ErrNotLeader, ErrTooLarge.
	Publish(ctx context.Context, l Leadership, p Publication) error
	// Watch calls fn with the state now and after every change of head or
	// declared state, latest wins, until ctx ends or fn returns an error.
	Watch(ctx context.Context, fn func(State) error) error
}

// Reader reads what was published earlier.
type Reader interface {
	// Version returns the kept topology v with its tables.
	Version(ctx context.Context, v topology.Version) (*topology.Topology, error)
	// Movement returns the report stored with version v.
	Movement(ctx context.Context, v topology.Version) (placement.Report, error)
}

// Leadership is a held election. It ends by Resign or by the loss of its lease.
type Leadership interface {
	// Done is closed when the leadership has ended.
	Done() <-chan struct{}
	// Resign hands over at once.
	Resign(ctx context.Context) error
}

// Elector elects one leader among processes.
type Elector interface {
	// Campaign blocks until this process leads the cluster or ctx ends. id
	// names the process in messages.
	Campaign(ctx context.Context, cluster, id string) (Leadership, error)
}

// Directory holds clusters by name.
type Directory interface {
	// Create makes an empty cluster with a fresh id (epoch 1, a fresh
	// history) and its declared state. ErrExists if the name is taken.
	Create(ctx context.Context, d topology.Declared, by string) (State, error)
	// List returns the names of all clusters, ascending.
	List(ctx context.Context) ([]string, error)
	// Open returns the store of a cluster; it does no I/O. A name that does
	// not exist shows as ErrNoCluster on use.
	Open(cluster string) ClusterStore
	// WatchNames calls fn with the names of all clusters now and after every
	// change, latest wins.
	WatchNames(ctx context.Context, fn func([]string) error) error
}

// ClusterStore is everything a cluster's store offers.
type ClusterStore interface {
	Store
	Reader
}
