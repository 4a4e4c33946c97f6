package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func etag(s State) string {
	version := "0.0"
	if s.Head != nil {
		version = s.Head.Version().String()
	}
	if s.ID.IsZero() {
		return fmt.Sprintf(`"%s+%d"`, version, s.Generation)
	}
	return fmt.Sprintf(`"%s+%d@%s"`, version, s.Generation, s.ID)
}

// Apply returns the state that the edit makes of s, its generation raised by
// one. It is what Store.Declare does between reading and writing, for those who
// implement a store; s is not changed. Errors: ErrConflict if the edit was made
// from another generation or cluster, ErrFrozen, ErrInvalid, ErrCorrupt if s.Invalid stands in the
// way, whatever Edit.Apply returned.
func (s State) Apply(e Edit) (State, error) {
	if !e.Of.IsZero() && e.Of != s.ID {
		return State{}, fmt.Errorf("%w: cluster %s has id %s, the edit was made from the one with id %s, which was deleted; read it again and decide anew", ErrConflict, s.Declared.Cluster, s.ID, e.Of)
	}
	if e.Expect != 0 && e.Expect != s.Generation {
		return State{}, fmt.Errorf("%w: version changed: the declared state has generation %d, the edit was made from %d; read it again and decide anew", ErrConflict, s.Generation, e.Expect)
	}
	if e.HeedFreeze && s.Frozen != nil {
		return State{}, s.Frozen.Err()
	}
	if s.Invalid != nil && !e.Whole {
		return State{}, fmt.Errorf("%w: %w; replace the declared state as a whole", ErrCorrupt, s.Invalid)
	}
	if err := e.check(); err != nil {
		return State{}, err
	}
	before := s.Declared
	before.Nodes = slices.Clone(before.Nodes)
	apply := e.Apply
	if e.Meanwhile != nil && s.Head != nil && s.Head.Transition() != nil {
		apply = func(d topology.Declared) (topology.Declared, error) { return e.Meanwhile(s.Head, d) }
	}
	next, err := apply(before)
	if err != nil {
		return State{}, err
	}
	if next.Cluster != s.Declared.Cluster {
		return State{}, fmt.Errorf("%w: the edit is for cluster %q, not %q", ErrInvalid, next.Cluster, s.Declared.Cluster)
	}
	if s.Declared, err = Normal(next); err != nil {
		return State{}, err
	}
	// What could never be published would stand in the way of later edits.
	if err := placement.Check(s.Head, s.Declared); errors.Is(err, placement.ErrMoving) {
		return State{}, fmt.Errorf("%w: version %s: %w; wait until the steps are made, turn them back, or end them at once", ErrConflict, s.Head.Version(), err)
	} else if err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.Invalid = nil
	s.Generation++
	s.Edits = append(s.pending(), Note{Generation: s.Generation, By: e.By, Why: e.Why, Replace: maps.Clone(e.Replace), Ramp: e.Ramp, EndRamp: e.EndRamp, Steps: e.Steps, Restore: e.Restore})
	s.Edits = s.Edits[max(0, len(s.Edits)-MaxNotes):]
	return s, nil
}

// pending returns a copy of the notes that no version has answered.
func (s State) pending() []Note {
	return slices.DeleteFunc(slices.Clone(s.Edits), func(n Note) bool { return n.Generation <= s.Applied })
}

// Normal returns d with its spec in normal form and its nodes sorted by ID, or
// ErrInvalid wrapping the *topology.FieldError that says what is wrong.
func Normal(d topology.Declared) (topology.Declared, error) {
	if err := d.Validate(); err != nil {
		return topology.Declared{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	d.Spec = d.Spec.Normal()
	d.Nodes = slices.Clone(d.Nodes)
	slices.SortFunc(d.Nodes, func(a, b topology.Node) int { return strings.Compare(a.ID, b.ID) })
	return d, nil
}

func (e Edit) check() error {
	if e.Apply == nil {
		return fmt.Errorf("%w: an edit without Apply", ErrInvalid)
	}
	if e.Ramp != 0 && e.Ramp != RampByHand && (e.Ramp < MinRamp || e.Ramp > MaxRamp) {
		return fmt.Errorf("%w: a ramp over %v: want %v to %v, or 0 for at once", ErrInvalid, e.Ramp, MinRamp, MaxRamp)
	}
	if e.Steps < -RampSteps || e.Steps > RampSteps {
		return fmt.Errorf("%w: %d steps: want -%d to %d", ErrInvalid, e.Steps, RampSteps, RampSteps)
	}
	return checkNotes(e.By, e.Why)
}

// checkNotes says why words of an operator cannot be kept, or returns nil.
func checkNotes(notes ...string) error {
	for _, s := range notes {
		if len(s) > MaxNoteLen || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("%w: note %.40q: want at most %d bytes of UTF-8 without control characters", ErrInvalid, s, MaxNoteLen)
		}
	}
	return nil
}

// Position is where a cluster stands, as far as a publication depends on it.
type Position struct {
	ID         topology.ClusterID
	Epoch      uint64
	History    topology.History
	Head       topology.Ref // zero before the first version
	Generation uint64       // of the declared state
	Applied    uint64       // what Head answers
	Standing   Standing     // what forbids publication
}

// Position returns where the cluster stands.
func (s State) Position() Position {
	p := Position{ID: s.ID, Epoch: s.Epoch, History: s.History, Generation: s.Generation, Applied: s.Applied, Standing: s.Standing}
	if s.Head != nil {
		p.Head = s.Head.Ref()
	}
	return p
}

// Check says why pub must not be written at p, or returns nil: ErrConflict if it
// was made from another position, ErrWentBack or ErrFrozen if nothing is to be
// published, ErrInvalid if it does not continue the chain.
// For those who implement a store.
func (p Position) Check(pub Publication) error {
	if err := p.Standing.Err(p.Head); err != nil {
		return err
	}
	if err := p.Standing.Frozen.Err(); err != nil {
		return err
	}
	switch {
	case pub.Expect != p.Head:
		return fmt.Errorf("%w: the head is %s, the version was made from %s; load again", ErrConflict, p.Head, pub.Expect)
	case pub.Generation > p.Generation || pub.Generation < p.Applied:
		return fmt.Errorf("%w: made from generation %d, the store has %d and the head answers %d; load again", ErrConflict, pub.Generation, p.Generation, p.Applied)
	case pub.Next == nil && p.Head.IsZero():
		return fmt.Errorf("%w: there is no version yet that could answer generation %d", ErrInvalid, pub.Generation)
	case pub.Next == nil:
		return nil
	}
	return p.checkNext(pub.Next)
}

func (p Position) checkNext(t *topology.Topology) error {
	want := topology.Version{Epoch: p.Epoch, Seq: 1}
	if p.Head.Version.Epoch == p.Epoch {
		want.Seq = p.Head.Version.Seq + 1
	}
	ref := t.Ref()
	switch {
	case ref.ClusterID != p.ID || ref.History != p.History:
		return fmt.Errorf("%w: version of cluster %s, history %s, for cluster %s, history %s", ErrInvalid, ref.ClusterID, ref.History, p.ID, p.History)
	case ref.Version != want:
		return fmt.Errorf("%w: version %s where %s comes next", ErrInvalid, ref.Version, want)
	case t.Parent() != p.Head.Digest:
		return fmt.Errorf("%w: version %s has parent %s, the head is %s", ErrInvalid, ref.Version, t.Parent(), p.Head.Digest)
	case !t.Complete():
		return fmt.Errorf("%w: version %s lacks tables: %w", ErrInvalid, ref.Version, topology.ErrMissingObject)
	case t.Mapping().IsZero():
		return fmt.Errorf("%w: version %s has no mapping digest", ErrInvalid, ref.Version)
	}
	return nil
}
