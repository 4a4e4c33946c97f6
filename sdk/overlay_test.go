package sdk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// health reports the nodes' health as a source does.
func (f *feed) health(bad ...string) {
	f.offers <- func(ctx context.Context, _ func(*topology.Topology) error) error {
		sdk.ReportHealth(ctx, bad)
		return nil
	}
	<-f.answers
}

func wantAround(t *testing.T, c *sdk.Client, when string, ignored bool, want ...string) {
	t.Helper()
	o := c.Overlay()
	if diff := cmp.Diff(want, o.Around); diff != "" || o.Ignored != ignored {
		t.Errorf("%s: ignored %t, around (-want +got):\n%s", when, o.Ignored, diff)
	}
}

// checkOverlay: every key goes to the first node in its order that is not in bad,
// and is owned by who owned it before.
func checkOverlay(t *testing.T, c *sdk.Client, table *placement.Table, bad ...string) {
	t.Helper()
	for i := range 300 {
		key := fmt.Sprint("key-", i)
		r, err := c.Route(key)
		if err != nil {
			t.Fatal(err)
		}
		h := table.Hash(key)
		order := table.AppendReplicas(nil, h, table.Topology().Len())
		want := order[slices.IndexFunc(order, func(n int) bool { return !slices.Contains(bad, table.Topology().Node(n).ID) })]
		if r.ID() != table.Topology().Node(want).ID || r.Owner().ID != table.Topology().Node(order[0]).ID || r.Detour() != (want != order[0]) {
			t.Fatalf("%s with %v bad: to %s (detour %t, owner %s), want %s", key, bad, r.ID(), r.Detour(), r.Owner().ID, table.Topology().Node(want).ID)
		}
		list, err := c.RouteN(nil, key, 3)
		if err != nil || list[0] != r {
			t.Fatalf("RouteN begins with %v, Route says %v: %v", list, r, err)
		}
	}
}

// TestOverlay: requests go round bad nodes along the key's order; nothing is
// published, and the mapping stays, with every node bad too.
func TestOverlay(t *testing.T) {
	for _, algorithm := range []topology.Algorithm{topology.Ring, topology.Slots, topology.Rendezvous} {
		t.Run(string(algorithm), func(t *testing.T) {
			c, f := start(t)
			l := newLine(t)
			v1 := l.publish(topology.Spec{Algorithm: algorithm, Replicas: 2}, nodes(6)...)
			f.health("node-001") // before there is anything to go round
			mustGive(t, f, v1)
			wantAround(t, c, "reported early", false, "node-001")
			checkOverlay(t, c, l.table, "node-001")
			f.health("node-004", "node-001", "nobody")
			checkOverlay(t, c, l.table, "node-001", "node-004")
			c.SetHealth("node-005", false)
			wantAround(t, c, "own word too", false, "node-001", "node-004", "node-005")
			checkOverlay(t, c, l.table, "node-001", "node-004", "node-005")

			mustGive(t, f, l.publish(topology.Spec{Algorithm: algorithm, Replicas: 2}, nodes(8)...))
			checkOverlay(t, c, l.table, "node-001", "node-004", "node-005")
			for i := range 50 {
				ticket, err := c.Acquire(t.Context(), fmt.Sprint("key-", i), 1)
				if err != nil || ticket.ID() == "node-001" {
					t.Fatalf("Acquire: %q, %v", ticket.ID(), err)
				}
				ticket.Done(sdk.Success)
			}
			digest := c.Topology().Mapping()
			var all []string
			for _, n := range nodes(8) {
				all = append(all, n.ID)
			}
			f.health(all...)
			wantAround(t, c, "all are bad", true)
			checkOverlay(t, c, l.table)
			if c.Topology().Mapping() != digest || c.State().Taken != 2 {
				t.Errorf("health changed the mapping")
			}
			f.health()
			wantAround(t, c, "all are well", false, "node-005")
			c.SetHealth("node-005", true)
			wantAround(t, c, "all are well", false)
			checkOverlay(t, c, l.table)
		})
	}
}

// TestOverlayLimit: an overlay that would leave less than half of the weight is
// not heeded; nodes that are published as down count.
func TestOverlayLimit(t *testing.T) {
	c, f := start(t)
	l := newLine(t)
	list := nodes(4)
	list[0].Weight, list[3].State = 2, topology.StateDown
	mustGive(t, f, l.ring(list...))
	f.health("node-001")
	wantAround(t, c, "two fifths", false, "node-001")
	f.health("node-001", "node-002")
	wantAround(t, c, "three fifths", true)
	checkOverlay(t, c, l.table, "node-003")
	f.health("node-003")
	wantAround(t, c, "down already", false, "node-003")
	checkOverlay(t, c, l.table, "node-003")
}

// TestOverlayExpires: what the source says stands for a while without being said
// again, and what this process says until it says otherwise.
func TestOverlayExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := start(t, sdk.WithHealthExpiry(10*time.Second))
		l := newLine(t)
		mustGive(t, f, l.ring(nodes(5)...))
		c.SetHealth("node-000", false)
		for range 5 {
			f.health("node-001")
			time.Sleep(9 * time.Second)
		}
		wantAround(t, c, "said again", false, "node-000", "node-001")
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		wantAround(t, c, "not said again", false, "node-000")
		if o := c.Overlay(); o.Reported != nil {
			t.Errorf("still reported: %v", o.Reported)
		}
		f.health("node-002")
		wantAround(t, c, "said anew", false, "node-000", "node-002")
		f.health()
		time.Sleep(time.Minute)
		if o := c.Overlay(); o.Reported == nil || len(o.Reported) > 0 {
			t.Errorf("that none is bad became %v", o.Reported)
		}
		f.health("node-002") // the timer ends with the client
	})
}

// TestOverlayOff: a client may heed its own word alone.
func TestOverlayOff(t *testing.T) {
	c, f := start(t, sdk.WithHealthExpiry(-1))
	l := newLine(t)
	mustGive(t, f, l.ring(nodes(5)...))
	f.health("node-001")
	wantAround(t, c, "not heeded", false)
	c.SetHealth("node-002", false)
	wantAround(t, c, "own word", false, "node-002")
}

// TestWeight06 is field case weight-06, the part of the client: one that runs all
// the time and one that starts later route alike at the same version, and a node
// that recovers from a failure of its health has the weight that it had.
func TestWeight06(t *testing.T) {
	weights := func(w ...uint32) []topology.Node {
		list := nodes(len(w))
		for i := range list {
			list[i].Weight = w[i]
		}
		return list
	}
	a, fa := start(t)
	l := newLine(t)
	mustGive(t, fa, l.ring(weights(1, 1, 1)...))
	last := l.ring(weights(2, 3, 4)...)
	mustGive(t, fa, last)
	b, fb := start(t)
	mustGive(t, fb, last)
	const keys = 20_000
	routes := func(c *sdk.Client) (to [keys]string) {
		for i := range to {
			r, err := c.Route(fmt.Sprint("key-", i))
			if err != nil {
				t.Fatal(err)
			}
			to[i] = r.ID()
		}
		return to
	}
	before := routes(a)
	if before != routes(b) {
		t.Error("a client that ran all the time and a new one route keys apart")
	}
	fa.health("node-001")
	without := routes(a)
	fa.health()
	if routes(a) != before {
		t.Error("a node that recovered has not its keys as before")
	}
	for i, to := range without {
		if to == "node-001" || before[i] != "node-001" && to != before[i] {
			t.Fatalf("key %d went to %s with node-001 bad, to %s before", i, to, before[i])
		}
	}
}
