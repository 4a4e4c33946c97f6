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

// Steps by an operator's hand over HTTP: forth, back, turned back and forward,
// finished; "add" with ramp "now" of the node that is being added finishes, too.
func TestRampVerbs(t *testing.T) {
	r, _ := withStore(t)
	r.put(declared(3))
	ramp := func(verb api.RampVerb, steps int) api.EditResult {
		t.Helper()
		var e api.RampEdit
		if steps != 0 {
			e.Steps = &steps
		}
		res, err := r.api.EditRamp(t.Context(), "cache", verb, e, api.EditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	want := func(what string, moved int, back bool) api.Ramp {
		t.Helper()
		got, err := r.api.Ramp(t.Context(), "cache")
		if err != nil || got.UnderWay != (moved > 0) || got.Moved != moved || got.Back != back {
			t.Fatalf("%s: %+v, %v; want %d moved, back %v", what, got, err, moved, back)
		}
		return got
	}
	want("nothing", 0, false)
	for _, verb := range []api.RampVerb{api.RampStep, api.RampBack, api.RampForward} {
		if _, err := r.api.EditRamp(t.Context(), "cache", verb, api.RampEdit{}, api.EditOptions{}); !errors.Is(err, membership.ErrConflict) {
			t.Errorf("%s without a ramp: %v", verb, err)
		}
	}
	res := r.node("more", api.VerbAdd, api.NodeEdit{Addr: "more:1", Ramp: "hand"})
	if res.Ramp == nil || !res.Published {
		t.Errorf("%+v", res)
	}
	if got := want("begun", 1, false); got.Over != "" || got.Steps != 16 || len(got.Nodes) != 1 || got.Nodes[0] != (api.RampChange{ID: "more", After: 1}) {
		t.Errorf("%+v", got)
	}
	ramp(api.RampStep, 0)
	want("a step", 2, false)
	ramp(api.RampStep, 5)
	want("five more", 7, false)
	ramp(api.RampStep, -3)
	want("three back", 4, false)
	began := time.Now()
	if res := ramp(api.RampBack, 0); res.Published || res.Ramp == nil || !res.Ramp.Back || time.Since(began) > 4*time.Second {
		t.Errorf("after %v: %+v", time.Since(began), res)
	}
	ramp(api.RampStep, 2)
	for deadline := time.Now().Add(10 * time.Second); rampNow(t, r).Moved != 2 && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
	}
	want("two of the way back", 2, true)
	ramp(api.RampForward, 0)
	want("forward again", 2, false)
	// Not for a node that is there already, nor for another address or weight.
	seven := uint32(7)
	for _, e := range []struct {
		id   string
		edit api.NodeEdit
	}{{"node-000", api.NodeEdit{}}, {"more", api.NodeEdit{Addr: "other:1"}}, {"more", api.NodeEdit{Weight: &seven}}} {
		e.edit.Ramp = "now"
		if _, err := r.api.EditNode(t.Context(), "cache", e.id, api.VerbAdd, e.edit, api.EditOptions{}); !errors.Is(err, membership.ErrExists) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	want("refused", 2, false)
	if res := r.node("more", api.VerbAdd, api.NodeEdit{Addr: "more:1", Ramp: "now"}); !res.Published || res.Ramp != nil {
		t.Errorf("%+v", res)
	}
	want("add again, now", 0, false)
	if _, err := r.api.EditNode(t.Context(), "cache", "more", api.VerbAdd, api.NodeEdit{Ramp: "now"}, api.EditOptions{}); !errors.Is(err, membership.ErrExists) {
		t.Errorf("add of what is there: %v", err)
	}
	r.node("more", api.VerbDrain, api.NodeEdit{Ramp: "1h"})
	want("drained", 1, false)
	if res := ramp(api.RampFinish, 0); !res.Published || res.Ramp != nil {
		t.Errorf("%+v", res)
	}
	want("finished", 0, false)
	if res := ramp(api.RampFinish, 0); !res.Published || res.From != res.Version {
		t.Errorf("finish of nothing: %+v", res)
	}
	for path, body := range map[string]string{"step": `{"steps":0}`, "back": `{"steps":1}`, "sideways": `{}`, "finish": `{"x":1}`} {
		if resp, text := r.call("POST", "/v1/clusters/cache/transition/"+path, body, "Content-Type", jsonBody); resp.status < 400 || resp.status > 499 {
			t.Errorf("%s %s: %d %s", path, body, resp.status, text)
		}
	}
}

func rampNow(t *testing.T, r *running) api.Ramp {
	got, err := r.api.Ramp(t.Context(), "cache")
	if err != nil {
		t.Fatal(err)
	}
	return got
}
