package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/shardd/shardd/topology"
)

// Errors of registration that callers decide on.
var (
	// ErrDuplicate: another process holds that node id, and is not the same
	// node restarting. The message names it. Give the node another id, or
	// stop the other process; its lease ends by itself.
	ErrDuplicate = errors.New("membership: node id is taken")
	// ErrForeign: the store holds another cluster than the one that the node
	// belongs to. The message names both ids. Correct the store's address, or
	// drop the pinned id if the cluster was made anew on purpose.
	ErrForeign = errors.New("membership: another cluster")
)

// Health is what a node says of itself. It is an overlay: requests go round a
// bad node, its keys stay (no health ever moves ownership).
type Health string

// The values of Health.
const (
	HealthUnknown Health = ""    // nothing checks it; used as if it were well
	HealthOK      Health = "ok"  // its check passes
	HealthBad     Health = "bad" // its check fails; Live.Reason says why
)

// Live is the presence of one node: what its process says of it, for as long as
// the process renews its lease.
type Live struct {
	ID      string
	Cluster topology.ClusterID // the cluster that it registered with
	Addr    string             // where it is; "" = keep the declared one
	Zone    string             // the zone it asks for; "" = keep the declared one
	Weight  *uint32            // the weight it asks for; nil = keep the declared one, if there is none that of a cluster file
	// Owner names the process: 128 random bits in hexadecimal, drawn at its
	// start. Another owner is another start of the node.
	Owner string
	// Identity names the node across processes and addresses; "" = only its
	// address does.
	Identity    string
	Incarnation uint64 // raised by one with every lease that the node gets, from 1
	Drain       bool   // it wishes to give its keys up
	Health      Health
	Reason      string // why Health is bad; at most MaxNoteLen bytes
}

// node returns the node that l makes of the declared one.
func (l Live) node(n topology.Node) topology.Node {
	n.ID = l.ID
	if l.Addr != "" {
		n.Addr = l.Addr
	}
	if l.Zone != "" {
		n.Zone = l.Zone
	}
	if l.Weight != nil {
		n.Weight = *l.Weight
	}
	return n
}

// Validate says why no node can be made of l, or returns nil. Errors: ErrInvalid.
func (l Live) Validate() error {
	spec := topology.Spec{Algorithm: topology.Rendezvous}.Normal()
	if err := topology.ValidateNodes(spec, []topology.Node{l.node(topology.Node{Weight: 1})}); err != nil {
		return fmt.Errorf("%w: registration: %w", ErrInvalid, err)
	}
	if l.Health != HealthUnknown && l.Health != HealthOK && l.Health != HealthBad {
		return fmt.Errorf("%w: registration of node %q: health %q: want ok, bad or nothing", ErrInvalid, l.ID, l.Health)
	}
	for _, s := range []string{l.Identity, l.Reason} {
		if err := checkText(s); err != nil {
			return fmt.Errorf("%w: registration of node %q: %w", ErrInvalid, l.ID, err)
		}
	}
	return nil
}

func checkText(s string) error {
	if len(s) > MaxNoteLen || !utf8.ValidString(s) {
		return fmt.Errorf("%.40q: want at most %d bytes of UTF-8", s, MaxNoteLen)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%.40q: has a control character", s)
		}
	}
	return nil
}

// Mark is what admission remembers of a node, beyond its lease and without one:
// that it came by registration, and what was made of that. Nodes without a mark
// are the operators' own.
type Mark struct {
	ID          string
	Owner       string // of the presence that was made declared state last; "" = none yet
	Incarnation uint64
	Addr        string // what it asked for then
	Zone        string
	Weight      *uint32
	State       topology.State // what admission declared last
	Next        topology.State // what it is about to declare
	Admitted    bool           // the node was declared
	Remove      bool           // Roster.Mark deletes the mark
}

// Roll is one reading of who is there.
type Roll struct {
	Live  []Live // by ID; what does not decode or is of another cluster is left out
	Marks []Mark // by ID
}

// Presence is one node's record under one lease.
type Presence interface {
	// Done is closed when the record is lost: its lease ended, it was deleted,
	// or another process took it over.
	Done() <-chan struct{}
	// Update replaces the record under the same lease. ErrConflict: it is no
	// longer this process's, and Done is closed.
	Update(ctx context.Context, l Live) error
	// End deletes the record with its lease, and stops renewing it. It may
	// be called more than once, and has to be called after Done too. If the
	// store does not answer the lease ends by itself.
	End(ctx context.Context) error
}

// Registrar keeps nodes' records under leases. Register is the loop that most
// callers want.
type Registrar interface {
	// Attach writes the record of node id under a fresh lease and renews it
	// until End. The record is gone when nothing has renewed the lease for
	// ttl (at least a second; a store that cannot do so makes it longer).
	// decide gets the cluster's id and the record that is there now (nil =
	// none) and returns the record to write, or an error, which Attach
	// returns. It may be called more than once: the record is written only
	// over the one that decide saw. Errors besides: ErrNoCluster,
	// ErrUnreachable, ErrConflict (others kept coming between).
	Attach(ctx context.Context, id string, ttl time.Duration, decide func(cluster topology.ClusterID, held *Live) (Live, error)) (Presence, error)
}

// Roster reads who is there, and keeps admission's memory.
type Roster interface {
	// Roll returns one linearizable reading. Errors: ErrNoCluster, ErrUnreachable.
	Roll(ctx context.Context) (Roll, error)
	// WatchRoll calls fn with the roll now and after every change, latest
	// wins, as Store.Watch does with the state.
	WatchRoll(ctx context.Context, fn func(Roll) error) error
	// Mark writes marks under the leadership: each whole, not all at once.
	// Errors: ErrNotLeader, ErrUnreachable.
	Mark(ctx context.Context, l Leadership, marks []Mark) error
	// SetOverlay writes what State.Overlay says, for as long as the leadership
	// lasts. Errors: ErrNotLeader, ErrUnreachable.
	SetOverlay(ctx context.Context, l Leadership, o Overlay) error
}

// Overlay says which nodes requests should go round. It is no part of a
// version and moves no key.
type Overlay struct {
	Bad []string // ids of the nodes whose own check fails, ascending
}

// Equal reports whether two overlays, nil included, say the same.
func (o *Overlay) Equal(other *Overlay) bool {
	return o == nil && other == nil || o != nil && other != nil && slices.Equal(o.Bad, other.Bad)
}

// overlay returns what the presences say.
func (r Roll) overlay() Overlay {
	var o Overlay
	for _, l := range r.Live {
		if l.Health == HealthBad {
			o.Bad = append(o.Bad, l.ID)
		}
	}
	slices.Sort(o.Bad)
	return o
}
