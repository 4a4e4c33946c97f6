package sdkotel_test

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/sdk/sdkotel"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// values collects once and returns what there is as "name{attributes}" -> value.
func values(t *testing.T, r sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					all[name(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					all[name(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					all[name(m.Name, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					all[name(m.Name, p.Attributes)] = float64(p.Count)
				}
			}
		}
	}
	return all
}

func name(name string, s attribute.Set) string {
	return name + "{" + s.Encoded(attribute.DefaultEncoder()) + "}"
}

func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	m, err := sdkotel.New(provider.Meter("test"), sdkotel.WithAttributes(attribute.String("client", "x")))
	if err != nil {
		t.Fatal(err)
	}
	plane := shardtest.New(t, "a", "b")
	c := plane.Client(sdk.WithHook(m))
	stop, err := m.Follow(c)
	if err != nil {
		t.Fatal(err)
	}
	v1 := plane.Topology()
	plane.Add(topology.Node{ID: "c", Weight: 1})
	plane.Offer(v1)
	plane.Assign("k", "c")
	ticket, err := c.Acquire(t.Context(), "k", 4)
	if err != nil {
		t.Fatal(err)
	}
	got := values(t, reader)
	for name, want := range map[string]float64{
		"shardd.sdk.topology.seq{client=x}":                    3,
		"shardd.sdk.topology.build{client=x}":                  3,
		"shardd.sdk.topologies.taken{client=x}":                3,
		"shardd.sdk.topologies.refused{client=x,reason=older}": 1,
		"shardd.sdk.requests{client=x}":                        1,
		"shardd.sdk.node.in_flight{client=x,node=c}":           4,
		"shardd.sdk.node.in_flight{client=x,node=a}":           0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	ticket.Done(sdk.Success)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, ok := values(t, reader)["shardd.sdk.requests{client=x}"]; ok {
		t.Error("collected after its end")
	}
}

func Example() {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := sdkmetric.NewMeterProvider() // your program's, with its exporter
	metrics, err := sdkotel.New(provider.Meter("shardd"))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source, sdk.WithHook(metrics))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	stop, err := metrics.Follow(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stop())
	// Output: <nil>
}

// Two clients in one program: an attribute tells them apart. Ten thousand nodes are
// too many for a series each.
func ExampleOption() {
	meter := sdkmetric.NewMeterProvider().Meter("shardd")
	options := []sdkotel.Option{sdkotel.WithAttributes(attribute.String("client", "sessions")), sdkotel.WithoutNodes()}
	_, err := sdkotel.New(meter, options...)
	fmt.Println(err)
	// Output: <nil>
}
