package sdkprom_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
	"github.com/shardd/shardd/sdk/sdkprom"
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
