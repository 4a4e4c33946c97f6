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
	"time"

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
	// The stores here do that by themselves and never return it.
	ErrCompacted = errors.New("membership: compacted")
	// ErrCorrupt: what the store holds is not what this program writes, or
	// was written by a later release. Nothing of it is applied; keep what is
	// held and look at the key that the message names.
	ErrCorrupt = errors.New("membership: store holds what cannot be used")
	// ErrUnreachable: the store did not answer in time. Try again; what is
	// held stays valid.
	ErrUnreachable = errors.New("membership: store unreachable")
	// ErrNoCluster: there is no cluster of that name.
	ErrNoCluster = errors.New("membership: no such cluster")
	// ErrNoVersion: that version was never published, or is no longer kept.
	ErrNoVersion = errors.New("membership: no such version")
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
	Declared   topology.Declared  // spec in normal form, nodes sorted by ID. Read only
	Generation uint64             // of Declared; raised by one with every accepted edit
	Head       *topology.Topology // newest version with its tables; nil before the first
	Applied    uint64             // the generation that Head answers; equal to Generation when all is published
	Edits      []Note             // the edits after Applied, oldest first, at most MaxNotes
	// Invalid says why the stored declared state cannot be used (garbage, or
	// written by a later release); nil normally. Head is valid all the same.
	// Declared then has the cluster's name only; an Edit with Whole mends it.
	Invalid error
	// Overlay is what the leader says of the nodes' health; nil = nobody says
	// anything. It is no part of what is declared or published.
	Overlay *Overlay
	Standing
}

// ETag returns the state's entity tag, `"EPOCH.SEQ+GENERATION@ID"` with quotes.
// Generation and id decide whether an edit conflicts.
func (s State) ETag() string { return etag(s) }

// MaxNotes is the number of edits that a state remembers until a version
// answers them; of more, the newest.
const MaxNotes = 32

// MaxNoteLen is the largest length in bytes of Edit.By and of Edit.Why.
const MaxNoteLen = 256

// Note is the memory of one accepted edit, for the cause of the version that
// answers it.
type Note struct {
	Generation uint64            `json:"generation"`
	By         string            `json:"by,omitempty"`
	Why        string            `json:"why,omitempty"`
	Replace    map[string]string `json:"replace,omitempty"` // see Edit.Replace
	Ramp       time.Duration     `json:"ramp,omitempty"`    // see Edit.Ramp
	EndRamp    bool              `json:"end_ramp,omitempty"`
	Steps      int               `json:"steps,omitempty"`
	Restore    topology.Version  `json:"restore,omitzero"` // see Edit.Restore
}

// Edit changes declared state. Apply gets a copy and returns what it should
// become, or an error, which refuses the edit as it is. It may be called more
// than once.
type Edit struct {
	// Expect is the generation the caller saw; 0 = whatever is there (the
	// edit is applied again to fresh state when another came between).
	Expect uint64
	// Of is the id of the cluster that the caller saw; zero = any. One that was
	// made anew under the same name has another.
	Of    topology.ClusterID
	By    string // who; for the cause of the version that follows; at most MaxNoteLen bytes
	Why   string // free text, at most MaxNoteLen bytes
	Apply func(topology.Declared) (topology.Declared, error)
	// Whole says that Apply ignores what it is given, so that the edit can
	// stand in for declared state that cannot be read (State.Invalid).
	Whole bool
	// HeedFreeze refuses the edit with ErrFrozen while the cluster is frozen.
	// Without it a frozen cluster takes the edit, and publishes it when it is
	// unfrozen: so nodes may come and go.
	HeedFreeze bool
	// Replace names nodes that take over from others, old id to new id, as a
	// hint for the placement (placement.UpdateOptions.Replace).
	Replace map[string]string
	// Ramp lets the change of owners that the edit asks for be made in RampSteps
	// steps over this time, by a transition (topology.TransitionNone): 0 = at
	// once, RampByHand = the first at once and the others by Steps, else MinRamp to
	// MaxRamp. Until it is made, edits that would change owners otherwise are refused
	// with ErrConflict; one that asks for what was before turns it back (TurnRamp),
	// and EndRamp ends it at once. A change that cannot be
	// made in steps (of the spec, of a node that is removed while it owns keys, the
	// first version) is made at once all the same.
	Ramp time.Duration
	// EndRamp makes what is left of a transition at once.
	EndRamp bool
	// Steps makes so many steps of the transition under way, of RampSteps: forth,
	// to what is declared, or if negative the other way, of which the first and the
	// last step are the ends. The next one by time comes a step's time later.
	Steps int
	// Meanwhile takes the place of Apply while owners change in steps; head is the
	// newest version, whose Transition is not nil. nil = Apply.
	Meanwhile func(head *topology.Topology, d topology.Declared) (topology.Declared, error)
	// Restore names the version whose spec and nodes the edit declares again,
	// so that its tables are taken again too, if it is still kept. A hint, as
	// Replace is; zero = none. The cause says "rollback to" it, before Why.
	Restore topology.Version
}

// Publication is one version about to be published.
type Publication struct {
	// Next is complete, its Seq the head's + 1, its Parent the head's digest.
	// nil publishes no version and only records that the head answers
	// Generation too (the edits since cancel out).
	Next       *topology.Topology
	Movement   placement.Report // stored beside it
	Generation uint64           // the declared generation it was made from
	Expect     topology.Ref     // the head it was made from; zero for the first
}

// Store is the state of one cluster. Implementations are safe for concurrent use.
type Store interface {
	// Load returns one linearizable reading.
	Load(ctx context.Context) (State, error)
	// Declare applies an edit by compare-and-swap and returns the state after it.
	// Errors: ErrConflict (only with Edit.Expect, or when others keep coming
	// between), ErrInvalid wrapping the *topology.FieldError, ErrTooLarge,
	// whatever Edit.Apply returned.
	Declare(ctx context.Context, e Edit) (State, error)
	// Publish writes p under the leadership, or nothing. Errors: ErrConflict
	// (head or meta changed), ErrNotLeader, ErrWentBack, ErrFrozen,
	// ErrTooLarge, ErrInvalid (p does not continue the chain). After ErrUnreachable the outcome is unknown:
	// Load tells.
	Publish(ctx context.Context, l Leadership, p Publication) error
	// Watch calls fn with the state now and after every change of head or
	// declared state, latest wins, from one goroutine, until ctx ends
	// (ctx.Err()), fn returns an error (that error), or the cluster is not
	// there or gone (ErrNoCluster). An unreachable store is waited for; what
	// cannot be used (ErrCorrupt) is logged and skipped.
	Watch(ctx context.Context, fn func(State) error) error
}

// Reader reads what was published earlier. The last KeptVersions versions that
// changed ownership are kept, and the last KeptVersions of any kind.
type Reader interface {
	// Version returns the kept topology v with its tables, else ErrNoVersion.
	Version(ctx context.Context, v topology.Version) (*topology.Topology, error)
	// Movement returns the report stored with version v, else ErrNoVersion.
	Movement(ctx context.Context, v topology.Version) (placement.Report, error)
	// Versions lists the kept versions, ascending.
	Versions(ctx context.Context) ([]VersionInfo, error)
	// Descends reports whether ref is the head or one of the last
	// KeptDigests versions before it in the head's epoch and history: whether
	// whoever holds ref may take the head. It reads linearizably.
	Descends(ctx context.Context, ref topology.Ref) (bool, error)
}

// VersionInfo is one kept version in short.
type VersionInfo struct {
	Version topology.Version
	History topology.History
	Digest  topology.Digest
	Cause   topology.Cause
	Nodes   int     // nodes listed, owners or not
	Moved   bool    // ownership changed: the mapping is another than before
	Ratio   float64 // share of the key space that moved
}

// What a store keeps.
const (
	// KeptVersions is how many versions that changed ownership are kept, with
	// their tables and movement reports.
	KeptVersions = 64
	// KeptDigests is how many digests of the chain are kept, those of kept
	// versions included.
	KeptDigests = 4096
)

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
	// history) and its declared state. by and why are for the cause of its
	// first version, as in an Edit. ErrExists if the name is taken.
	Create(ctx context.Context, d topology.Declared, by, why string) (State, error)
	// List returns the names of all clusters, ascending.
	List(ctx context.Context) ([]string, error)
	// Open returns the store of a cluster; it does no I/O. A name that does
	// not exist shows as ErrNoCluster on use.
	Open(cluster string) ClusterStore
	// WatchNames calls fn with the names of all clusters now and after every
	// change, latest wins.
	WatchNames(ctx context.Context, fn func([]string) error) error
	// Delete removes a cluster with all that was published, if it still has
	// this id. Clients keep what they have; a cluster of the same name made
	// later has another id, and they refuse it. ErrNoCluster, ErrConflict
	// (another id).
	Delete(ctx context.Context, cluster string, id topology.ClusterID) error
}

// Deletions is the part of a cluster's store that remembers which clusters of its
// name were deleted by word (Directory.Delete): what comes under the name after
// one of those is no store that was replaced.
type Deletions interface {
	// Deleted returns the ids, the newest first, at most KeptDeletions.
	Deleted(ctx context.Context) ([]topology.ClusterID, error)
}

// KeptDeletions is how many deleted clusters of one name are remembered.
const KeptDeletions = 8

// ClusterStore is everything a cluster's store offers.
type ClusterStore interface {
	Store
	Reader
	Epochs
}
