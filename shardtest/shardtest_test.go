package shardtest_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func route(t *testing.T, c *sdk.Client, key string) sdk.Route {
	t.Helper()
	r, err := c.Route(key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPublish: a version has arrived when the call returns, at every client.
func TestPublish(t *testing.T) {
	plane := shardtest.New(t, "a", "b", "c")
	clients := []*sdk.Client{plane.Client(), plane.Client(), plane.Client()}
	if plane.Clients() != 3 {
		t.Fatalf("%d clients", plane.Clients())
	}
	steps := []func() *topology.Topology{
		func() *topology.Topology { return plane.Add(topology.Node{ID: "d", Weight: 2}) },
		func() *topology.Topology { return plane.Remove("a") },
		func() *topology.Topology { return plane.SetState("b", topology.StateDown) },
		func() *topology.Topology { return plane.SetAddr("b", "10.0.0.1:1") },
		func() *topology.Topology { return plane.RaiseEpoch() },
		func() *topology.Topology {
			return plane.Publish(func(d *topology.Declared) { d.Spec.Algorithm = topology.Ring })
		},
	}
	for i, step := range steps {
		v := step()
		for _, c := range clients {
			if c.Topology() != v {
				t.Fatalf("step %d: %v, want %v", i, c.Topology().Version(), v.Version())
			}
		}
		if owner := plane.Owner("k"); owner != route(t, clients[0], "k").Owner().ID {
			t.Errorf("step %d: owner %s", i, owner)
		}
	}
	for _, ref := range plane.Held() {
		if ref != plane.Topology().Ref() {
			t.Errorf("held %v", ref)
		}
	}
	clients[0].Close()
	if plane.Clients() != 2 {
		t.Errorf("%d clients after one was closed", plane.Clients())
	}
}

// TestAssign: keys go where they are assigned, also with replicas, and stay
// through changes of other nodes as far as the minimum movement lets them.
func TestAssign(t *testing.T) {
	for _, replicas := range []uint32{1, 2} {
		plane := shardtest.NewFrom(t, topology.Declared{Spec: topology.Spec{Algorithm: topology.Slots, Replicas: replicas},
			Nodes: []topology.Node{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}})
		c := plane.Client()
		want := map[string]string{}
		for i := range 60 {
			want[fmt.Sprintf("user:%d", i)] = string(rune('a' + i%3))
		}
		plane.AssignAll(want)
		for key, id := range want {
			if got := route(t, c, key); got.ID() != id {
				t.Errorf("%d replicas: %s is on %s, want %s", replicas, key, got.ID(), id)
			}
			routes, err := c.RouteN(nil, key, 3)
			if err != nil || len(routes) != 3 || routes[0].ID() == routes[1].ID() {
				t.Errorf("order of %s: %v, %v", key, routes, err)
			}
		}
		next := plane.Assign("user:1", "c")
		if got := route(t, c, "user:1").OwnedSince(); replicas == 1 && got != next.Version() {
			t.Errorf("%d replicas: owned since %v, want %v", replicas, got, next.Version())
		}
		if got := route(t, c, "user:2").OwnedSince(); got.Compare(next.Version()) >= 0 {
			t.Errorf("%d replicas: another key is owned since %v", replicas, got)
		}
		if got := route(t, c, "user:1").ID(); got != "c" {
			t.Errorf("reassigned: on %s", got)
		}
	}
}

// TestFaults goes through everything that a control plane can do to a client.
func TestFaults(t *testing.T) { synctest.Test(t, testFaults) }

func testFaults(t *testing.T) {
	plane := shardtest.New(t, "a", "b")
	c := plane.Client()
	v1 := plane.Topology()

	plane.Delay(3 * time.Second)
	v2 := plane.Add(topology.Node{ID: "c", Weight: 1})
	time.Sleep(2900 * time.Millisecond)
	synctest.Wait()
	if c.Topology() != v1 {
		t.Fatal("delayed: it has arrived already")
	}
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
	if c.Topology() != v2 {
		t.Fatal("delayed: it has not arrived")
	}
	plane.Delay(0)

	release := plane.Hold()
	v3 := plane.Remove("a")
	time.Sleep(time.Minute)
	if c.Topology() != v2 || c.Age() < time.Minute-2*time.Second {
		t.Fatalf("held: %v, age %v", c.Topology().Version(), c.Age())
	}
	release()
	release()
	if c.Topology() != v3 {
		t.Fatal("released: it has not arrived")
	}
	time.Sleep(time.Minute)
	if c.Age() > 2*time.Second {
		t.Errorf("age %v though every second confirms", c.Age())
	}

	plane.Away(true)
	time.Sleep(2 * time.Second)
	if plane.Clients() != 0 || c.State().Problem == nil {
		t.Fatalf("away: %d clients, problem %v", plane.Clients(), c.State().Problem)
	}
	v4 := plane.Add(topology.Node{ID: "d", Weight: 1})
	route(t, c, "k")
	plane.Away(false)
	time.Sleep(2 * time.Second)
	if c.Topology() != v4 {
		t.Fatal("back: the newest version has not arrived")
	}

	plane.Drop()
	time.Sleep(2 * time.Second)
	if plane.Clients() != 1 {
		t.Fatal("dropped: the client did not come back")
	}
	testGoneBack(t, plane, c, v2, v4)
}

func testGoneBack(t *testing.T, plane *shardtest.Plane, c *sdk.Client, v2, v4 *topology.Topology) {
	plane.GoBack(v2.Version())
	synctest.Wait()
	if c.Topology() != v4 || !errors.Is(c.State().Problem, sdk.ErrOlder) {
		t.Fatalf("gone back: %v, %v", c.Topology().Version(), c.State().Problem)
	}
	plane.SetAddr("a", "elsewhere:1")
	plane.SetAddr("a", "elsewhere:2")
	if c.Topology() != v4 || !errors.Is(c.State().Problem, sdk.ErrForked) {
		t.Fatalf("forked: %v, %v", c.Topology().Version(), c.State().Problem)
	}
	if fresh := plane.Client(); fresh.Topology() != plane.Topology() {
		t.Error("a new client does not take the line as it is")
	}
	if v := plane.RaiseEpoch(); c.Topology() != v {
		t.Fatalf("epoch raised: on %v", c.Topology().Version())
	}

	// A source that breaks its law: clients see to themselves.
	var refused *sdk.RefusedError
	for _, err := range plane.Offer(v2) {
		if !errors.As(err, &refused) || !errors.Is(err, sdk.ErrOlder) {
			t.Errorf("an older version: %v", err)
		}
	}
	for _, err := range plane.Offer(shardtest.New(t, "x").Topology()) {
		if !errors.Is(err, sdk.ErrCluster) {
			t.Errorf("another cluster: %v", err)
		}
	}
	if n := len(plane.Offer(plane.Topology())); n != 2 {
		t.Errorf("%d answers, want 2", n)
	}
}

// TestSteps: keys go over as far as they are told to.
func TestSteps(t *testing.T) {
	plane := shardtest.New(t, "a", "b")
	c := plane.Client()
	at := func() (over, between int) {
		for i := range 400 {
			r := route(t, c, fmt.Sprint(i))
			if r.ID() == "c" {
				over++
			}
			if _, ok := r.Other(); ok {
				between++
			}
		}
		return over, between
	}
	plane.Begin(0, func(d *topology.Declared) { d.Nodes = append(d.Nodes, topology.Node{ID: "c", Weight: 1}) })
	over, between := at()
	plane.Step(.5)
	half, still := at()
	plane.Step(1)
	all, _ := at()
	plane.Finish()
	if end, none := at(); over != 0 || between < 60 || half < between/4 || half > 3*between/4 || still != between || all != between || end != between || none != 0 {
		t.Errorf("%d, %d; %d, %d; %d; %d, %d", over, between, half, still, all, end, none)
	}
}

// fatal records what a test would have ended by.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Fatalf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

// TestRefusals: what cannot be done ends the test, and changes nothing.
func TestRefusals(t *testing.T) {
	f := &fatal{TB: t}
	plane := shardtest.New(f, "a", "b")
	before := plane.Topology()
	for name, call := range map[string]func(){
		"twice":          func() { plane.Add(topology.Node{ID: "a", Weight: 1}) },
		"not there":      func() { plane.Remove("z") },
		"to nobody":      func() { plane.Assign("k", "z") },
		"never was":      func() { plane.GoBack(topology.Version{Epoch: 7, Seq: 7}) },
		"one slot, two":  func() { plane.AssignAll(clash(t, plane)) },
		"no node at all": func() { shardtest.New(f, "a", "a") },
	} {
		f.text = ""
		call()
		if f.text == "" {
			t.Errorf("%s: the test goes on", name)
		}
	}
	if after := plane.Topology(); after.Version().Seq > before.Version().Seq+1 {
		t.Errorf("%v", after.Version())
	}
	ring := shardtest.NewFrom(f, topology.Declared{Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: []topology.Node{{ID: "a", Weight: 1}}})
	if f.text = ""; ring.Assign("k", "a") != nil || f.text == "" {
		t.Error("assigned on a ring")
	}
}

// clash returns two keys of one slot for two nodes.
func clash(t *testing.T, plane *shardtest.Plane) map[string]string {
	t.Helper()
	c := plane.Client()
	seen := map[uint64]string{}
	for i := range 100_000 {
		key := fmt.Sprint(i)
		slot := route(t, c, key).Hash() >> 50
		if other, ok := seen[slot]; ok {
			return map[string]string{key: "a", other: "b"}
		}
		seen[slot] = key
	}
	t.Fatal("no two keys of one slot")
	return nil
}

// TestHolds: who holds does so until he releases, whatever others do, also when the
// plane goes back.
func TestHolds(t *testing.T) {
	p := shardtest.New(t, "a", "b")
	c := p.Client()
	first := p.Topology()
	p.Assign("k", "a")
	want := func(topo *topology.Topology) {
		t.Helper()
		if err := p.Settle(t.Context()); err != nil || c.Topology().Ref() != topo.Ref() {
			t.Errorf("on %s, want %s, %v", c.Topology().Ref(), topo.Ref(), err)
		}
	}
	one := p.Hold()
	one()
	two := p.Hold()
	held := p.Topology()
	p.Assign("k", "b")
	one() // again
	want(held)
	three := p.Hold()
	two()
	want(held)
	three()
	want(p.Topology())
	last := p.Topology()
	four := p.Hold()
	p.GoBack(first.Version())
	p.RaiseEpoch()
	want(last)
	four()
	want(p.Topology())
}
