package membership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Limits of Edit.Ramp.
const (
	// RampSteps is the number of steps of a ramp, each of which is a version.
	RampSteps = 16
	MinRamp   = time.Second
	MaxRamp   = 7 * 24 * time.Hour
	// RampByHand in place of a time leaves the steps after the first to Edit.Steps.
	RampByHand time.Duration = -1
)

// rampStep is the part of the ranks that one step moves.
const rampStep = 1 << 64 / RampSteps

// ramp is what a leader knows of the transition under way. A new leader begins
// with what the topology says, and with a whole step's time.
type ramp struct {
	id   uint64
	from time.Time // when the last step was made, on this leader's monotonic clock
	made uint64    // generation of the newest edit whose Steps were made
}

// EndRamp returns the edit that makes what is left of a transition at once. Without
// one it changes nothing.
func EndRamp() Edit {
	return Edit{EndRamp: true, Apply: func(d topology.Declared) (topology.Declared, error) { return d, nil }}
}

// StepRamp returns the edit that makes steps of the transition under way; see
// Edit.Steps. ErrConflict if there is none.
func StepRamp(steps int) Edit {
	return Edit{Steps: steps, Apply: noRamp, Meanwhile: func(_ *topology.Topology, d topology.Declared) (topology.Declared, error) { return d, nil }}
}

func noRamp(d topology.Declared) (topology.Declared, error) {
	return d, fmt.Errorf("%w: no owners change in steps", ErrConflict)
}

// TurnRamp returns the edit that declares the owner weights before the transition
// under way, so that its steps turn back, or those after it again. A node that owned
// nothing before, as one that is being added, drains then and can be forgotten in the
// end. All else stays as it is declared. ErrConflict if there is no transition.
func TurnRamp(back bool) Edit {
	return Edit{Apply: noRamp, Meanwhile: func(head *topology.Topology, d topology.Declared) (topology.Declared, error) {
		for _, was := range head.Transition().Before {
			i := indexNode(d.Nodes, was.ID)
			after := head.Node(head.Index(was.ID)) // by law each is a node of the head
			switch {
			case i < 0 && !back:
				d.Nodes = append(d.Nodes, after)
			case i < 0: // and so it owns nothing, as before
			case !back:
				d.Nodes[i].Weight, d.Nodes[i].State = after.Weight, after.State
			case was.Weight == 0:
				d.Nodes[i].State = topology.StateDraining
			default:
				d.Nodes[i] = owning(d.Spec, d.Nodes[i], was.Weight)
			}
		}
		return d, nil
	}}
}

// owning returns n with a state, and a weight if need be, by which it owns as much.
func owning(spec topology.Spec, n topology.Node, weight uint32) topology.Node {
	if n.State != topology.StateActive && n.State != topology.StateDown {
		n.State = topology.StateActive
	}
	if spec.OwnerWeight(n) != weight {
		n.Weight = weight
	}
	return n
}

// Turning reports whether the steps of the head go back to what was before, as is
// declared: such edits are answered by the last of them.
func (s State) Turning() bool {
	if s.Head == nil || s.Head.Transition() == nil {
		return false
	}
	_, back, _ := placement.Heading(s.Head, s.Declared.Spec, s.Declared.Nodes)
	return back
}

// rampOf returns the longest ramp that the edits ask for.
func rampOf(notes []Note) (over time.Duration) {
	for _, n := range notes {
		if n.Ramp > over || over == 0 {
			over = n.Ramp
		}
	}
	return over
}

func newTransition(over time.Duration) topology.Transition {
	return topology.Transition{ID: rand.Uint64() | 1, Kind: topology.TransitionNone, Over: max(0, over), Thresholds: []uint64{rampStep}}
}

// stepsAsked adds up the steps that edits ask for and that this leader has not made.
func (c *Controller) stepsAsked(notes []Note) (steps int) {
	for _, n := range notes {
		if n.Generation > c.ramp.made {
			steps += n.Steps
		}
	}
	return steps
}

// goOn brings the head's transition one step further when its time has come:
// towards what is declared, or back if that is declared which was before. Edits
// that move no key are answered meanwhile; others wait (State.Apply refuses them,
// but one may have come before the transition).
func (c *Controller) goOn(ctx context.Context, l Leadership, s *State) error {
	x := s.Head.Transition()
	if err := c.load(s); err != nil {
		return err
	}
	began := time.Now()
	if c.ramp.id != x.ID {
		c.ramp.id, c.ramp.from = x.ID, began
	}
	_, back, stray := placement.Heading(s.Head, s.Declared.Spec, s.Declared.Nodes)
	pub := Publication{Generation: s.Generation, Expect: s.Head.Ref()}
	nodes := s.Declared.Nodes
	if stray != nil || back { // the nodes stay those of the mapping after until the end
		nodes, pub.Generation = s.Head.Nodes(), s.Applied
	}
	ended := slices.ContainsFunc(s.pending(), func(n Note) bool { return n.EndRamp })
	due := x.Over > 0 && began.Sub(c.ramp.from) >= x.Over/RampSteps
	at, last := advance(x.Thresholds[0], 1, back)
	if steps := c.stepsAsked(s.pending()); steps != 0 {
		at, last = advance(x.Thresholds[0], steps, back)
		due = last || at != x.Thresholds[0]
	}
	if x.Over > 0 {
		c.retry = max(time.Millisecond, x.Over/RampSteps-began.Sub(c.ramp.from))
	}
	var next *placement.Table
	var err error
	switch {
	case ended || due && last:
		if back {
			nodes, pub.Generation = s.Declared.Nodes, s.Generation
		}
		next, err = placement.Settle(c.prev, c.draftOf(s, nodes))
	case due:
		next, err = placement.Step(c.prev, c.draftOf(s, nodes), at)
	case pub.Generation != s.Applied && !answers(s.Head, s.Declared):
		next, err = placement.Step(c.prev, c.draftOf(s, nodes), x.Thresholds[0])
	case pub.Generation != s.Applied:
		if err := c.publish(ctx, l, s, pub); err != nil {
			return err
		}
	}
	if err != nil {
		return &refusedError{fmt.Errorf("membership: transition of %s: %w", s.Head.Version(), err)}
	}
	if next != nil {
		if err := c.publishNext(ctx, l, s, pub, next, began); err != nil {
			return err
		}
		s.Head, c.ramp.made = next.Topology(), s.Generation
		if !next.Moving() {
			c.retry = 0
			return c.answer(ctx, l, s) // what has waited
		}
		if due {
			c.ramp.from, c.retry = began, x.Over/RampSteps
		}
	}
	if stray != nil {
		return &refusedError{fmt.Errorf("%w: version %s: %w", ErrConflict, s.Head.Version(), stray)}
	}
	return nil
}

// advance returns the threshold after so many more steps, and whether the last is
// among them. Steps the other way end at the first.
func advance(at uint64, steps int, back bool) (next uint64, last bool) {
	k, most := int(at/rampStep), RampSteps // of the keys, k sixteenths have gone over
	if back {
		k = RampSteps - k
		if at%rampStep != 0 {
			k--
		}
	}
	if k += steps; k >= most {
		return 0, true
	}
	k = max(1, k)
	if back {
		k = RampSteps - k
	}
	return uint64(k) * rampStep, false
}

// draftOf is the draft of a version that goes on with the head's spec.
func (c *Controller) draftOf(s *State, nodes []topology.Node) topology.Draft {
	d := c.draft(s, nodes)
	d.Spec = s.Head.Spec()
	return d
}
