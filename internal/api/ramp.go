package api

import (
	"context"
	"slices"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// Ramp is the answer of GET transition: a change of owners that is made in steps.
type Ramp struct {
	Version topology.Version `json:"version"` // newest
	// UnderWay: owners change in steps; without that the rest is absent.
	UnderWay bool                    `json:"under_way"`
	Kind     topology.TransitionKind `json:"kind,omitempty"`
	// Moved is how many of Steps parts of the keys that get another owner have gone
	// over.
	Moved int `json:"moved"`
	Steps int `json:"steps,omitempty"`
	// Over is the time of all steps, such as "5m0s"; "" = they are made by hand.
	Over string `json:"over,omitempty"`
	// Back: the steps go back to what was before.
	Back  bool         `json:"back,omitempty"`
	Nodes []RampChange `json:"nodes,omitempty"` // whose owner weights change
}

// RampChange is the change of one node's owner weight, 0 = owns nothing.
type RampChange struct {
	ID     string `json:"id"`
	Before uint32 `json:"before"`
	After  uint32 `json:"after"`
}

// RampOf describes the transition of a state's newest version.
func RampOf(s membership.State) Ramp {
	if s.Head == nil {
		return Ramp{}
	}
	r := Ramp{Version: s.Head.Version()}
	x := s.Head.Transition()
	if x == nil {
		return r
	}
	r.UnderWay, r.Kind, r.Back, r.Steps = true, x.Kind, s.Turning(), membership.RampSteps
	r.Moved = int(x.Thresholds[0] / (1 << 64 / membership.RampSteps))
	if x.Over > 0 {
		r.Over = x.Over.String()
	}
	spec := s.Head.Spec()
	for _, was := range x.Before {
		r.Nodes = append(r.Nodes, RampChange{ID: was.ID, Before: was.Weight, After: spec.OwnerWeight(s.Head.Node(s.Head.Index(was.ID)))})
	}
	return r
}

// RampVerb is what is done to a change of owners that is made in steps.
type RampVerb string

// The verbs.
const (
	RampStep    RampVerb = "step"    // make steps at once, or take some back
	RampBack    RampVerb = "back"    // declare what was before; the steps turn back
	RampForward RampVerb = "forward" // declare what was to come again, after back
	RampFinish  RampVerb = "finish"  // make all that is left at once
)

// RampVerbs lists the verbs.
func RampVerbs() []RampVerb { return []RampVerb{RampStep, RampBack, RampForward, RampFinish} }

// RampEdit is the body of POST transition/{verb}.
type RampEdit struct {
	// Steps: verb step, 1 to membership.RampSteps, or negative for the other way;
	// absent = 1.
	Steps *int `json:"steps,omitempty"`
}

// Edit returns the edit that the body of POST transition/{verb} asks for. The error
// is an *Error.
func (e RampEdit) Edit(verb RampVerb) (membership.Edit, error) {
	if e.Steps != nil && verb != RampStep {
		return membership.Edit{}, Errorf(CodeInvalid, "send {}", "%s takes no fields", verb)
	}
	switch verb {
	case RampStep:
		steps := 1
		if e.Steps != nil {
			steps = *e.Steps
		}
		if steps == 0 {
			return membership.Edit{}, Errorf(CodeInvalid, `send {"steps": 1}, or {} for the same`, "no steps")
		}
		return membership.StepRamp(steps), nil
	case RampBack, RampForward:
		return membership.TurnRamp(verb == RampBack), nil
	case RampFinish:
		return membership.EndRamp(), nil
	}
	return membership.Edit{}, Errorf(CodeNotFound, "use step, back, forward or finish", "there is no verb %q for transitions", verb)
}

// again is the edit of "add" with ramp now while owners change in steps: of the node
// that is being added in steps it asks for nothing but their end, if it says nothing
// else of the node.
func (e NodeEdit) again(id string, add membership.Edit) membership.Edit {
	add.Meanwhile = func(head *topology.Topology, d topology.Declared) (topology.Declared, error) {
		comes := slices.ContainsFunc(head.Transition().Before, func(w topology.NodeWeight) bool { return w.ID == id && w.Weight == 0 })
		i := slices.IndexFunc(d.Nodes, func(n topology.Node) bool { return n.ID == id })
		if !comes || i < 0 || d.Nodes[i].OwnerWeight() == 0 || !e.describes(d.Nodes[i]) {
			return add.Apply(d)
		}
		return d, nil
	}
	return add
}

// describes reports whether n is what e says of it.
func (e NodeEdit) describes(n topology.Node) bool {
	for _, pair := range [][2]string{{e.Addr, n.Addr}, {e.Zone, n.Zone}, {e.Label, n.Label}} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return e.Weight == nil || *e.Weight == n.Weight
}

// Ramp says how a change of owners that is made in steps stands. Errors:
// membership.ErrNoCluster.
func (c *Client) Ramp(ctx context.Context, cluster string) (Ramp, error) {
	var v Ramp
	_, err := c.getJSON(ctx, Path(cluster, "transition"), nil, &v)
	return v, err
}

// EditRamp does verb to the change of owners that is made in steps. Errors:
// membership.ErrConflict (there is none), ErrInvalid, ErrFrozen.
func (c *Client) EditRamp(ctx context.Context, cluster string, verb RampVerb, e RampEdit, o EditOptions) (EditResult, error) {
	return c.post(ctx, Path(cluster, "transition", string(verb)), e, o)
}
