package httpsource_test

import (
	"fmt"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/httpsource"
)

func Example() {
	source, err := httpsource.New("cache", []string{"10.0.0.5:7420", "10.0.0.6:7420"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := sdk.New(source) // no I/O yet: the servers need not be there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Route("user:1")
	fmt.Println(err)
	// Output:
	// sdk: no topology yet; call WaitReady first
}
