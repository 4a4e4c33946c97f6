package membership_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// rollback rolls the world back as a server does.
func (f *fleet) rollback(v topology.Version) topology.Declared {
	f.t.Helper()
	old, err := f.store.Version(f.t.Context(), v)
	if err != nil {
		f.t.Fatal(err)
	}
	roll, err := f.store.(membership.Roster).Roll(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return f.declare(membership.Rollback(old, roll)).Declared
}

// TestRollbackBackTo goes through what a node was, is, and is by admission's word.
func TestRollbackBackTo(t *testing.T) {
	const (
		active, down, joining, draining, left = topology.StateActive, topology.StateDown, topology.StateJoining, topology.StateDraining, topology.StateLeft
	)
	f := func(what string, then, now topology.Node, mark *membership.Mark, live *membership.Live, want topology.Node) {
		t.Helper()
		then.ID, then.Weight, want.ID, want.Weight = "a", 3, "a", 3
		old, err := topology.New(topology.Draft{Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 7}, Spec: declared(0).Spec, Nodes: []topology.Node{then}})
		if err != nil {
			t.Fatal(err)
		}
		var roll membership.Roll
		if mark != nil {
			mark.ID, mark.Admitted = "a", true
			roll.Marks = append(roll.Marks, *mark)
		}
		if live != nil {
			live.ID, live.Addr = "a", "here"
			roll.Live = append(roll.Live, *live)
		}
		d := declared(0)
		if now != (topology.Node{}) {
			now.ID, now.Weight = "a", 5
			d.Nodes = append(d.Nodes, now)
		}
		e := membership.Rollback(old, roll)
		got, err := e.Apply(d)
		if err != nil || e.Restore != old.Version() || !e.Whole {
			t.Fatalf("%+v, %v", e, err)
		}
		if diff := cmp.Diff([]topology.Node{want}, got.Nodes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	states := []topology.State{active, down, joining, draining, left}
	is := func(s topology.State) topology.Node { return topology.Node{State: s, Addr: "here"} }
	by := func(s topology.State) *membership.Mark { return &membership.Mark{State: s, Next: s, Addr: "here"} }
	for _, then := range states {
		for _, now := range states {
			what := fmt.Sprintf("%s then, %s now", then, now)
			f("an operator's node, "+what, is(then), is(now), nil, nil, is(then))
			f("by admission, "+what, is(then), is(now), by(now), &membership.Live{}, is(now))
			f("by admission, about to be so, "+what, is(then), is(now), &membership.Mark{State: left, Next: now}, nil, is(now))
			back := active // an operator's word since is taken back
			if then == now {
				back = now
			}
			if now != active {
				f("by an operator since, "+what, is(then), is(now), by(active), &membership.Live{}, is(back))
			}
		}
		f("an operator's node, removed since", is(then), topology.Node{}, nil, nil, is(then))
		f("a member, removed since", is(then), topology.Node{}, by(active), &membership.Live{}, is(active))
		f("a lost member, removed since", is(then), topology.Node{}, by(active), nil, is(active))
		f("a member that left, removed since", is(then), topology.Node{}, by(left), nil, is(left))
		f("a member that left and is back, removed since", is(then), topology.Node{}, by(left), &membership.Live{}, is(active))
		f("not admitted yet", is(then), topology.Node{}, nil, &membership.Live{}, is(active))
	}
	there := topology.Node{Addr: "there", Zone: "z1"}
	moved := topology.Node{Addr: "here", Zone: "z2"}
	f("it moved", there, moved, &membership.Mark{Addr: "here", Zone: "z2"}, &membership.Live{Zone: "z2"}, moved)
	f("it moved and was lost", there, moved, &membership.Mark{Addr: "here", Zone: "z2"}, nil, moved)
	f("its address is by hand, then as now", there, there, &membership.Mark{Addr: "here"}, &membership.Live{}, there)
	f("its address is by hand since", there, topology.Node{Addr: "x", Zone: "z1"}, &membership.Mark{Addr: "here"}, &membership.Live{}, topology.Node{Addr: "here", Zone: "z1"})
}

// TestRollbackMembers: a member that was down in the version that is gone back to
// serves on, and the tables are the old ones.
func TestRollbackMembers(t *testing.T) {
	d := declared(4)
	d.Spec = topology.Spec{Algorithm: topology.Slots}
	admission(t, d, nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "m", Addr: "m:1"})
		time.Sleep(2 * time.Second)
		f.wantState("registered", "m", topology.StateActive)
		whole := f.load().Head
		f.kill(m, "m")
		time.Sleep(10 * time.Second)
		f.wantState("killed", "m", topology.StateDown)
		lost := f.load().Head
		m = f.register(membership.Registration{ID: "m", Addr: "m:1"})
		time.Sleep(10 * time.Second)
		f.wantState("back", "m", topology.StateActive)
		f.declare(membership.SetWeight("n01", 9))
		f.rollback(lost.Version())
		time.Sleep(time.Minute)
		f.wantState("rolled back", "m", topology.StateActive)
		if head := f.load().Head; head.Mapping() != whole.Mapping() || head.Mapping() != lost.Mapping() {
			t.Error("the tables are not those of then")
		}
		f.declare(membership.Drain("m"))
		f.wantState("drained", "m", topology.StateDraining)
		f.rollback(whole.Version())
		f.wantState("the drain is taken back", "m", topology.StateActive)
		if f.load().Head.Mapping() != whole.Mapping() {
			t.Error("the tables are not those of then")
		}
		_ = m.Close()
	})
}

// TestRollbackBeside: an edit that is published with a rollback and changes no owner
// leaves it its tables.
func TestRollbackBeside(t *testing.T) {
	d := declared(4)
	d.Spec = topology.Spec{Algorithm: topology.Maglev, TableSize: 251}
	admission(t, d, nil, func(t *testing.T, f *fleet) {
		old := f.load().Head
		f.declare(membership.SetWeight("n01", 9))
		f.declare(membership.SetWeight("n02", 5))
		if _, err := f.store.Freeze(t.Context(), &membership.Freeze{}); err != nil {
			t.Fatal(err)
		}
		f.declare(membership.Rollback(old, membership.Roll{}))
		f.declare(membership.ChangeNode("n03", func(n *topology.Node) error { n.Addr = "elsewhere"; return nil }))
		if _, err := f.store.Freeze(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if n := f.node("n03"); n.Addr != "elsewhere" || f.load().Head.Mapping() != old.Mapping() {
			t.Errorf("%+v; the tables are others", n)
		}
	})
}

// story is a world to which things happen by chance.
type story struct {
	*fleet
	t       *rapid.T
	running map[string]*membership.Member
	stops   map[string]bool // it was told to stop
	addrs   map[string]string
	steps   int
}

func (s *story) step() {
	s.steps++
	id := rapid.SampledFrom([]string{"n00", "m0", "m0", "m1", "m1", "m1"}).Draw(s.t, "node")
	m := s.running[id]
	list := []string{"drain", "undrain", "weight", "remove", "add"}
	switch {
	case m != nil:
		list = append(list, "kill", "kill", "lose", "stop", "stop", "close")
	case id[0] == 'm':
		list = append(list, "start", "start", "start", "start", "start")
	}
	var edit membership.Edit
	switch what := rapid.SampledFrom(list).Draw(s.t, "what"); what {
	case "drain":
		edit = membership.Drain(id)
	case "undrain":
		edit = membership.Undrain(id)
	case "weight":
		edit = membership.SetWeight(id, rapid.Uint32Range(1, 5).Draw(s.t, "weight"))
	case "remove":
		edit = membership.RemoveNode(id)
	case "add":
		edit = membership.AddNode(topology.Node{ID: id, Addr: "by-hand", Weight: 1})
	case "start":
		s.addrs[id] = fmt.Sprintf("%s-%d:1", id, s.steps/8)
		s.running[id] = s.register(membership.Registration{ID: id, Addr: s.addrs[id], Identity: id})
		delete(s.stops, id)
	case "kill":
		s.kill(m, id)
		delete(s.running, id)
	case "lose":
		s.s.Expire("c", id)
	case "stop":
		s.stops[id] = m.Drain(s.fleet.t.Context()) == nil
	case "close":
		_ = m.Close()
		delete(s.running, id)
	}
	if edit.Apply != nil {
		_, err := s.store.Declare(s.fleet.t.Context(), edit)
		for _, known := range []error{membership.ErrNoNode, membership.ErrExists, membership.ErrInvalid} {
			if errors.Is(err, known) {
				err = nil
			}
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	time.Sleep(rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 9 * time.Second, 40 * time.Second}).Draw(s.t, "wait"))
	synctest.Wait()
}

// check holds what is declared now against the version old that was gone back to;
// before was declared then, and members names what an agent had registered.
func (s *story) check(old *topology.Topology, before topology.Declared, members map[string]bool) {
	now := s.load()
	if now.Applied != now.Generation {
		s.t.Fatalf("generation %d is not published: %d", now.Generation, now.Applied)
	}
	if now.Head.Len() != old.Len() {
		s.t.Fatalf("%d nodes, want those of version %s: %d", now.Head.Len(), old.Version(), old.Len())
	}
	for i, then := range old.Nodes() {
		n := now.Head.Node(i)
		j := slices.IndexFunc(before.Nodes, func(n topology.Node) bool { return n.ID == then.ID })
		switch {
		case n.ID != then.ID || n.Weight != then.Weight:
			s.t.Fatalf("%+v, was %+v", n, then)
		case !members[n.ID]:
			if n != then {
				s.t.Fatalf("an operator's node is %+v, was %+v", n, then)
			}
		case j >= 0 && then.State == topology.StateDraining && before.Nodes[j].State == topology.StateDraining: // by whose word, nobody knows
		case s.running[n.ID] == nil:
			if n.OwnerWeight() != 0 {
				s.t.Fatalf("nobody runs %+v", n)
			}
		case s.stops[n.ID]:
			if n.OwnerWeight() != 0 {
				s.t.Fatalf("told to stop: %+v", n)
			}
		case n.State != topology.StateActive:
			s.t.Fatalf("its agent is well, but it is %+v; it was %+v then", n, then)
		case n.Addr != s.addrs[n.ID] && (j < 0 || before.Nodes[j].Addr != then.Addr):
			s.t.Fatalf("%+v runs at %s", n, s.addrs[n.ID])
		}
	}
}

// checkTables holds the mapping right after the rollback to d against that of old: it
// is the same if the owners are.
func (s *story) checkTables(old *topology.Topology, d topology.Declared) {
	synctest.Wait()
	head := s.load().Head
	if head.Mapping() == old.Mapping() || !slices.Equal(head.Nodes(), d.Nodes) {
		return
	}
	for i, then := range old.Nodes() {
		if d.Nodes[i].OwnerWeight() != then.OwnerWeight() {
			return
		}
	}
	s.t.Fatal("the owners are those of then, the mapping is not")
}

// bubbled is a test in a bubble of virtual time, which has no deadline.
type bubbled struct{ *testing.T }

// TestRollbackLaw: whatever happened, after a rollback spec, weights and the set of
// nodes are what they were; members that run serve, where they are, others own
// nothing; and where owners are what they were the mapping is, too.
func TestRollbackLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubbled{t}, func(rt *rapid.T) {
			d := declared(3)
			d.Spec = rapid.SampledFrom([]topology.Spec{{Algorithm: topology.Ring, VNodes: 16}, {Algorithm: topology.Slots, SlotCount: 256}, {Algorithm: topology.Maglev, TableSize: 251}, {Algorithm: topology.Jump}}).Draw(rt, "spec")
			s := &story{fleet: &fleet{world: newWorld(t, d)}, t: rt, running: map[string]*membership.Member{}, stops: map[string]bool{}, addrs: map[string]string{}}
			_, stop := s.control(func(c *membership.ControllerConfig) { c.Admission.MassLoss = -1 })
			defer func() {
				for _, m := range s.running {
					_ = m.Close()
				}
				_ = stop()
			}()
			for range rapid.IntRange(4, 25).Draw(rt, "steps") {
				s.step()
			}
			versions, err := s.store.Versions(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			old, err := s.store.Version(t.Context(), versions[rapid.IntRange(0, len(versions)-1).Draw(rt, "to")].Version)
			if err != nil {
				rt.Fatal(err)
			}
			roll, err := s.store.(membership.Roster).Roll(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			members := map[string]bool{}
			for _, m := range roll.Marks {
				members[m.ID] = true
			}
			for _, l := range roll.Live {
				members[l.ID] = true
			}
			before := s.load().Declared
			st, err := s.store.Declare(t.Context(), membership.Rollback(old, roll))
			if err != nil {
				rt.Fatal(err)
			}
			s.checkTables(old, st.Declared)
			time.Sleep(90 * time.Second)
			synctest.Wait()
			s.check(old, before, members)
		})
	})
}
