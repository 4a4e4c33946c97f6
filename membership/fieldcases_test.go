package membership_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// TestMember01 is field case member-01: after an outage of the store that
// outlasts the lease the node runs and serves, but is not in the topology until
// it is restarted. Here with its full times; membership/etcdstore has it with a
// real etcd.
func TestMember01(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		log := hclog.New(&hclog.LoggerOptions{Output: &f.log, Level: hclog.Info})
		ids := []string{"n1", "n2", "n3"}
		for i, id := range ids {
			m := f.register(membership.Registration{ID: id, Addr: fmt.Sprint("a:", i), Logger: log})
			defer m.Close()
		}
		time.Sleep(1100 * time.Millisecond)
		back := func(when string) {
			t.Helper()
			time.Sleep(2 * membership.DefaultTTL)
			for _, id := range ids {
				f.wantState(when, id, topology.StateActive)
			}
			if n := f.load().Head.Len(); n != 4 {
				t.Errorf("%s: %d nodes, want 4", when, n)
			}
		}
		for _, away := range []time.Duration{3 * time.Second, 8 * time.Second, time.Minute} {
			f.s.Away(true)
			time.Sleep(away)
			f.s.Away(false)
			back(fmt.Sprint("after an outage of ", away))
		}
		for range 12 {
			f.s.Away(true)
			time.Sleep(500 * time.Millisecond)
			f.s.Away(false)
			time.Sleep(100 * time.Millisecond)
		}
		back("after twelve restarts")
		f.s.Expire("c", "n2")
		back("after its record was deleted")
		for _, want := range []string{"registration lost", "registered again"} {
			if !strings.Contains(f.log.String(), want) {
				t.Errorf("no log line %q", want)
			}
		}
	})
}

// TestMember05 is field case member-05: a node that is restarted with another
// weight or zone stays what it was for ever, or every restart leaves something
// behind. The stored state is what a process that left found it in.
func TestMember05(t *testing.T) {
	leave := func(t *testing.T, f *fleet, m *membership.Member) { // drained, not gone yet
		t.Helper()
		if err := m.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.wantState("drained", "n1", topology.StateDraining)
		f.kill(m, "n1")
	}
	first := membership.Registration{ID: "n1", Addr: "a:1", Zone: "z1", Weight: new(uint32(1))}
	f := func(name string, change func(*membership.Registration), spec func(*topology.Spec), want topology.Node) {
		t.Run(name, func(t *testing.T) {
			admission(t, empty(), nil, func(t *testing.T, f *fleet) {
				m := f.register(first)
				time.Sleep(1100 * time.Millisecond)
				leave(t, f, m)
				if spec != nil {
					f.declare(membership.Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
						spec(&d.Spec)
						return d, nil
					}})
				}
				next := first
				if change != nil {
					change(&next)
				}
				before := f.seq()
				m = f.register(next)
				defer m.Close()
				time.Sleep(2 * membership.DefaultTTL)
				if diff := cmp.Diff(want, f.wantState("restarted", "n1", topology.StateActive)); diff != "" {
					t.Error(diff)
				}
				if f.seq() == before {
					t.Error("the change is no version")
				}
			})
		})
	}
	vnodes := func(n uint32) func(*topology.Spec) { return func(s *topology.Spec) { s.VNodes = n } }
	n := topology.Node{ID: "n1", Addr: "a:1", Zone: "z1", Weight: 1}
	f("65 points", nil, vnodes(65), n)
	f("128 points", nil, vnodes(128), n)
	f("32 points", nil, vnodes(32), n)
	f("another algorithm", nil, func(s *topology.Spec) { *s = topology.Spec{Algorithm: topology.Rendezvous}.Normal() }, n)
	f("weight 2", func(r *membership.Registration) { r.Weight = new(uint32(2)) }, nil, topology.Node{ID: "n1", Addr: "a:1", Zone: "z1", Weight: 2})
	f("another zone", func(r *membership.Registration) { r.Zone = "z2" }, nil, topology.Node{ID: "n1", Addr: "a:1", Zone: "z2", Weight: 1})

	for state := range topology.StateLeft + 1 { // whatever an operator made of it
		t.Run("from "+state.String(), func(t *testing.T) {
			admission(t, empty(), nil, func(t *testing.T, f *fleet) {
				m := f.register(first)
				time.Sleep(1100 * time.Millisecond)
				f.declare(membership.ChangeNode("n1", func(n *topology.Node) error { n.State = state; return nil }))
				f.kill(m, "n1")
				m = f.register(first)
				defer m.Close()
				time.Sleep(2 * membership.DefaultTTL)
				f.wantState("restarted", "n1", topology.StateActive)
			})
		})
	}
}

// TestMember05Restarts: a hundred crashes and restarts leave the stored topology
// as large as it was, and do not even publish a version.
func TestMember05Restarts(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		reg := membership.Registration{ID: "n1", Addr: "a:1", Weight: new(uint32(1))}
		m := f.register(reg)
		time.Sleep(1100 * time.Millisecond)
		head := f.load().Head
		roster := f.store.(membership.Roster)
		for i := range 100 {
			f.kill(m, "n1")
			time.Sleep(time.Duration(i%5) * time.Second)
			m = f.register(reg)
			time.Sleep(time.Second)
		}
		defer func() { m.Close() }()
		f.wantState("after 100 restarts", "n1", topology.StateActive)
		after := f.load()
		if len(after.Head.Encode()) != len(head.Encode()) || after.Head.Version() != head.Version() {
			t.Errorf("topology grew from %d to %d bytes, version %s to %s", len(head.Encode()), len(after.Head.Encode()), head.Version(), after.Head.Version())
		}
		r, err := roster.Roll(t.Context())
		if err != nil || len(r.Live) != 1 || len(r.Marks) != 1 || r.Live[0].Incarnation != 101 {
			t.Errorf("roll %+v %v", r, err)
		}
	})
}

// TestWeight06 is field case weight-06, the part of membership: a node that
// registers again without a weight keeps the stored one, and health changes no
// weight.
func TestWeight06(t *testing.T) {
	d := empty()
	d.Nodes = []topology.Node{{ID: "n1", Addr: "a:1", Weight: 2}, {ID: "n2", Addr: "a:2", Weight: 3}, {ID: "n3", Addr: "a:3", Weight: 4}}
	admission(t, d, nil, func(t *testing.T, f *fleet) {
		weights := func() (w [3]uint32) {
			for i, id := range []string{"n1", "n2", "n3"} {
				w[i] = f.wantState("weights", id, topology.StateActive).Weight
			}
			return w
		}
		mapping := f.load().Head.Mapping()
		m := f.register(membership.Registration{ID: "n2", Addr: "a:2"}) // an operator's node gets an agent
		time.Sleep(time.Minute)
		if err := m.SetHealth(membership.HealthBad, "no answer"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := m.SetHealth(membership.HealthOK, ""); err != nil {
			t.Fatal(err)
		}
		for _, away := range []time.Duration{0, time.Minute} { // within its lease, and long after it has left
			f.kill(m, "n2")
			time.Sleep(away)
			m = f.register(membership.Registration{ID: "n2", Addr: "a:2"})
			time.Sleep(2 * membership.DefaultTTL)
			if got := weights(); got != [3]uint32{2, 3, 4} {
				t.Errorf("after a restart that took %s: weights %v", away, got)
			}
			if f.load().Head.Mapping() != mapping {
				t.Errorf("after a restart that took %s the mapping is another", away)
			}
		}
		_ = m.Close()
	})
}
