package latency_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/latency"
)

// Peak EWMA under P2C: the slow node is left alone until its peak has faded.
func Example() {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("fast", 0), Weight: 1},
		{Node: balance.NewNode("slow", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	peak, err := latency.NewPeakEWMA(latency.PeakConfig{Decay: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewP2C(set, peak)
	if err != nil {
		panic(err)
	}
	took := map[string]time.Duration{"fast": time.Millisecond, "slow": time.Second}
	count := map[string]int{}
	for k := range 1000 {
		now := time.Duration(k) * 5 * time.Millisecond
		t, err := picker.Pick(now, uint64(k), nil)
		if err != nil {
			panic(err)
		}
		count[t.Node().ID()]++
		t.Done(now+took[t.Node().ID()], balance.Outcome{Result: balance.Success})
	}
	fmt.Println(count["slow"] < 5)
	// Output: true
}

func twoNodes() *balance.Set {
	set, err := balance.NewSet([]balance.Member{
		{Node: balance.NewNode("a", 0), Weight: 1},
		{Node: balance.NewNode("b", 0), Weight: 1},
	})
	if err != nil {
		panic(err)
	}
	return set
}

// Replies carry what the server holds: a client that has nothing in flight at
// either node knows nevertheless where the others queue.
func ExampleServerQueue() {
	set := twoNodes()
	cost, err := latency.NewServerQueue(latency.QueueConfig{Decay: time.Second})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewP2C(set, cost)
	if err != nil {
		panic(err)
	}
	for i, queue := range []float64{12, 3} {
		t := picker.Set().Take(i, 0)
		t.Done(time.Millisecond, balance.Outcome{Result: balance.Success, Queue: queue, HasQueue: true})
	}
	t, _ := picker.Pick(2*time.Millisecond, 1, nil)
	fmt.Println(t.Node().ID())
	// Output: b
}

// Latency times the square of requests in flight: the slower node has to be four
// times as slow to be passed over for a node that holds one more.
func ExampleSquaredEWMA() {
	cost, err := latency.NewSquaredEWMA(latency.SquaredConfig{Alpha: 0.3})
	if err != nil {
		panic(err)
	}
	picker, err := balance.NewP2C(twoNodes(), cost)
	if err != nil {
		panic(err)
	}
	set := picker.Set()
	for i, took := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond} {
		t := set.Take(i, 0)
		t.Done(took, balance.Outcome{Result: balance.Success})
	}
	for k := range 4 {
		t, _ := picker.Pick(time.Second, uint64(k), nil) // none of them ends
		fmt.Print(t.Node().ID(), " ")
	}
	// Output: a b a b
}

// What kratos and go-zero do by default. Node b fails at once, and so looks quick:
// kratos divides by the success rate; go-zero draws again for a pair of healthy
// nodes, which two nodes do not have.
func ExampleSuccess() {
	for _, cfg := range []latency.SuccessConfig{latency.Kratos(), latency.GoZero()} {
		picker, err := latency.NewSuccess(twoNodes(), cfg)
		if err != nil {
			panic(err)
		}
		fails := 0
		for k := range 1000 {
			now := time.Duration(k) * time.Millisecond
			t, _ := picker.Pick(now, uint64(k), nil)
			result := balance.Success
			if t.Node().ID() == "b" { // fails at once
				result, fails = balance.Failure, fails+1
			}
			t.Done(now+time.Millisecond/2, balance.Outcome{Result: result})
		}
		fmt.Println(fails)
	}
	// Output:
	// 1
	// 1000
}
