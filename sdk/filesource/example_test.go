package filesource_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/filesource"
)

func Example() {
	source, err := filesource.New("/etc/app/cache.topology", filesource.WithInterval(5*time.Second))
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
	_, err = client.Route("user:1") // there is no such file here
	fmt.Println(err)
	// Output: sdk: no topology yet; call WaitReady first
}
