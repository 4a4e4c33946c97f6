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
)

// rampStep is the part of the ranks that one step moves.
const rampStep = 1 << 64 / RampSteps

// ramp is what a leader knows of the transition under way. A new leader begins
// with what the topology says, and with a whole step's time.
type ramp struct {
	id   uint64
	from time.Time // when the last step was made, on this leader's monotonic clock
}

// EndRamp returns the edit that makes what is left of a transition at once. Without
// one it changes nothing.
func EndRamp() Edit {
	return Edit{EndRamp: true, Apply: func(d topology.Declared) (topology.Declared, error) { return d, nil }}
}

// rampOf returns the longest ramp that the edits ask for.
func rampOf(notes []Note) (over time.Duration) {
	for _, n := range notes {
		over = max(over, n.Ramp)
	}
	return over
}

func newTransition(over time.Duration) topology.Transition {
	return topology.Transition{ID: rand.Uint64() | 1, Kind: topology.TransitionNone, Over: over, Thresholds: []uint64{rampStep}}
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
		c.ramp = ramp{x.ID, began}
	}
	_, back, stray := placement.Heading(s.Head, s.Declared.Spec, s.Declared.Nodes)
	pub := Publication{Generation: s.Generation, Expect: s.Head.Ref()}
	nodes := s.Declared.Nodes
	if stray != nil || back { // the nodes stay those of the mapping after until the end
		nodes, pub.Generation = s.Head.Nodes(), s.Applied
	}
	ended := slices.ContainsFunc(s.pending(), func(n Note) bool { return n.EndRamp })
	due := x.Over > 0 && began.Sub(c.ramp.from) >= x.Over/RampSteps
	if x.Over > 0 {
		c.retry = max(time.Millisecond, x.Over/RampSteps-began.Sub(c.ramp.from))
	}
	var next *placement.Table
	var err error
	switch at, last := advance(x.Thresholds[0], back); {
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
		s.Head = next.Topology()
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

// advance returns the threshold after one more step, and whether that is the
// last.
func advance(at uint64, back bool) (next uint64, last bool) {
	if back {
		return at - rampStep, at <= rampStep
	}
	return at + rampStep, at >= (RampSteps-1)*rampStep
}

// draftOf is the draft of a version that goes on with the head's spec.
func (c *Controller) draftOf(s *State, nodes []topology.Node) topology.Draft {
	d := c.draft(s, nodes)
	d.Spec = s.Head.Spec()
	return d
}
