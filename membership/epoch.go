package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

var (
	// ErrWentBack says that somebody holds a version that the store's head neither is
	// nor descends from, so the store was restored from a backup, copied or
	// replaced. Nothing is published until the epoch is raised.
	ErrWentBack = errors.New("membership: the store went back")
	// ErrFrozen says that an operator froze the cluster; nothing is published until it
	// is unfrozen.
	ErrFrozen = errors.New("membership: frozen")
)

// CauseWentBack is the kind of cause of the first version of a raised epoch.
const CauseWentBack = "store went back"

const (
	// MaxShown is the number of versions that a store remembers as evidence;
	// of more, the newest ones and the newest trusted one.
	MaxShown = 8
	// maxEpochAhead bounds by how much a version that somebody presents may
	// be ahead of the store's epoch, so that nobody uses up all epochs.
	maxEpochAhead = 1 << 32
	// BumpInterval is the least time between two epochs that a leader begins
	// by itself: two live copies of one store would outbid each other.
	BumpInterval = time.Hour
)

// Standing is what a store knows of its own past, and of an operator's hold on
// it. Every write of a version or of declared state is fenced by it.
type Standing struct {
	// Shown is the evidence that the store went back, newest version first;
	// empty normally. A bump clears it.
	Shown []Shown `json:"shown,omitempty"`
	// Frozen says who froze the cluster; nil = not frozen.
	Frozen *Freeze `json:"frozen,omitempty"`
	// BumpedAt is when the epoch was raised last, by the clock of who did it,
	// milliseconds since 1970; 0 = never. Only BumpInterval goes by it.
	BumpedAt int64 `json:"bumped_at,omitempty"`
}

// Shown is a version that somebody holds and presented.
type Shown struct {
	Ref topology.Ref `json:"ref"` // History may be 0: the digest tells
	By  string       `json:"by"`  // who presented it, at most MaxNoteLen bytes
	// Trusted: the leader may raise the epoch on this evidence by itself. A
	// server's own record of what it served is; what a client says is not, as
	// long as nobody knows who it is.
	Trusted bool  `json:"trusted,omitempty"`
	At      int64 `json:"at,omitempty"` // presenter's clock, milliseconds since 1970; decides nothing
}

// Freeze is an operator's word that nothing is to be published.
type Freeze struct {
	By  string `json:"by,omitempty"`  // at most MaxNoteLen bytes
	Why string `json:"why,omitempty"` // the same
	At  int64  `json:"at,omitempty"`  // milliseconds since 1970; decides nothing
}

// Bump begins an epoch.
type Bump struct {
	Epoch   uint64           // above the stored one
	History topology.History // fresh
	// Next has the head's contents, version Epoch.1 and the head as parent;
	// nil if there is no version yet.
	Next     *topology.Topology
	Movement placement.Report // stored beside Next
	Expect   topology.Ref     // the head it was made from; zero if there is none
	At       int64            // see Standing.BumpedAt
}

// Epochs is the part of a store that keeps versions from going back. See the
// rule in package documentation of sdk, and State.Bump.
type Epochs interface {
	// Show presents a version after a linearizable reading: if the store
	// went back behind it, it is noted as evidence, in the same transaction
	// that compares what was read, and Show returns true. Errors: ErrInvalid
	// for an epoch out of reach.
	Show(ctx context.Context, s Shown) (bool, error)
	// Bump begins an epoch, or changes nothing: one transaction compares
	// meta, head and the election key. l nil is for an operator's word: then
	// it compares meta and head, which every leader's write compares too.
	// Errors: ErrConflict, ErrNotLeader, ErrInvalid.
	Bump(ctx context.Context, l Leadership, b Bump) error
	// Freeze holds back publication, or lets it go on (nil), and returns the
	// state after it. Doing it twice is no error: the first freeze stands.
	// Errors: ErrInvalid for notes that an Edit would not take, either.
	Freeze(ctx context.Context, f *Freeze) (State, error)
}

// WentBack reports whether a store at position p went back behind held, a
// version that somebody holds: held is newer than the head, or of its epoch and
// no ancestor of it. inChain says whether held is in the chain of the head
// (Reader.Descends). What is older than the chain reaches is no evidence, nor is
// a version of an earlier epoch, nor one of another cluster. p must come from a
// linearizable reading: a server that lags is no evidence.
func (p Position) WentBack(held topology.Ref, inChain bool) bool {
	v, head := held.Version, p.Head.Version
	switch {
	case held.ClusterID != p.ID || v.IsZero() || v.Epoch < p.Epoch:
		return false
	case v.Epoch > p.Epoch || v.Seq > head.Seq:
		return true
	case inChain:
		return false
	}
	return v.Seq+KeptDigests > head.Seq
}

// Admit notes s among the evidence, and reports whether that changes anything.
// For those who implement a store. Errors: ErrInvalid.
func (s *Standing) Admit(epoch uint64, shown Shown) (changed bool, err error) {
	if shown.Ref.Version.Epoch > epoch+maxEpochAhead {
		return false, fmt.Errorf("%w: version %s is further ahead of epoch %d than any store can have been", ErrInvalid, shown.Ref, epoch)
	}
	if len(shown.By) > MaxNoteLen {
		shown.By = shown.By[:MaxNoteLen]
	}
	list := slices.Clone(s.Shown)
	if i := slices.IndexFunc(list, func(o Shown) bool { return o.Ref.Version == shown.Ref.Version && o.Ref.Digest == shown.Ref.Digest }); i >= 0 {
		if list[i].Trusted || !shown.Trusted {
			return false, nil
		}
		list[i] = shown
	} else {
		list = append(list, shown)
	}
	slices.SortStableFunc(list, func(a, b Shown) int { return b.Ref.Version.Compare(a.Ref.Version) })
	list = keepShown(list)
	same := slices.Equal(list, s.Shown)
	s.Shown = list
	return !same, nil
}

// keepShown drops the oldest ones over MaxShown, but the newest trusted one
// stays.
func keepShown(list []Shown) []Shown {
	trusted := slices.IndexFunc(list, func(s Shown) bool { return s.Trusted })
	for i := len(list) - 1; len(list) > MaxShown; i-- {
		if i != trusted {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

// Err says that the store went back and who showed it, or returns nil.
func (s Standing) Err(head topology.Ref) error {
	if len(s.Shown) == 0 {
		return nil
	}
	newest := s.Shown[0]
	return fmt.Errorf("%w: its head is %s, but %s has %s; nothing is published until the epoch is raised (shardd epoch bump)", ErrWentBack, head, newest.By, newest.Ref)
}

// Check says why f cannot be kept (ErrInvalid), or returns nil, as for a nil f. For
// those who implement a store.
func (f *Freeze) Check() error {
	if f == nil {
		return nil
	}
	return checkNotes(f.By, f.Why)
}

// Err says who froze the cluster.
func (f *Freeze) Err() error {
	if f == nil {
		return nil
	}
	text := "frozen"
	if f.By != "" {
		text += " by " + f.By
	}
	if f.Why != "" {
		text += ": " + f.Why
	}
	return fmt.Errorf("%w: %s; nothing is published until shardd unfreeze", ErrFrozen, text)
}

// trusted reports whether some evidence is.
func (s Standing) trusted() bool {
	return slices.ContainsFunc(s.Shown, func(s Shown) bool { return s.Trusted })
}

// bumpedLately reports whether the last bump lies less than BumpInterval before
// now, or after it: of clocks that differ neither is believed.
func (s Standing) bumpedLately(now time.Time) bool {
	return s.BumpedAt != 0 && now.Sub(time.UnixMilli(s.BumpedAt)).Abs() < BumpInterval
}

// NextEpoch returns the epoch of a bump: above the stored one and every one that
// was presented, in the store's evidence or in more.
func (s State) NextEpoch(more ...uint64) uint64 {
	epoch := s.Epoch
	for _, shown := range s.Shown {
		epoch = max(epoch, shown.Ref.Version.Epoch)
	}
	for _, e := range more {
		epoch = max(epoch, e)
	}
	return epoch + 1
}

// Bump makes the bump of s: a new epoch and history whose first version has the
// contents of the present head, so that no key moves against the head. The
// movement report is against from, the newest version shown, if it is at hand;
// else against the head. above are further epochs to be above of.
func (s State) Bump(from *topology.Topology, cause topology.Cause, now time.Time, above ...uint64) (Bump, error) {
	b := Bump{Epoch: s.NextEpoch(above...), History: topology.NewHistory(), Expect: s.Position().Head, At: now.UnixMilli()}
	if b.Epoch == 0 || b.Epoch-s.Epoch > maxEpochAhead+1 {
		return Bump{}, fmt.Errorf("%w: an epoch above %d is further ahead of %d than any store can have been", ErrInvalid, b.Epoch-1, s.Epoch)
	}
	if s.Head == nil {
		return b, nil
	}
	d := s.Head.Draft()
	d.Version, d.History, d.Parent = topology.Version{Epoch: b.Epoch, Seq: 1}, b.History, s.Head.Digest()
	cause.Kind, cause.At = CauseWentBack, now.UnixMilli()
	d.Cause = cause
	if err := placement.Renew(&d); err != nil { // nobody knows what owned keys in the versions that are gone
		return Bump{}, fmt.Errorf("membership: bump to epoch %d: %w", b.Epoch, err)
	}
	next, err := topology.New(d)
	if err != nil {
		return Bump{}, fmt.Errorf("membership: bump to epoch %d: %w", b.Epoch, err)
	}
	b.Next = next
	if from == nil {
		from = s.Head
	}
	if b.Movement, err = movement(from, next); errors.Is(err, placement.ErrMoving) {
		b.Movement, err = movement(s.Head, next)
	}
	b.Movement.Cause = CauseWentBack
	return b, err
}

func movement(from, to *topology.Topology) (placement.Report, error) {
	a, err := placement.New(from)
	if err != nil {
		return placement.Report{}, fmt.Errorf("membership: version %s: %w", from.Version(), err)
	}
	b, err := placement.New(to)
	if err != nil {
		return placement.Report{}, fmt.Errorf("membership: version %s: %w", to.Version(), err)
	}
	return placement.Movement(a, b)
}

// CheckBump says why b must not be written at p, or returns nil: ErrConflict if
// it was made from another head, ErrInvalid if it is not what Bump describes.
// For those who implement a store.
func (p Position) CheckBump(b Bump) error {
	switch {
	case b.Expect != p.Head:
		return fmt.Errorf("%w: the head is %s, the bump was made from %s; load again", ErrConflict, p.Head, b.Expect)
	case b.Epoch <= p.Epoch:
		return fmt.Errorf("%w: epoch %d is not above %d; load again", ErrConflict, b.Epoch, p.Epoch)
	case b.History == 0 || b.History == p.History:
		return fmt.Errorf("%w: a new epoch needs a history of its own", ErrInvalid)
	case b.Next == nil && p.Head.IsZero():
		return nil
	case b.Next == nil || p.Head.IsZero():
		return fmt.Errorf("%w: a bump carries the head over, and there is one only after the first version", ErrInvalid)
	case b.Next.Version() != topology.Version{Epoch: b.Epoch, Seq: 1}:
		return fmt.Errorf("%w: version %s where %d.1 begins the epoch", ErrInvalid, b.Next.Version(), b.Epoch)
	}
	p.Epoch, p.History = b.Epoch, b.History
	return p.checkNext(b.Next)
}
