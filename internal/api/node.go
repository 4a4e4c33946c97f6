package api

import (
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// Edit returns the edit that the body of POST nodes/{id}/{verb} asks for. The
// error is an *Error: fields that the verb does not take, or lacks.
func (e NodeEdit) Edit(id string, verb Verb) (membership.Edit, error) {
	details := e.Addr != "" || e.Zone != "" || e.Label != ""
	switch verb {
	case VerbAdd:
		n := topology.Node{ID: id, Addr: e.Addr, Zone: e.Zone, Label: e.Label, Weight: 1}
		if e.Weight != nil {
			n.Weight = *e.Weight
		}
		return membership.AddNode(n), nil
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
	return membership.Edit{}, Errorf(CodeNotFound, "use add, remove or weight", "there is no verb %q for nodes", verb)
}
