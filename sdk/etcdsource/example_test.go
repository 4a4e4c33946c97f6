package etcdsource_test

import (
	"context"
	"fmt"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/etcdsource"
)

// Needs an etcd at the endpoints, so it is compiled and not run.
func Example() {
	source, err := etcdsource.New(etcdsource.Config{Cluster: "cache", Endpoints: []string{"10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := client.WaitReady(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	route, err := client.Route("user:42")
	fmt.Println(route.Node().Addr, err)
}
