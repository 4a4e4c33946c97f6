package sdk

import (
	"time"

	"github.com/shardd/shardd/topology"
)

// State is what a client holds and how it fares with its source.
type State struct {
	Cluster string       // name; "" while nothing is held
	Held    topology.Ref // what lookups go by; zero = nothing
	Nodes   int          // nodes in it, owners or not

	TakenAt     time.Time // when Held was taken; zero = never
	ConfirmedAt time.Time // when the source last said that Held is the newest, or brought it

	// Origin is where Held came from. A snapshot counts as the source's as
	// soon as the source confirms it.
	Origin   Origin
	Snapshot SnapshotState // zero without WithSnapshot

	Taken   uint64 // topologies taken so far
	Refused uint64 // topologies refused so far

	// Problem is the newest trouble with the source since Held was last
	// taken or confirmed; nil = none. It may wrap ErrCluster, ErrForked,
	// ErrOlder or topology.ErrUnknown, which do not mend themselves by
	// waiting, as a lost connection does.
	Problem   error
	ProblemAt time.Time // when Problem came up last
}

func (s *State) took(t *topology.Topology, now time.Time) {
	s.Cluster, s.Held, s.Nodes = t.Cluster(), t.Ref(), t.Len()
	s.TakenAt = now
	s.Taken++
	s.confirmed(now)
}

// fromSnapshot says that t, just taken, comes from the snapshot file.
func (s *State) fromSnapshot(t *topology.Topology, savedAt time.Time) {
	s.ConfirmedAt, s.Origin = savedAt, OriginSnapshot
	s.Snapshot.Saved, s.Snapshot.SavedAt = t.Ref(), savedAt
}

func (s *State) confirmed(now time.Time) {
	s.ConfirmedAt, s.Origin = now, OriginSource
	s.Problem, s.ProblemAt = nil, time.Time{}
}

// State returns what the client holds and how it fares with its source.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Age returns the time since the source last brought the topology or confirmed
// that it is the newest, 0 if none is held. Some seconds are normal; an age that
// grows means that the source is out of reach or sends what is refused, which
// State says. Right after a start from a snapshot it counts from when the source
// confirmed that to the process before. Lookups go on by the old topology.
func (c *Client) Age() time.Duration {
	s := c.State()
	if s.ConfirmedAt.IsZero() {
		return 0
	}
	return time.Since(s.ConfirmedAt)
}
