package server_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/membership"
)

// A change of owners in steps, over HTTP: the first step answers the edit, other
// changes are refused until the last, which "now" makes at once.
func TestRampOverHTTP(t *testing.T) {
	r, _ := withStore(t)
	first := r.put(declared(3))
	begun := r.node("more", api.VerbAdd, api.NodeEdit{Ramp: "1h"})
	if begun.Version.Seq != first.Version.Seq+1 {
		t.Fatalf("the first step is version %s", begun.Version)
	}
	topo, err := r.api.TopologyAt(t.Context(), "cache", begun.Version)
	if err != nil || topo.Transition() == nil || topo.Transition().Over != time.Hour {
		t.Fatalf("%v, %+v", err, topo.Transition())
	}
	two := uint32(2)
	if _, err := r.api.EditNode(t.Context(), "cache", "node-000", api.VerbWeight, api.NodeEdit{Weight: &two}, api.EditOptions{}); !errors.Is(err, membership.ErrConflict) {
		t.Fatalf("another change meanwhile: %v", err)
	}
	one := uint32(1)
	ended := r.node("more", api.VerbWeight, api.NodeEdit{Weight: &one, Ramp: "now"})
	if topo, err = r.api.TopologyAt(t.Context(), "cache", ended.Version); err != nil || topo.Transition() != nil {
		t.Fatalf("not ended: %v", err)
	}
	for ramp, verb := range map[string]api.Verb{"5m": api.VerbRemove, "soon": api.VerbDrain, "1ms": api.VerbUndrain, "-5m": api.VerbDrain} {
		if _, err := r.api.EditNode(t.Context(), "cache", "more", verb, api.NodeEdit{Ramp: ramp}, api.EditOptions{}); !errors.Is(err, membership.ErrInvalid) {
			t.Errorf("%s with ramp %s: %v", verb, ramp, err)
		}
	}
}
