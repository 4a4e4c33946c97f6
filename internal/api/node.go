package api

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// Edit returns the edit that the body of POST nodes/{id}/{verb} asks for. The
// error is an *Error: fields that the verb does not take, or lacks.
func (e NodeEdit) Edit(id string, verb Verb) (membership.Edit, error) {
	edit, err := e.atOnce(id, verb)
	switch {
	case err != nil || e.Ramp == "":
		return edit, err
	case verb != VerbAdd && verb != VerbWeight && verb != VerbDrain && verb != VerbUndrain:
		return membership.Edit{}, Errorf(CodeInvalid, "only add, weight, drain and undrain take ramp", "%s takes no field ramp", verb)
	case e.Ramp == RampNow:
		if edit.EndRamp = true; verb == VerbAdd {
			edit = e.again(id, edit)
		}
		return edit, nil
	case e.Ramp == RampHand:
		edit.Ramp = membership.RampByHand
		return edit, nil
	}
	if edit.Ramp, err = time.ParseDuration(e.Ramp); err != nil || edit.Ramp < membership.MinRamp || edit.Ramp > membership.MaxRamp {
		return membership.Edit{}, Errorf(CodeInvalid, fmt.Sprintf("give a duration from %v to %v, such as 5m, %s for steps by hand, or %s for at once", membership.MinRamp, membership.MaxRamp, RampHand, RampNow), "ramp %q", e.Ramp)
	}
	return edit, nil
}

// Values of NodeEdit.Ramp besides durations.
const (
	RampNow  = "now"  // makes what is left of a ramp at once
	RampHand = "hand" // leaves the steps after the first to POST transition/step
)

// atOnce is Edit without a ramp.
func (e NodeEdit) atOnce(id string, verb Verb) (membership.Edit, error) {
	if e.By != "" && verb != VerbReplace {
		return membership.Edit{}, Errorf(CodeInvalid, "only replace takes by", "%s takes no field by", verb)
	}
	details := e.Addr != "" || e.Zone != "" || e.Label != ""
	switch verb {
	case VerbAdd:
		return e.add(id), nil
	case VerbRemove:
		if details || e.Weight != nil {
			return membership.Edit{}, Errorf(CodeInvalid, "send {}", "remove takes no fields")
		}
		return membership.RemoveNode(id), nil
	case VerbWeight:
		if details || e.Weight == nil {
			return membership.Edit{}, Errorf(CodeInvalid, `send {"weight": 2}`, "weight takes the field weight and no other")
		}
		return membership.SetWeight(id, *e.Weight), nil
	}
	return e.otherEdit(id, verb, details)
}

// add is Edit for the verb add.
func (e NodeEdit) add(id string) membership.Edit {
	return membership.Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
		n := topology.Node{ID: id, Addr: e.Addr, Zone: e.Zone, Label: e.Label, Weight: d.Spec.Compat.DefaultWeight()}
		if e.Weight != nil {
			n.Weight = *e.Weight
		}
		return membership.AddNode(n).Apply(d)
	}}
}

// otherEdit is Edit for the verbs that change what a node is.
func (e NodeEdit) otherEdit(id string, verb Verb, details bool) (membership.Edit, error) {
	plain := map[Verb]func(string) membership.Edit{VerbDrain: membership.Drain, VerbUndrain: membership.Undrain, VerbForget: membership.ForgetNode}
	switch {
	case verb == VerbReplace && e.By == "":
		return membership.Edit{}, Errorf(CodeInvalid, `send {"by": "cache-d", "addr": "10.0.0.4:11211"}`, "replace takes the field by, the id of the new node")
	case verb == VerbReplace:
		n := topology.Node{ID: e.By, Addr: e.Addr, Zone: e.Zone, Label: e.Label}
		if e.Weight != nil {
			n.Weight = *e.Weight
		}
		return membership.ReplaceNode(id, n), nil
	case plain[verb] != nil && (details || e.Weight != nil || e.By != ""):
		return membership.Edit{}, Errorf(CodeInvalid, "send {}", "%s takes no fields", verb)
	case plain[verb] != nil:
		return plain[verb](id), nil
	}
	return membership.Edit{}, Errorf(CodeNotFound, "use add, remove, weight, drain, undrain, replace or forget", "there is no verb %q for nodes", verb)
}
