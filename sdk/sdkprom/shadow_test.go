package sdkprom_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk/sdkprom"
	"github.com/shardd/shardd/sdk/shadow"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestShadow(t *testing.T) {
	plane := shardtest.New(t, "a")
	old, err := placement.New(plane.Topology())
	if err != nil {
		t.Fatal(err)
	}
	plane.Publish(func(d *topology.Declared) { d.Nodes = []topology.Node{{ID: "b", Weight: 1}} })
	new, err := placement.New(plane.Topology())
	if err != nil {
		t.Fatal(err)
	}
	s := shadow.New(old, new)
	s.Observe("x")
	s.Observe("y")
	want := map[string]float64{"shardd_sdk_shadow_requests_total{}": 2, "shardd_sdk_shadow_moved_total{}": 2,
		`shardd_sdk_shadow_node_before_total{node="a"}`: 2, `shardd_sdk_shadow_node_after_total{node="a"}`: 0, `shardd_sdk_shadow_node_in_total{node="a"}`: 0, `shardd_sdk_shadow_node_out_total{node="a"}`: 2,
		`shardd_sdk_shadow_node_before_total{node="b"}`: 0, `shardd_sdk_shadow_node_after_total{node="b"}`: 2, `shardd_sdk_shadow_node_in_total{node="b"}`: 2, `shardd_sdk_shadow_node_out_total{node="b"}`: 0}
	if diff := cmp.Diff(want, gather(t, sdkprom.NewShadow(s))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := gather(t, sdkprom.NewShadow(s, sdkprom.WithoutNodes())); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
