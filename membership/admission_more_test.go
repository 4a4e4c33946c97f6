package membership_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// away makes the store unreachable for members so that their leases are lost for
// d.
func (f *fleet) away(d time.Duration) {
	f.s.Away(true)
	time.Sleep(membership.DefaultTTL + d)
	f.s.Away(false)
	time.Sleep(1100 * time.Millisecond) // they try every second
}

func setState(s topology.State) membership.Edit {
	return membership.ChangeNode("n1", func(n *topology.Node) error { n.State = s; return nil })
}

// TestAdmissionLossesCount: losses that were too short to be declared do not hold
// a node back after a longer one.
func TestAdmissionLossesCount(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		time.Sleep(1100 * time.Millisecond)
		before := f.load().ETag()
		for range 3 {
			f.away(500 * time.Millisecond)
		}
		if after := f.load().ETag(); after != before {
			t.Errorf("short losses: from %s to %s", before, after)
		}
		f.away(3 * time.Second)
		f.wantState("back after a longer one", "n1", topology.StateActive)
	})
}

// TestAdmissionRemovedStaysOut: a member that an operator removed stays out also
// when its lease is lost for a while.
func TestAdmissionRemovedStaysOut(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		time.Sleep(1100 * time.Millisecond)
		f.node("n1")
		f.declare(membership.RemoveNode("n1"))
		f.away(time.Minute)
		time.Sleep(time.Minute)
		if n := f.node("n1"); n.ID != "" || !m.Status().Registered {
			t.Errorf("it is %+v, status %+v", n, m.Status())
		}
	})
}

// TestAdmissionOperatorStates: states that an operator gave a member stand,
// whatever its lease does.
func TestAdmissionOperatorStates(t *testing.T) {
	for _, state := range []topology.State{topology.StateJoining, topology.StateDraining, topology.StateDown, topology.StateLeft} {
		t.Run(state.String(), func(t *testing.T) {
			admission(t, empty(), nil, func(t *testing.T, f *fleet) {
				m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
				time.Sleep(1100 * time.Millisecond)
				f.node("n1")
				f.declare(setState(state))
				time.Sleep(time.Minute)
				f.wantState("there", "n1", state)
				f.away(time.Minute)
				f.wantState("back", "n1", state)
				f.kill(m, "n1")
				time.Sleep(10 * time.Minute)
				f.wantState("dead", "n1", state)
			})
		})
	}
}

// TestAdmissionNotWhileDraining: a node that is about to go is not admitted.
func TestAdmissionNotWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{world: newWorld(t, empty())}
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		if err := m.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, stop := f.control(nil)
		defer func() { _ = stop() }()
		time.Sleep(time.Minute)
		if n := f.node("n1"); n.ID != "" {
			t.Errorf("it was admitted: %+v", n)
		}
	})
}

// racing is a store in which an operator's edit comes between admission's
// reading and its writing, once.
type racing struct {
	membership.ClusterStore
	edit atomic.Pointer[membership.Edit]
}

func (r *racing) Declare(ctx context.Context, e membership.Edit) (membership.State, error) {
	if edit := r.edit.Swap(nil); edit != nil {
		if s, err := r.ClusterStore.Declare(ctx, *edit); err != nil {
			return s, err
		}
	}
	return r.ClusterStore.Declare(ctx, e)
}

// TestAdmissionLosesNoEdit: an operator's edit that comes between is not
// overwritten by what admission had read before.
func TestAdmissionLosesNoEdit(t *testing.T) {
	edit := membership.SetWeight("n1", 9)
	r := &racing{}
	set := func(c *membership.ControllerConfig) {
		r.ClusterStore = c.Store.(membership.ClusterStore)
		c.Store = r
	}
	admission(t, empty(), set, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		f.wantState("at once", "n1", topology.StateJoining)
		r.edit.Store(&edit)
		time.Sleep(2 * time.Second)
		if n := f.wantState("after Join", "n1", topology.StateActive); n.Weight != 9 {
			t.Errorf("weight %d: the operator's edit was lost", n.Weight)
		}
	})
}

// TestAdmissionOverlay: what nodes say of their health is told to all while they
// are there, and makes no version.
func TestAdmissionOverlay(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		a, b := f.register(membership.Registration{ID: "n1", Addr: "a:1"}), f.register(membership.Registration{ID: "n2", Addr: "a:2"})
		defer a.Close()
		time.Sleep(1100 * time.Millisecond)
		before := f.load().Head.Version()
		bad := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if o := f.load().Overlay; o == nil || !slices.Equal(o.Bad, want) {
				t.Errorf("%s: health %+v, want %v", when, o, want)
			}
		}
		bad("at first")
		for _, h := range []membership.Health{membership.HealthBad, membership.HealthBad, membership.HealthOK, membership.HealthBad} {
			if err := a.SetHealth(h, "check"); err != nil {
				t.Fatal(err)
			}
		}
		bad("n1 is bad", "n1")
		if err := b.SetHealth(membership.HealthBad, "check"); err != nil {
			t.Fatal(err)
		}
		bad("both are bad", "n1", "n2")
		if v := f.load().Head.Version(); v != before {
			t.Errorf("health made version %s of %s", v, before)
		}
		b.Close()
		bad("n2 is gone", "n1")
		f.s.Depose("c")
		time.Sleep(100 * time.Millisecond)
		bad("another leader", "n1")
	})
}

// TestAdmissionMassLoss: if more than half of the members are lost together they
// are held as down; when half are back the others leave.
func TestAdmissionMassLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{world: newWorld(t, empty())}
		c, stop := f.control(func(c *membership.ControllerConfig) { c.Admission.Settle = 10 * time.Second })
		ids := []string{"n1", "n2", "n3", "n4"}
		members := map[string]*membership.Member{}
		for i, id := range ids {
			members[id] = f.register(membership.Registration{ID: id, Addr: fmt.Sprint("a:", i)})
		}
		states := func(when string, held int, want ...topology.State) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			for i, id := range ids {
				f.wantState(when, id, want[i])
			}
			if got := c.Status().Held; got != held {
				t.Errorf("%s: %d held, want %d", when, got, held)
			}
		}
		active, down, left := topology.StateActive, topology.StateDown, topology.StateLeft
		states("at first", 0, active, active, active, active)
		for _, id := range ids[:3] {
			f.kill(members[id], id)
		}
		states("three of four are lost", 3, down, down, down, active)
		members["n1"] = f.register(membership.Registration{ID: "n1", Addr: "a:0"})
		states("one is back", 0, active, left, left, active)
		f.kill(members["n4"], "n4")
		states("one of two is lost", 0, active, left, left, left)
		f.kill(members["n1"], "n1")
		states("the last one", 0, left, left, left, left)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("controller: %v", err)
		}
	})
}
