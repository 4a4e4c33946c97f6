package sdkprom_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/sdkprom"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gather collects by a pedantic registry and returns `name{label="value"}` -> value.
func gather(t *testing.T, m prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		if f.GetHelp() == "" || (f.GetType().String() == "COUNTER") != strings.HasSuffix(f.GetName(), "_total") {
			t.Errorf("%s is a %s", f.GetName(), f.GetType())
		}
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			v := s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = v
		}
	}
	return all
}

// TestCollect: what the client did is in the metrics.
func TestCollect(t *testing.T) {
	plane := shardtest.New(t, "a", "b")
	m := sdkprom.New(sdkprom.WithLabels(prometheus.Labels{"client": "x"}))
	if got := gather(t, m); len(got) != 1+5+1 {
		t.Errorf("without a client: %v", got)
	}
	c := plane.Client(sdk.WithHook(m))
	m.Follow(c)
	v1 := plane.Topology()
	plane.Add(topology.Node{ID: "c", Weight: 1})
	plane.Offer(v1)
	plane.Assign("k", "c")
	for range 3 {
		ticket, err := c.Acquire(t.Context(), "k", 2)
		if err != nil {
			t.Fatal(err)
		}
		defer ticket.Done(sdk.Success)
	}
	got := gather(t, m)
	for name, want := range map[string]float64{
		`shardd_sdk_topology_epoch{client="x"}`:                            1,
		`shardd_sdk_topology_seq{client="x"}`:                              3,
		`shardd_sdk_topology_nodes{client="x"}`:                            3,
		`shardd_sdk_topology_build_seconds{client="x"}`:                    3,
		`shardd_sdk_topologies_taken_total{client="x"}`:                    3,
		`shardd_sdk_topologies_refused_total{client="x",reason="older"}`:   1,
		`shardd_sdk_topologies_refused_total{client="x",reason="cluster"}`: 0,
		`shardd_sdk_requests_total{client="x"}`:                            3,
		`shardd_sdk_node_in_flight{client="x",node="a"}`:                   0,
		`shardd_sdk_node_in_flight{client="x",node="c"}`:                   6,
		`shardd_sdk_node_over_cap_time_seconds_total{client="x",node="c"}`: 0,
		`shardd_sdk_source_problem{client="x"}`:                            0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	if v, ok := got[`shardd_sdk_topology_age_seconds{client="x"}`]; !ok || v < 0 || v > 60 {
		t.Errorf("age %v (%v)", v, ok)
	}
	few := sdkprom.New(sdkprom.WithoutNodes())
	few.Follow(c)
	for name := range gather(t, few) {
		if strings.Contains(name, "node=") {
			t.Error(name)
		}
	}
}
