package loadfeed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/prequal"
	"github.com/shardd/shardd/balance/wrr"
	"github.com/shardd/shardd/loadreport"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/sdk/loadfeed"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func still() time.Duration { return time.Minute }

// TestTake: reports reach the policy under their node's index, also after the nodes have
// changed places.
func TestTake(t *testing.T) {
	var newest *wrr.Reported
	feed := loadfeed.New(still, func(s *balance.Set) (balance.Picker, error) {
		newest = wrr.NewReported(s, wrr.ReportedConfig{Blackout: -1}, 0)
		return newest, nil
	})
	feed.Take("a", loadreport.Report{QPS: 1, CPU: 1}, false) // nobody is there yet
	plane := shardtest.New(t, "b", "c")
	c := plane.Client(sdk.WithClock(still), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	feed.Take("b", loadreport.Report{QPS: 100, CPU: .5}, false)
	feed.Take("c", loadreport.Report{QPS: 100, CPU: .9, Utilization: .25}, false)
	feed.Take("stranger", loadreport.Report{QPS: 100, CPU: .5}, false)
	if w := newest.Weights(time.Minute); len(w) != 2 || w[0] != 200 || w[1] != 400 {
		t.Errorf("%v", w)
	}
	if p := feed.Probes(1, nil); p != nil {
		t.Errorf("probes %v", p)
	}
	plane.Add(topology.Node{ID: "a", Weight: 1})
	feed.Take("a", loadreport.Report{QPS: 100, CPU: .1}, false)
	count := map[string]int{}
	for range 700 {
		ticket, err := c.AcquireAny(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		count[ticket.ID()]++
		feed.Done(&ticket, sdk.Success, loadreport.Report{}, false)
	}
	if count["a"] == 0 || count["b"] == 0 || count["c"] <= count["b"] {
		t.Errorf("%v", count)
	}
}

// TestProbes: the policy's probes are named by node, and their answers taken.
func TestProbes(t *testing.T) {
	feed := loadfeed.New(still, func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) })
	c := shardtest.New(t, "a", "b", "c", "d").Client(sdk.WithClock(still), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	ids := feed.Probes(7, nil)
	if len(ids) != 3 {
		t.Fatalf("%v", ids)
	}
	for i, id := range []string{"a", "b", "c"} {
		feed.Take(id, loadreport.Report{InFlight: int64(10 * i), HasInFlight: true, Latency: time.Millisecond}, true)
		feed.Take(id, loadreport.Report{InFlight: 0, HasInFlight: true}, false) // an answer is no probe
	}
	ticket, err := c.AcquireAny(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer ticket.Done(sdk.Success)
	if ticket.ID() == "d" {
		t.Error("it went where nobody answered")
	}
}

func Example() {
	clock := loadfeed.Clock()
	feed := loadfeed.New(clock, func(s *balance.Set) (balance.Picker, error) { return prequal.New(s, prequal.Config{}) })
	plane := shardtest.New(exampleTB{}, "a", "b", "c")
	client, err := sdk.New(plane, sdk.WithClock(clock), sdk.WithBalance(sdk.Balance{Policy: feed.Policy}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := client.WaitReady(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for feed.Probes(1, nil) == nil { // the policy is made right after
		time.Sleep(time.Millisecond)
	}
	fmt.Println(len(feed.Probes(1, nil)), "nodes to probe after a request")
	// Output: 3 nodes to probe after a request
}

type exampleTB struct{}

func (exampleTB) Helper()                   {}
func (exampleTB) Cleanup(func())            {}
func (exampleTB) Fatalf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
