package sdk_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shardd/shardd/compat"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// A client routes by every live foreign mapping as the foreign system does, goes
// from one to the next and to a native one, and refuses what is for planning.
func TestForeignMappings(t *testing.T) {
	l := newLine(t)
	c, f := start(t)
	live := 0
	for _, mode := range topology.Modes() {
		foreign := topology.Foreign{Mode: mode}
		if mode == topology.ModeHAProxy {
			foreign.Distribution = "consistent"
		}
		if mode == topology.ModeLibmemcached {
			foreign.Distribution = "ketama_weighted"
		}
		next := l.copy()
		topo := next.publish(topology.Spec{Compat: foreign}, nodes(5)...)
		if !foreign.Live() {
			if err := f.give(topo); !errors.Is(err, placement.ErrPlanOnly) {
				t.Errorf("%s: %v, want ErrPlanOnly", mode, err)
			}
			continue
		}
		l, live = next, live+1
		mustGive(t, f, topo)
		if mode == topology.ModeRedisSlots {
			continue // has a table, not a mapping
		}
		m, err := compat.New(foreign, topo.Nodes())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			key := fmt.Sprintf("{user:%d}:%d", i%50, i)
			r, err := c.Route(key)
			if err != nil || r.ID() != topo.Node(m.LocateKey(key)).ID {
				t.Fatalf("%s: key %q goes to %s (%v), the foreign system takes node %d", mode, key, r.ID(), err, m.LocateKey(key))
			}
		}
	}
	if live != 18 {
		t.Errorf("%d live modes", live)
	}
	mustGive(t, f, l.ring(nodes(5)...))
	if _, err := c.Route("k"); err != nil {
		t.Error(err)
	}
}

// A node marked down: under ketama requests for its keys take a detour, under
// nginx its keys are others'.
func TestForeignDown(t *testing.T) {
	for mode, detour := range map[topology.Mode]bool{topology.ModeKetama: true, topology.ModeNginx: false} {
		l := newLine(t)
		c, f := start(t)
		list := nodes(3)
		list[1].State = topology.StateDown
		mustGive(t, f, l.publish(topology.Spec{Compat: topology.Foreign{Mode: mode}}, list...))
		detours := 0
		for i := range 300 {
			r, err := c.Route(fmt.Sprint("key:", i))
			if err != nil || r.ID() == list[1].ID {
				t.Fatalf("%s: a node that is down: %s, %v", mode, r.ID(), err)
			}
			if r.Detour() {
				detours++
			}
		}
		if (detours > 50) != detour || !detour && detours > 0 {
			t.Errorf("%s: %d detours", mode, detours)
		}
	}
}
