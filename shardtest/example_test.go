package shardtest_test

import (
	"fmt"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// In a test, t is the *testing.T.
var t exampleTB

func Example() {
	plane := shardtest.New(t, "a", "b", "c")
	client := plane.Client() // give it to the code under test
	defer client.Close()

	plane.Assign("user:1", "b")
	where(client, "user:1")
	plane.Assign("user:1", "c")
	where(client, "user:1")
	plane.SetState("c", topology.StateDown) // requests go round it
	route, _ := client.Route("user:1")
	fmt.Println("stands in for", route.Owner().ID, route.Detour())
	// Output:
	// user:1 is on b by version 1.2
	// user:1 is on c by version 1.3
	// stands in for c true
}

func ExamplePlane_Hold() {
	plane := shardtest.New(t, "a", "b")
	client := plane.Client()
	defer client.Close()
	plane.Assign("user:1", "a")

	release := plane.Hold() // the watch hangs
	plane.Assign("user:1", "b")
	where(client, "user:1")
	release()
	where(client, "user:1")
	// Output:
	// user:1 is on a by version 1.2
	// user:1 is on b by version 1.3
}

func where(client *sdk.Client, key string) {
	route, err := client.Route(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key, "is on", route.ID(), "by version", route.Version())
}

// exampleTB stands for *testing.T, which examples do not have.
type exampleTB struct{}

func (exampleTB) Helper()                   {}
func (exampleTB) Cleanup(func())            {}
func (exampleTB) Fatalf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
