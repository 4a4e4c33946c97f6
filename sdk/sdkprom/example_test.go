package sdkprom_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/sdk/sdkprom"
	"github.com/shardd/shardd/sdk/shadow"
	"github.com/shardd/shardd/topology"
)

func Example() {
	source, err := httpsource.New("cache", []string{"http://127.0.0.1:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics := sdkprom.New()
	client, err := sdk.New(source, sdk.WithHook(metrics))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	metrics.Follow(client)
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	fmt.Println(registry.Register(metrics))
	// Output: <nil>
}

// Two clients in one program: a label tells them apart. Ten thousand nodes are too
// many for a series each.
func ExampleOption() {
	options := []sdkprom.Option{sdkprom.WithLabels(prometheus.Labels{"client": "sessions"}), sdkprom.WithoutNodes()}
	registry := prometheus.NewRegistry()
	fmt.Println(registry.Register(sdkprom.New(options...)))
	fmt.Println(registry.Register(sdkprom.New(sdkprom.WithLabels(prometheus.Labels{"client": "pictures"}))))
	// Output:
	// <nil>
	// <nil>
}

// What a shadow of the mapping to come counts, as metrics.
func ExampleShadow() {
	nodes := []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}}
	draft := topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1},
		Spec: topology.Spec{Algorithm: topology.Rendezvous}, Nodes: nodes[:1],
	}
	now, err := placement.Update(nil, draft)
	if err != nil {
		fmt.Println(err)
		return
	}
	draft.Version.Seq, draft.Nodes = 2, nodes
	next, err := placement.Update(now, draft)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := shadow.New(now, next)
	s.Observe("user:1") // beside each request

	metrics := sdkprom.NewShadow(s)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	// Output:
	// shardd_sdk_shadow_moved_total
	// shardd_sdk_shadow_node_after_total
	// shardd_sdk_shadow_node_before_total
	// shardd_sdk_shadow_node_in_total
	// shardd_sdk_shadow_node_out_total
	// shardd_sdk_shadow_requests_total
}
