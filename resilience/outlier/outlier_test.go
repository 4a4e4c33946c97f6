package outlier_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shardd/shardd/resilience"
	"github.com/shardd/shardd/resilience/outlier"
)

const sec = time.Second

func must(t testing.TB, c outlier.Config) *outlier.Detector {
	t.Helper()
	d, err := outlier.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func fleet(d *outlier.Detector, n int) []*outlier.Node {
	nodes := make([]*outlier.Node, n)
	for i := range nodes {
		nodes[i] = d.Add(fmt.Sprint("n", i), outlier.Up, 0)
	}
	return nodes
}

func record(n *outlier.Node, now time.Duration, count int, o resilience.Outcome) {
	for range count {
		n.Record(now, o)
	}
}

func ejected(nodes []*outlier.Node) (names []string) {
	for _, n := range nodes {
		if n.Ejected() {
			names = append(names, n.Label())
		}
	}
	return names
}

func usable(nodes []*outlier.Node) (count int) {
	for _, n := range nodes {
		if n.Usable() {
			count++
		}
	}
	return count
}

// TestLimits is the field case of the limit: all nodes fail, at once and one by
// one, and as many are ejected as the limit says, itself included.
func TestLimits(t *testing.T) {
	f := func(n int, limit float64, want int) {
		t.Helper()
		d := must(t, outlier.Config{Limit: limit})
		nodes := fleet(d, n)
		check := func(when string, want int) {
			t.Helper()
			if got := len(ejected(nodes)); got != want || d.Stats().Ejected != got {
				t.Errorf("%d nodes, limit %v, %s: %d ejected, %+v; want %d", n, limit, when, got, d.Stats(), want)
			}
			if usable(nodes) == 0 {
				t.Errorf("%d nodes, limit %v, %s: none usable", n, limit, when)
			}
		}
		for range 10 { // all at once
			for _, x := range nodes {
				x.Record(0, resilience.Failure)
			}
		}
		check("all failing", want)
		for s := range 40 {
			d.Sweep(time.Duration(s) * sec)
			check("while they fail", min(want, len(ejected(nodes))))
		}
		for s := range 4000 {
			now := 40*sec + time.Duration(s)*sec
			for _, x := range nodes {
				x.Record(now, resilience.Success)
			}
			d.Sweep(now)
		}
		check("recovered", 0)
		for _, x := range nodes { // one by one
			record(x, 5000*sec, 10, resilience.Timeout)
			check("one by one", min(want, len(ejected(nodes))))
		}
		check("one by one, all", want)
	}
	for _, c := range []struct {
		limit float64
		want  [4]int // of 1, 2, 3, 10 nodes
	}{
		{.10, [4]int{0, 0, 0, 1}},
		{.33, [4]int{0, 0, 0, 3}},
		{.34, [4]int{0, 0, 1, 3}},
		{.50, [4]int{0, 1, 1, 5}},
		{.67, [4]int{0, 1, 2, 6}},
		{1, [4]int{1, 2, 3, 10}},
	} {
		for i, n := range []int{1, 2, 3, 10} {
			f(n, c.limit, c.want[i])
		}
	}
}

// TestOthersDown drains a node by hand and lets others go down while two are ejected.
func TestOthersDown(t *testing.T) {
	var got []string
	d := must(t, outlier.Config{Limit: .67, OnChange: func(e outlier.Event) {
		got = append(got, fmt.Sprint(e.Node.Label(), " ", e.Ejected, " ", e.Reason))
	}})
	nodes := fleet(d, 3)
	record(nodes[1], 1*sec, 5, resilience.Failure)
	record(nodes[0], 2*sec, 5, resilience.Failure)
	if usable(nodes) != 1 || d.Panic() {
		t.Fatalf("%d usable, panic %v; want 1, false", usable(nodes), d.Panic())
	}
	nodes[2].Set(outlier.Out, 3*sec) // drained: the limit of two nodes is one
	if want := []string{"n0"}; !slices.Equal(ejected(nodes), want) || usable(nodes) != 1 {
		t.Errorf("ejected %v, %d usable; want %v: who was out longest is back", ejected(nodes), usable(nodes), want)
	}
	nodes[2].Set(outlier.Up, 4*sec)
	record(nodes[1], 5*sec, 5, resilience.Failure)
	nodes[2].Set(outlier.Down, 6*sec) // counts in n and against the limit
	if want := []string{"n1"}; !slices.Equal(ejected(nodes), want) {
		t.Errorf("ejected %v; want %v", ejected(nodes), want)
	}
	nodes[1].Set(outlier.Down, 7*sec) // an ejected node that is down is no longer ejected
	nodes[0].Set(outlier.Down, 8*sec)
	if s := d.Stats(); s != (outlier.Stats{Nodes: 3, Down: 3, Limit: 2, Panic: true}) || usable(nodes) != 3 {
		t.Errorf("all down: %+v, %d usable; want panic and 3", s, usable(nodes))
	}
	nodes[0].Set(outlier.Out, 9*sec)
	if usable(nodes) != 2 || nodes[0].Usable() {
		t.Error("panic used a node that is out")
	}
	want := []string{
		"n1 true consecutive", "n0 true consecutive", "n1 false make-room",
		"n1 true consecutive", "n0 false make-room", "n1 false went-down",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestConsecutive(t *testing.T) {
	f := func(c outlier.Config, want bool, outcomes ...resilience.Outcome) {
		t.Helper()
		c.Limit = 1
		n := fleet(must(t, c), 1)[0]
		for _, o := range outcomes {
			n.Record(0, o)
		}
		if n.Ejected() != want {
			t.Errorf("after %v ejected %v; want %v", outcomes, n.Ejected(), want)
		}
	}
	const s, x, to, ov, ig = resilience.Success, resilience.Failure, resilience.Timeout, resilience.Overload, resilience.Ignored
	f(outlier.Config{}, false, x, x, x, x)
	f(outlier.Config{}, true, x, to, ov, x, x)
	f(outlier.Config{}, false, x, x, x, x, s, x)
	f(outlier.Config{}, true, x, x, x, x, ig, x)
	f(outlier.Config{Consecutive: 1}, true, x)
	f(outlier.Config{Consecutive: -1}, false, x, x, x, x, x, x, x)
}

// TestTimes has a node ejected again and again, and forgiven.
func TestTimes(t *testing.T) {
	var outs []time.Duration
	d := must(t, outlier.Config{Limit: .5, Base: 10 * sec, Max: 35 * sec, Interval: 5 * sec, OnChange: func(e outlier.Event) {
		if e.Ejected {
			outs = append(outs, e.For)
		}
	}})
	nodes := fleet(d, 2)
	now := time.Duration(0)
	run := func(until time.Duration, bad bool) {
		for ; now < until; now += sec {
			if bad && !nodes[0].Ejected() {
				record(nodes[0], now, 5, resilience.Failure)
			}
			d.Sweep(now)
		}
	}
	run(120*sec, true)
	run(220*sec, false)
	run(221*sec, true)
	if d := cmp.Diff([]time.Duration{10 * sec, 20 * sec, 30 * sec, 35 * sec, 35 * sec, 10 * sec}, outs); d != "" {
		t.Errorf("times out (-want +got):\n%s", d)
	}
}

func TestJitter(t *testing.T) {
	d := must(t, outlier.Config{Limit: 1, Jitter: 10 * sec, Rand: func() float64 { return .5 }})
	n := fleet(d, 1)[0]
	record(n, 0, 5, resilience.Failure)
	d.Sweep(35*sec - 1)
	if !n.Ejected() {
		t.Error("back before base + jitter")
	}
	d.Sweep(35 * sec)
	if n.Ejected() {
		t.Error("still out at base + jitter")
	}
}

// TestShares has ten nodes of which some have a lower share of successes.
func TestShares(t *testing.T) {
	f := func(c outlier.Config, bad map[int]int, requests int, want ...string) {
		t.Helper()
		c.Consecutive, c.Limit = -1, .2
		d := must(t, c)
		nodes := fleet(d, 10)
		d.Sweep(0)
		for i, n := range nodes {
			record(n, 0, bad[i], resilience.Failure)
			record(n, 0, requests-bad[i], resilience.Success)
		}
		d.Sweep(10*sec - 1)
		if e := ejected(nodes); e != nil {
			t.Errorf("judged before the interval was over: %v", e)
		}
		d.Sweep(10 * sec)
		if diff := cmp.Diff(want, ejected(nodes), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("bad %v of %d (-want +got):\n%s", bad, requests, diff)
		}
		d.Sweep(20 * sec) // an empty interval judges nobody
		if len(ejected(nodes)) != len(want) {
			t.Errorf("an empty interval changed %v to %v", want, ejected(nodes))
		}
	}
	f(outlier.Config{}, nil, 100)
	f(outlier.Config{}, map[int]int{3: 30}, 100, "n3")
	f(outlier.Config{}, map[int]int{3: 30}, 99)                                                               // too few requests
	f(outlier.Config{}, map[int]int{0: 50, 1: 50, 2: 50, 3: 50, 4: 50}, 100)                                  // half is no outlier
	f(outlier.Config{}, map[int]int{0: 90, 1: 90, 2: 90, 3: 90, 4: 90, 5: 90, 6: 90}, 100)                    // neither are most
	f(outlier.Config{Stdev: -1}, map[int]int{3: 100}, 100)                                                    // off
	f(outlier.Config{FailureShare: .85, Stdev: -1}, map[int]int{1: 84, 3: 85, 5: 86}, 100, "n3", "n5")        // at least
	f(outlier.Config{FailureShare: .85, Stdev: -1}, map[int]int{1: 86, 3: 99, 5: 95, 7: 90}, 100, "n3", "n5") // worst first
	f(outlier.Config{MinNodes: 11}, map[int]int{3: 30}, 100)
}

// TestRowsWaitForRoom: a row completed while the limit was used up is judged
// again by Sweep, longest row first.
func TestRowsWaitForRoom(t *testing.T) {
	d := must(t, outlier.Config{Limit: .34, Base: 10 * sec, Interval: 10 * sec})
	nodes := fleet(d, 3)
	d.Sweep(0)
	record(nodes[0], 0, 5, resilience.Failure)
	record(nodes[1], 0, 5, resilience.Failure)
	record(nodes[2], 0, 9, resilience.Failure)
	if got := ejected(nodes); !slices.Equal(got, []string{"n0"}) {
		t.Fatalf("ejected %v", got)
	}
	d.Sweep(10 * sec)
	if got := ejected(nodes); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("ejected %v; want the node with the longest row", got)
	}
}

func TestPanic(t *testing.T) {
	f := func(limit, panic float64, n, down int, want bool) {
		t.Helper()
		d := must(t, outlier.Config{Limit: limit, Panic: panic})
		nodes := fleet(d, n)
		for _, x := range nodes[:down] {
			x.Set(outlier.Down, 0)
		}
		if d.Panic() != want || want && usable(nodes) != n || !want && usable(nodes) != n-down {
			t.Errorf("limit %v, panic %v, %d of %d down: panic %v, %d usable; want %v",
				limit, panic, down, n, d.Panic(), usable(nodes), want)
		}
	}
	f(0, 0, 10, 5, false)
	f(0, 0, 10, 6, true)
	f(.67, 0, 3, 2, false)
	f(.67, 0, 3, 3, true)
	f(0, .9, 10, 1, false)
	f(0, .9, 10, 2, true)
	f(0, -1, 10, 9, false)
	f(0, -1, 10, 10, true)
	f(0, 0, 0, 0, false)
}

func TestRemoveAndReturn(t *testing.T) {
	d := must(t, outlier.Config{Limit: .5})
	nodes := fleet(d, 4)
	record(nodes[3], 0, 5, resilience.Failure)
	record(nodes[0], sec, 5, resilience.Failure)
	d.Remove(nodes[1], 2*sec) // three nodes: one may be out
	if got := ejected(nodes); !slices.Equal(got, []string{"n0"}) {
		t.Errorf("ejected %v; want n0: n3 was out longer", got)
	}
	d.Remove(nodes[0], 3*sec)
	d.Remove(nodes[0], 3*sec)
	record(nodes[0], 4*sec, 50, resilience.Failure) // late outcomes of a node that left
	nodes[0].Set(outlier.Down, 4*sec)
	if s := d.Stats(); s != (outlier.Stats{Nodes: 2, Limit: 1}) {
		t.Errorf("%+v", s)
	}
	record(nodes[2], 4*sec, 5, resilience.Failure)
	if !nodes[2].Return(5*sec) || nodes[2].Return(5*sec) || !nodes[2].Usable() {
		t.Error("Return takes back once")
	}
	must(t, outlier.Config{}).Remove(nodes[2], 0) // not its node
	if d.Stats().Nodes != 2 {
		t.Error("a detector removed another one's node")
	}
}

func TestClockBack(t *testing.T) {
	d := must(t, outlier.Config{Limit: 1})
	n := fleet(d, 1)[0]
	d.Sweep(time.Hour)
	record(n, time.Hour, 5, resilience.Failure)
	d.Sweep(0)
	if n.Ejected() {
		t.Error("an ejection waits for a clock that went back an hour")
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []outlier.Config{
		{Limit: -1}, {Limit: 1.1}, {Limit: math.NaN()}, {Panic: 2}, {Panic: math.NaN()}, {FailureShare: 2}, {FailureShare: -1},
		{Stdev: math.NaN()}, {MinRequests: -1}, {MinNodes: -1}, {Interval: -1}, {Base: -1}, {Base: 2, Max: 1}, {Jitter: -1},
	} {
		if _, err := outlier.New(c); !errors.Is(err, outlier.ErrConfig) {
			t.Errorf("New(%+v) = %v; want ErrConfig", c, err)
		}
	}
}

func Example() {
	d, err := outlier.New(outlier.Config{Limit: 0.34, Consecutive: 3})
	if err != nil {
		panic(err)
	}
	a, b, c := d.Add("a", outlier.Up, 0), d.Add("b", outlier.Up, 0), d.Add("c", outlier.Up, 0)
	now := time.Second
	for range 3 {
		a.Record(now, resilience.Timeout)
		b.Record(now, resilience.Timeout)
		c.Record(now, resilience.Success)
	}
	fmt.Println(a.Usable(), b.Usable(), c.Usable()) // a third of three is one
	d.Sweep(now + 30*time.Second)
	fmt.Println(a.Usable())
	// Output:
	// false true true
	// true
}

// Who is out, why and for how long.
func ExampleEvent() {
	d, err := outlier.New(outlier.Config{Limit: 0.5, Consecutive: 2, OnChange: func(e outlier.Event) {
		why := e.Reason
		fmt.Println(e.Node.Label(), "ejected:", e.Ejected, why, e.For)
	}})
	if err != nil {
		panic(err)
	}
	a := d.Add("a", outlier.Up, 0)
	d.Add("b", outlier.Up, 0)
	a.Record(time.Second, resilience.Timeout)
	a.Record(time.Second, resilience.Timeout)
	s := d.Stats()
	fmt.Println(s.Ejected, "of", s.Nodes, "out, at most", s.Limit)
	d.Sweep(time.Minute)
	// Output:
	// a ejected: true consecutive 30s
	// 1 of 2 out, at most 1
	// a ejected: false time-over 0s
}
