package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/resilience/outlier"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// zoned are three zones of three nodes.
func zoned() []topology.Node {
	all := nodes(9)
	for i := range all {
		all[i].Zone = fmt.Sprintf("z%d", i%3)
	}
	return all
}

var zoneSpec = topology.Spec{Algorithm: topology.Rendezvous, Replicas: 3, ZoneAware: true, BoundedLoad: 1.25}

// A replica in the own zone is preferred as long as its load is under the cap;
// what is above goes to the others, and comes back by itself.
func TestZoneFirst(t *testing.T) {
	f := func(view sdk.LoadView) {
		t.Helper()
		l := newLine(t)
		c, f := start(t, sdk.WithZone("z1"), sdk.WithBoundedLoad(sdk.BoundedLoad{View: view}))
		mustGive(t, f, l.publish(zoneSpec, zoned()...))
		zone := func(tk *sdk.Ticket) string { return tk.Route().Zone() }
		for i := range 300 {
			tk := acquire(t, c, fmt.Sprint(i), 1)
			if zone(tk) != "z1" {
				t.Fatalf("view %d: an idle zone is left for %s", view, zone(tk))
			}
			tk.Done(sdk.Success)
		}
		// One key draws everything: its local replica fills up to its cap.
		var open []*sdk.Ticket
		seen := map[string]int{}
		for range 90 {
			tk := acquire(t, c, "hot", 1)
			seen[zone(tk)]++
			open = append(open, tk)
		}
		s := c.LoadStats()
		if seen["z1"] == 90 || seen["z1"] == 0 || s.LeftZone == 0 || s.InZone <= 300 || s.InZone+s.LeftZone != 390 {
			t.Fatalf("view %d: %v, in zone %d, left %d", view, seen, s.InZone, s.LeftZone)
		}
		for _, tk := range open {
			tk.Done(sdk.Success)
		}
		if tk := acquire(t, c, "hot", 1); zone(tk) != "z1" {
			t.Fatalf("view %d: idle again, and requests go to %s", view, zone(tk))
		}
		if s := c.LoadStats(); s.OverCap != 0 {
			t.Fatalf("view %d: %d over the cap", view, s.OverCap)
		}
	}
	f(sdk.OwnLoad)
	f(sdk.ReportedLoad)
}

// outage is a zone that can fail.
type outage struct {
	mu   sync.Mutex
	down map[string]bool
}

func (o *outage) set(down bool, zone string, all []topology.Node, most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range all {
		if n.Zone == zone && most > 0 {
			o.down[n.ID] = down
			most--
		}
	}
}

func (o *outage) fails(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.down[id]
}

// The zone outage drill, which is field case lb-08 (3), too: all nodes of the own
// zone fail; requests go to the other zones, spread by the keys; one node comes
// back, then all. Each time the requests follow within ten seconds, though no
// user's request looks for them. The mapping stays the same throughout.
func TestZoneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		all := zoned()
		world := &outage{down: map[string]bool{}}
		c, f := start(t, sdk.WithZone("z1"), sdk.WithResilience(sdk.Resilience{
			Outlier: outlier.Config{Limit: 0.34, Base: time.Hour, Max: time.Hour},
			Probe: func(_ context.Context, n topology.Node) error {
				if world.fails(n.ID) {
					return errors.New("down")
				}
				return nil
			},
		}))
		mustGive(t, f, l.publish(zoneSpec, all...))
		digest := l.table.Digest()
		failed := 0
		traffic := func(d time.Duration) map[string]int {
			seen := map[string]int{}
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				for k := range 3 {
					key := fmt.Sprint(time.Now().UnixNano(), k)
					err := c.Do(t.Context(), sdk.Call{Key: key}, func(_ context.Context, tk *sdk.Ticket) error {
						if world.fails(tk.ID()) {
							return errors.New("no answer") // not to be tried again
						}
						seen[tk.Route().Zone()]++
						return nil
					})
					if err != nil {
						failed++
					}
				}
			}
			return seen
		}
		if seen := traffic(5 * time.Second); seen["z1"] != 1500 {
			t.Fatalf("before: %v", seen)
		}
		world.set(true, "z1", all, 3)
		traffic(10 * time.Second)
		if failed > 20 {
			t.Errorf("%d requests failed until the zone was left", failed)
		}
		failed = 0
		seen := traffic(5 * time.Second)
		if failed > 0 || seen["z1"] > 0 || seen["z0"] < 500 || seen["z2"] < 500 {
			t.Errorf("during: %v, %d failed", seen, failed)
		}
		world.set(false, "z1", all, 1)
		traffic(10 * time.Second)
		// A third of the keys has its local replica on the one that is back.
		if seen = traffic(5 * time.Second); seen["z1"] < 400 || failed > 0 {
			t.Errorf("one is back: %v, %d failed", seen, failed)
		}
		world.set(false, "z1", all, 3)
		traffic(10 * time.Second)
		if seen = traffic(5 * time.Second); seen["z1"] != 1500 || failed > 0 {
			t.Errorf("after: %v, %d failed", seen, failed)
		}
		if s := c.LoadStats(); s.InZone == 0 || s.Total != 0 {
			t.Errorf("in zone %d, total %d", s.InZone, s.Total)
		}
		if c.Topology().Mapping() != digest {
			t.Error("the mapping changed")
		}
	})
}

// A node that drains gets no more requests; what is in flight finishes, and what
// has not by the end of the node's own grace is cut.
func TestDrainFinishesWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		var mu sync.Mutex
		var drained []sdk.Departed
		c, f := start(t,
			sdk.WithGrace(func(n topology.Node) time.Duration {
				if n.ID == "node-000" {
					return time.Minute
				}
				return 10 * time.Second
			}),
			sdk.WithHooks(sdk.Hooks{OnDrained: func(d sdk.Departed) { mu.Lock(); defer mu.Unlock(); drained = append(drained, d) }}))
		three := nodes(3)
		mustGive(t, f, l.ring(three...))
		short := acquire(t, c, owned(t, c, "node-000"), 1)
		stream := acquire(t, c, owned(t, c, "node-001"), 1)
		three[0].State, three[1].State = topology.StateDraining, topology.StateDraining
		mustGive(t, f, l.ring(three...))
		for i := range 100 {
			tk := acquire(t, c, fmt.Sprint(i), 1)
			if tk.ID() != "node-002" {
				t.Fatalf("%s drains and gets requests", tk.ID())
			}
			tk.Done(sdk.Success)
		}
		time.Sleep(5 * time.Second)
		short.Done(sdk.Success)
		select {
		case <-stream.Cut():
			t.Fatal("cut before its grace was over")
		case <-time.After(6 * time.Second):
			t.Fatal("not cut when its grace was over")
		case <-time.After(4 * time.Second):
		}
		select {
		case <-stream.Cut():
		case <-time.After(2 * time.Second):
			t.Fatal("not cut when its grace was over")
		}
		stream.Done(sdk.Success)
		synctest.Wait() // the hook comes after the cut
		mu.Lock()
		defer mu.Unlock()
		if len(drained) != 2 || drained[0].Node.ID != "node-000" || drained[0].Cut != 0 || drained[1].Node.ID != "node-001" || drained[1].Cut != 1 {
			t.Fatalf("%+v", drained)
		}
		// Taken back before its grace is over: nothing is cut.
		three[0].State, three[1].State = topology.StateActive, topology.StateActive
		mustGive(t, f, l.ring(three...))
		back := acquire(t, c, owned(t, c, "node-001"), 1)
		three[1].State = topology.StateDraining
		mustGive(t, f, l.ring(three...))
		time.Sleep(time.Second)
		three[1].State = topology.StateActive
		mustGive(t, f, l.ring(three...))
		select {
		case <-back.Cut():
			t.Fatal("a node that was taken back cut its streams")
		case <-time.After(time.Hour):
		}
	})
}

// A new node has a tenth of its cap at first, and all of it after the window; the
// nodes that were there before are as they were.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		c, f := start(t, sdk.WithResilience(sdk.Resilience{}), sdk.WithBoundedLoad(sdk.BoundedLoad{Factor: 2}))
		mustGive(t, f, l.ring(nodes(3)...))
		if got := loadOf(t, c, "node-000").Warming; got != 1 {
			t.Fatalf("a node of the first topology warms up: %v", got)
		}
		mustGive(t, f, l.ring(nodes(4)...))
		acquire(t, c, owned(t, c, "node-000"), 3000)
		if n := loadOf(t, c, "node-003"); n.Warming > 0.11 || n.Cap > 210 {
			t.Fatalf("%+v", n)
		}
		time.Sleep(30 * time.Second)
		if n := loadOf(t, c, "node-003"); n.Warming < 0.45 || n.Warming > 0.55 || n.Cap < 700 || n.Cap > 950 {
			t.Fatalf("half way: %+v", n)
		}
		time.Sleep(35 * time.Second)
		if n := loadOf(t, c, "node-003"); n.Warming != 1 || n.Cap != 1501 {
			t.Fatalf("after the window: %+v", n)
		}
	})
}
