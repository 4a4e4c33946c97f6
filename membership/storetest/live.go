package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

func registrar(t *testing.T, d membership.Directory) membership.Registrar {
	t.Helper()
	r, ok := d.Open("c").(membership.Registrar)
	if !ok {
		t.Fatalf("%T is no Registrar", d.Open("c"))
	}
	return r
}

func roster(t *testing.T, d membership.Directory) membership.Roster {
	t.Helper()
	r, ok := d.Open("c").(membership.Roster)
	if !ok {
		t.Fatalf("%T is no Roster", d.Open("c"))
	}
	return r
}

// register registers a node until the test ends.
func (s *suite) register(t *testing.T, d membership.Directory, reg membership.Registration) *membership.Member {
	t.Helper()
	if reg.TTL == 0 {
		reg.TTL = 2 * time.Second
	}
	m, err := membership.Register(s.ctx, registrar(t, d), reg)
	if err != nil {
		t.Fatalf("Register: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func (s *suite) live(t *testing.T) []membership.Live {
	t.Helper()
	r, err := roster(t, s.Other).Roll(s.ctx)
	if err != nil {
		t.Fatalf("Roll: %v", err)
	}
	return r.Live
}

// testRegister: a registration shows to others with all that it says, and is
// gone when it is closed.
func testRegister(t *testing.T, s *suite) {
	_, state := s.create(t, declared("c", 1))
	m := s.register(t, s.Directory, membership.Registration{ID: "n1", Addr: "10.0.0.1:1", Zone: "z", Weight: new(uint32(3)), Identity: "me"})
	s.register(t, s.Other, membership.Registration{ID: "n0", Addr: "10.0.0.1:0"})
	want := []membership.Live{{ID: "n0", Cluster: state.ID, Addr: "10.0.0.1:0", Incarnation: 1},
		{ID: "n1", Cluster: state.ID, Addr: "10.0.0.1:1", Zone: "z", Weight: new(uint32(3)), Identity: "me", Incarnation: 1, Owner: m.Status().Owner}}
	got := s.live(t)
	if len(got) == 2 {
		want[0].Owner = got[0].Owner
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if st := m.Status(); !st.Registered || st.Cluster != state.ID || st.Incarnation != 1 || len(st.Owner) != 32 || st.Err != nil {
		t.Errorf("status %+v", st)
	}
	if err := m.SetHealth(membership.HealthBad, "no answer"); err != nil {
		t.Fatal(err)
	}
	if err := m.Drain(s.ctx); err != nil {
		t.Fatal(err)
	}
	if l := s.live(t)[1]; !l.Drain || l.Health != membership.HealthBad || l.Reason != "no answer" || l.Incarnation != 1 {
		t.Errorf("after changes: %+v", l)
	}
	wantErr(t, "a health that is none", m.SetHealth("fine", ""), membership.ErrInvalid)
	for range 2 {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if left := s.live(t); len(left) != 1 || left[0].ID != "n0" {
		t.Errorf("after Close: %+v", left)
	}
}

// testRegisterRefused: a registration that is refused changes nothing.
func testRegisterRefused(t *testing.T, s *suite) {
	f := func(what string, reg membership.Registration, want error, names ...string) {
		t.Helper()
		_, err := membership.Register(s.ctx, registrar(t, s.Other), reg)
		wantErr(t, what, err, want)
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v does not name %s", what, err, name)
			}
		}
	}
	f("no cluster", membership.Registration{ID: "n"}, membership.ErrNoCluster)
	_, state := s.create(t, declared("c", 1))
	s.register(t, s.Directory, membership.Registration{ID: "n", Addr: "10.0.0.1:1", Identity: "first"})
	before := s.live(t)
	other := topology.NewClusterID()
	f("another cluster", membership.Registration{ID: "m", Cluster: other}, membership.ErrForeign, other.String(), state.ID.String())
	f("a second process", membership.Registration{ID: "n", Addr: "10.0.0.2:1", Identity: "second"}, membership.ErrDuplicate, "10.0.0.1:1", before[0].Owner)
	f("a second process without a name", membership.Registration{ID: "n"}, membership.ErrDuplicate)
	f("no id", membership.Registration{}, membership.ErrInvalid)
	f("an id with a slash", membership.Registration{ID: "a/b"}, membership.ErrInvalid)
	f("weight", membership.Registration{ID: "m", Weight: new(uint32(topology.MaxWeight + 1))}, membership.ErrInvalid)
	if diff := cmp.Diff(before, s.live(t)); diff != "" {
		t.Errorf("refused registrations changed something: %s", diff)
	}
}

// testRegisterRestart: the same node takes over what its earlier process left; a
// process that was taken over waits, and comes back when the record is free.
func testRegisterRestart(t *testing.T, s *suite) {
	s.create(t, declared("c", 1))
	first := s.register(t, s.Directory, membership.Registration{ID: "n", Addr: "10.0.0.1:1", Identity: "me"})
	byAddr := s.register(t, s.Other, membership.Registration{ID: "n", Addr: "10.0.0.1:1"})
	if st := byAddr.Status(); st.Incarnation != 2 {
		t.Errorf("incarnation %d, want 2", st.Incarnation)
	}
	s.eventually(t, "the first process sees that it was replaced", func() bool { return errors.Is(first.Status().Err, membership.ErrDuplicate) })
	if l := s.live(t); len(l) != 1 || l[0].Owner != byAddr.Status().Owner {
		t.Errorf("record %+v, want that of the second process", l)
	}
	if err := byAddr.Close(); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the first process comes back", func() bool { return first.Status().Registered })
	byIdentity := s.register(t, s.Other, membership.Registration{ID: "n", Addr: "10.0.0.9:1", Identity: "me"})
	l := s.live(t)
	if len(l) != 1 || l[0].Addr != "10.0.0.9:1" || l[0].Owner != byIdentity.Status().Owner {
		t.Errorf("record %+v, want the same node at its new address", l)
	}
}

// testRegisterComesBack: a lease that was revoked and a record that was deleted
// come back by themselves, once.
func testRegisterComesBack(t *testing.T, s *suite) {
	s.create(t, declared("c", 1))
	m := s.register(t, s.Directory, membership.Registration{ID: "n", Addr: "10.0.0.1:1"})
	if err := m.SetHealth(membership.HealthOK, ""); err != nil {
		t.Fatal(err)
	}
	for i, lose := range []func(*testing.T, string, string){s.EndLease, s.DeleteLive, s.EndLease} {
		lose(t, "c", "n")
		losses := uint64(i) + 1
		s.eventually(t, "the registration comes back", func() bool { return m.Status().Losses == losses && m.Status().Registered })
		want := []membership.Live{{ID: "n", Addr: "10.0.0.1:1", Owner: m.Status().Owner, Incarnation: losses + 1, Health: membership.HealthOK}}
		if diff := cmp.Diff(want, s.live(t), cmpopts.IgnoreFields(membership.Live{}, "Cluster")); diff != "" {
			t.Fatalf("after loss %d: %s", losses, diff)
		}
	}
}

// testMarks: marks are written under the leadership, and read back whole.
func testMarks(t *testing.T, s *suite) {
	s.create(t, declared("c", 1))
	first := s.lead(t, "c")
	r := roster(t, s.Directory)
	var marks []membership.Mark
	for i := range 150 { // more than one transaction takes
		marks = append(marks, membership.Mark{ID: node(i).ID, Owner: "o", Incarnation: 7, Addr: "a", Zone: "z", Weight: new(uint32(2)),
			State: topology.StateDown, Next: topology.StateLeft, Admitted: true})
	}
	if err := r.Mark(s.ctx, first, marks); err != nil {
		t.Fatal(err)
	}
	check := func(what string, want []membership.Mark) {
		t.Helper()
		roll, err := roster(t, s.Other).Roll(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, roll.Marks); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check("written", marks)
	if err := r.Mark(s.ctx, first, []membership.Mark{{ID: node(0).ID, Remove: true}}); err != nil {
		t.Fatal(err)
	}
	check("one removed", marks[1:])
	s.Depose(t, "c")
	wantErr(t, "a mark by who no longer leads", r.Mark(s.ctx, first, []membership.Mark{{ID: "late"}}), membership.ErrNotLeader)
	check("refused", marks[1:])
}

// testWatchRoll: a watcher is told of every kind of change; an unchanged roll is
// told once.
func testWatchRoll(t *testing.T, s *suite) {
	s.create(t, declared("c", 1))
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	rolls := make(chan membership.Roll, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- roster(t, s.Other).WatchRoll(ctx, func(r membership.Roll) error { rolls <- r; return nil })
	}()
	next := func(what string, ok func(membership.Roll) bool) {
		t.Helper()
		for {
			select {
			case r := <-rolls:
				if ok(r) {
					return
				}
			case <-s.ctx.Done():
				t.Fatalf("never told: %s", what)
			}
		}
	}
	next("empty", func(r membership.Roll) bool { return len(r.Live) == 0 })
	m := s.register(t, s.Directory, membership.Registration{ID: "n", Addr: "a"})
	next("a registration", func(r membership.Roll) bool { return len(r.Live) == 1 })
	_ = m.SetHealth(membership.HealthBad, "x")
	next("a change", func(r membership.Roll) bool { return r.Live[0].Health == membership.HealthBad })
	if err := roster(t, s.Directory).Mark(s.ctx, s.lead(t, "c"), []membership.Mark{{ID: "n"}}); err != nil {
		t.Fatal(err)
	}
	next("a mark", func(r membership.Roll) bool { return len(r.Marks) == 1 })
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	next("a departure", func(r membership.Roll) bool { return len(r.Live) == 0 })
	cancel()
	wantErr(t, "WatchRoll", <-ended, context.Canceled)
	wantErr(t, "WatchRoll without a cluster", s.Other.Open("none").(membership.Roster).WatchRoll(s.ctx, nil), membership.ErrNoCluster)
}

// testGarbageLive: a record that is not whole harms no other node, and the node
// that it should be takes its place.
func testGarbageLive(t *testing.T, s *suite) {
	if s.WriteLive == nil {
		t.Skip("no raw access")
	}
	s.create(t, declared("c", 1))
	s.register(t, s.Directory, membership.Registration{ID: "good", Addr: "a"})
	for i, v := range []string{"", "{", "{}", `{"id":"other"}`, `{"id":"n4","cluster":"00000000000000000000000000000001","owner":"00","incarnation":1}`} {
		s.WriteLive(t, "c", fmt.Sprint("n", i), []byte(v))
	}
	if l := s.live(t); len(l) != 1 || l[0].ID != "good" {
		t.Fatalf("roll %+v, want the good one", l)
	}
	s.register(t, s.Directory, membership.Registration{ID: "n1", Addr: "a"})
	if l := s.live(t); len(l) != 2 {
		t.Errorf("roll %+v, want two", l)
	}
}

// testMember06Registers: 20 nodes register at once through two processes, 5
// operators change weights at once, two controllers run. (Field case member-06.)
func testMember06Registers(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 5))
	s.control(t, s.Directory, s.Elector)
	s.control(t, s.Other, s.OtherElector)
	var all sync.WaitGroup
	for i := range 25 {
		side := s.Directory
		if i%2 == 0 {
			side = s.Other
		}
		all.Go(func() {
			if i < 5 {
				if _, err := side.Open("c").Declare(s.ctx, membership.SetWeight(node(i).ID, uint32(10+i))); err != nil {
					t.Errorf("operator %d: %v", i, err)
				}
				return
			}
			m, err := membership.Register(s.ctx, side.Open("c").(membership.Registrar), membership.Registration{ID: node(i + 100).ID, Addr: node(i + 100).Addr})
			if err != nil {
				t.Errorf("node %d: %v", i, err)
				return
			}
			t.Cleanup(func() { _ = m.Close() })
		})
	}
	all.Wait()
	s.eventually(t, "20 nodes are active", func() bool {
		state, active := s.load(t, store), 0
		if state.Head == nil || state.Applied != state.Generation {
			return false
		}
		for _, n := range state.Head.Nodes() {
			if n.State == topology.StateActive {
				active++
			}
		}
		return active == 25
	})
	s.checkStorm(t, s.load(t, store).Head)
	s.checkChain(t, store)
}

// control runs a controller with admission until the test ends.
func (s *suite) control(t *testing.T, d membership.Directory, e membership.Elector) {
	t.Helper()
	c, err := membership.NewController(membership.ControllerConfig{Store: d.Open("c"), Roster: roster(t, d), Elector: e, Cluster: "c", ID: t.Name(),
		Admission: membership.AdmissionConfig{Join: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("controller: %v", err)
		}
	})
}
