package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

// tb stands for *testing.T, which examples do not have.
type tb struct{}

func (tb) Helper()                   {}
func (tb) Cleanup(func())            {}
func (tb) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// journal has the methods of the hooks that it wants, and is told of those only.
type journal struct{}

func (journal) OnTaken(from, to topology.Ref, _ time.Duration) {
	fmt.Println("taken:", from.Version, "->", to.Version)
}

func (journal) OnRefused(r *sdk.RefusedError) {
	fmt.Println("refused:", r.Offered.Version, "while", r.Held.Version, "is held")
}

// What a client does goes to a log or a metric.
func ExampleHook() {
	var hook sdk.Hook = journal{}
	_, taken := hook.(sdk.TakenHook)
	_, refused := hook.(sdk.RefusedHook)
	fmt.Println(taken, refused)

	plane := shardtest.New(tb{}, "a", "b") // or a source
	client := plane.Client(sdk.WithHook(hook))
	defer client.Close()
	first := plane.Topology()
	plane.Assign("user:1", "b")
	plane.Offer(first) // a source that breaks its law
	// Output:
	// true true
	// taken: 0.0 -> 1.1
	// taken: 1.1 -> 1.2
	// refused: 1.1 while 1.2 is held
}

// What a caller decides on.
func ExampleRefusedError() {
	plane := shardtest.New(tb{}, "a", "b")
	client := plane.Client(sdk.WithHooks(sdk.Hooks{OnRefused: func(r *sdk.RefusedError) {
		switch {
		case errors.Is(r, sdk.ErrOlder):
			fmt.Println("a server lags, or the store went back")
		case errors.Is(r, sdk.ErrForked):
			fmt.Println("the store was restored: raise the epoch")
		case errors.Is(r, sdk.ErrCluster):
			fmt.Println("the address is that of another cluster")
		}
	}}))
	defer client.Close()
	first := plane.Topology()
	plane.Assign("user:1", "b")
	plane.Offer(first)
	plane.Offer(shardtest.New(tb{}, "a", "b").Topology())
	// Output:
	// a server lags, or the store went back
	// the address is that of another cluster
}

// alarms hears of what goes wrong between client and control plane.
type alarms chan error

func (a alarms) OnProblem(err error) {
	select {
	case a <- err:
	default: // hooks must not block
	}
}

// The control plane is away: lookups go on, and an alert can say so.
func ExampleProblemHook() {
	problems := make(alarms, 1)
	var _ sdk.ProblemHook = problems
	plane := shardtest.New(tb{}, "a", "b")
	client := plane.Client(sdk.WithHook(problems))
	defer client.Close()
	plane.Away(true)
	problem := <-problems
	_, err := client.Route("user:1")
	fmt.Println(problem != nil, err)
	// Output: true <nil>
}

// closing closes connections to nodes that are done with.
type closing chan sdk.Departed

func (c closing) OnDrained(d sdk.Departed) { c <- d }

// A node drains: what is in flight finishes, then its connections are closed.
// Streams of a node named gpu-* may take ten minutes.
func ExampleDrainedHook() {
	done := make(closing, 1)
	var _ sdk.DrainedHook = done
	grace := func(n topology.Node) time.Duration {
		if len(n.ID) > 4 && n.ID[:4] == "gpu-" {
			return 10 * time.Minute
		}
		return time.Minute
	}
	plane := shardtest.New(tb{}, "gpu-1", "gpu-2")
	client := plane.Client(sdk.WithHook(done), sdk.WithGrace(sdk.Grace(grace)))
	defer client.Close()
	plane.Assign("chat-42", "gpu-1")
	stream, err := client.Acquire(context.Background(), "chat-42", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	plane.SetState("gpu-1", topology.StateDraining)
	stream.Done(sdk.Success) // it finishes by itself
	gone := <-done
	fmt.Println(gone.Node.ID, "can be closed; cost cut off:", gone.Cut)
	// Output: gpu-1 can be closed; cost cut off: 0
}

// Where the file stands, for a readiness page.
func ExampleSnapshotState() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	client, err := sdk.New(fixed{exampleTopology()}, sdk.WithSnapshot(filepath.Join(dir, "cache.topology")))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = client.WaitReady(context.Background())
	client.Close() // what is held has been saved
	file := client.State().Snapshot
	fmt.Println(file.Saved.Version, file.Problem)
	// Output: 1.1 <nil>
}
