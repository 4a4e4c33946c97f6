package membership_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// fleet is a world with admission, in a bubble of virtual time.
type fleet struct {
	*world
	log buffer
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// admission runs fn in a world whose controller admits nodes. Settle is 30 s, a
// lease lasts 5 s.
func admission(t *testing.T, d topology.Declared, change func(*membership.ControllerConfig), fn func(*testing.T, *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{world: newWorld(t, d)}
		_, stop := f.control(change)
		fn(t, f)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("controller: %v", err)
		}
	})
}

func (f *fleet) control(change func(*membership.ControllerConfig)) (*membership.Controller, func() error) {
	return f.run(func(c *membership.ControllerConfig) {
		c.Roster = f.store.(membership.Roster)
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &f.log, Level: hclog.Debug})
		if change != nil {
			change(c)
		}
	})
}

func (f *fleet) register(reg membership.Registration) *membership.Member {
	f.t.Helper()
	m, err := membership.Register(f.t.Context(), f.store.(membership.Registrar), reg)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// kill ends a node's process without a word.
func (f *fleet) kill(m *membership.Member, id string) {
	f.s.Crash("c", id)
	f.s.Away(true) // so that Close cannot say good-bye
	_ = m.Close()
	f.s.Away(false)
}

// node returns the node as the head has it.
func (f *fleet) node(id string) topology.Node {
	f.t.Helper()
	synctest.Wait()
	s := f.load()
	if s.Applied != s.Generation {
		f.t.Errorf("generation %d is not published: head answers %d", s.Generation, s.Applied)
	}
	if i := s.Head.Index(id); i >= 0 {
		return s.Head.Node(i)
	}
	return topology.Node{}
}

func (f *fleet) wantState(when, id string, want topology.State) topology.Node {
	f.t.Helper()
	n := f.node(id)
	if n.ID == "" || n.State != want {
		f.t.Fatalf("%s: %s is %+v, want it %s\n%s", when, id, n, want, f.log.String())
	}
	return n
}

func (f *fleet) seq() uint64 { return f.load().Head.Version().Seq }

// empty is a cluster whose operators declared one node.
func empty() topology.Declared {
	return topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Ring, VNodes: 64}.Normal(), Nodes: []topology.Node{{ID: "op", Weight: 1}}}
}

// TestAdmissionLife: joining, active, down, left, and back; the operators' own
// node is never touched.
func TestAdmissionLife(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1", Zone: "z1"})
		want := topology.Node{ID: "n1", Addr: "a:1", Zone: "z1", Weight: 1, State: topology.StateJoining}
		if diff := cmp.Diff(want, f.wantState("at once", "n1", topology.StateJoining)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Second)
		f.wantState("after Join", "n1", topology.StateActive)
		mapping := f.load().Head.Mapping()
		if c := f.load().Head.Cause(); c.By != "admission" || c.Why != "n1 is there" {
			t.Errorf("cause %+v", c)
		}
		f.kill(m, "n1")
		time.Sleep(5*time.Second + 1900*time.Millisecond)
		f.wantState("before Down", "n1", topology.StateActive)
		time.Sleep(200 * time.Millisecond)
		f.wantState("after Down", "n1", topology.StateDown)
		if f.load().Head.Mapping() != mapping {
			t.Error("down moved keys")
		}
		time.Sleep(27800 * time.Millisecond)
		f.wantState("before Settle", "n1", topology.StateDown)
		time.Sleep(200 * time.Millisecond)
		f.wantState("after Settle", "n1", topology.StateLeft)
		time.Sleep(time.Hour)
		f.wantState("much later", "n1", topology.StateLeft)

		m = f.register(membership.Registration{ID: "n1", Addr: "a:2"})
		defer m.Close()
		time.Sleep(1100 * time.Millisecond)
		n := f.wantState("back", "n1", topology.StateActive)
		if n.Addr != "a:2" || n.Zone != "z1" {
			t.Errorf("back as %+v, want its new address and its old zone", n)
		}
		if f.load().Head.Mapping() != mapping {
			t.Error("its keys did not come back")
		}
		if n := f.node("op"); n.State != topology.StateActive {
			t.Errorf("the operators' node is %+v", n)
		}
	})
}

// TestAdmissionDrain: the wish to drain takes the keys away, then the node
// leaves at once, and its next process serves again.
func TestAdmissionDrain(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		time.Sleep(1100 * time.Millisecond)
		if err := m.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.wantState("after Drain", "n1", topology.StateDraining)
		time.Sleep(time.Hour)
		f.wantState("while it drains", "n1", topology.StateDraining)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2100 * time.Millisecond)
		f.wantState("after Close", "n1", topology.StateLeft)
		m = f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		time.Sleep(1100 * time.Millisecond)
		f.wantState("the next process", "n1", topology.StateActive)
	})
}

// TestAdmissionHealth: bad health publishes nothing, however often it changes.
func TestAdmissionHealth(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		time.Sleep(1100 * time.Millisecond)
		before := f.load()
		for i := range 20 {
			h := membership.HealthBad
			if i%2 == 1 {
				h = membership.HealthOK
			}
			if err := m.SetHealth(h, ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if after := f.load(); after.ETag() != before.ETag() {
			t.Errorf("health changed the declared state: %s, before %s", after.ETag(), before.ETag())
		}
	})
}

// TestAdmissionFlapping: a node that comes and goes for ten minutes publishes a
// handful of versions, and serves again once it stays.
func TestAdmissionFlapping(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		time.Sleep(1100 * time.Millisecond)
		before := f.seq()
		flaps := 0
		for begin := time.Now(); time.Since(begin) < 10*time.Minute; flaps++ {
			f.kill(m, "n1")
			time.Sleep(8 * time.Second) // 3 s of them without a lease
			m = f.register(membership.Registration{ID: "n1", Addr: "a:1"})
			time.Sleep(3 * time.Second)
		}
		defer func() { m.Close() }()
		if got := f.seq() - before; got > 10 { // two a time that it is held longer
			t.Errorf("%d versions for %d flaps\n%s", got, flaps, f.log.String())
		}
		f.wantState("while it flaps", "n1", topology.StateDown)
		time.Sleep(31 * time.Second)
		f.wantState("once it stays", "n1", topology.StateActive)
	})
}

// TestAdmissionShortLoss: a lease that is lost for less than Down publishes
// nothing.
func TestAdmissionShortLoss(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer m.Close()
		time.Sleep(1100 * time.Millisecond)
		before := f.load().ETag()
		for range 50 {
			if !f.s.Expire("c", "n1") {
				t.Fatal("not registered")
			}
			time.Sleep(1900 * time.Millisecond)
		}
		if after := f.load().ETag(); after != before {
			t.Errorf("from %s to %s", before, after)
		}
		if st := m.Status(); st.Losses != 50 || st.Incarnation != 51 {
			t.Errorf("status %+v", st)
		}
	})
}

// TestAdmissionOperators: what an operator does to a member stands while its
// process lives; the member's next process is what it is configured to be.
func TestAdmissionOperators(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1", Weight: new(uint32(2))})
		time.Sleep(1100 * time.Millisecond)
		state := func(s topology.State) membership.Edit {
			return membership.ChangeNode("n1", func(n *topology.Node) error { n.State = s; return nil })
		}
		f.declare(state(topology.StateDraining))
		f.declare(membership.SetWeight("n1", 7))
		f.s.Expire("c", "n1") // its process registers again
		time.Sleep(time.Minute)
		if n := f.wantState("drained by an operator", "n1", topology.StateDraining); n.Weight != 7 {
			t.Errorf("weight %d, want the operator's", n.Weight)
		}
		f.declare(state(topology.StateActive))
		f.kill(m, "n1")
		time.Sleep(time.Minute)
		f.wantState("killed", "n1", topology.StateLeft)
		m = f.register(membership.Registration{ID: "n1", Addr: "a:1", Weight: new(uint32(2))})
		time.Sleep(1100 * time.Millisecond)
		if n := f.wantState("restarted", "n1", topology.StateActive); n.Weight != 2 {
			t.Errorf("weight %d, want what it is configured to", n.Weight)
		}

		f.declare(membership.RemoveNode("n1"))
		f.s.Expire("c", "n1")
		time.Sleep(time.Minute)
		if n := f.node("n1"); n.ID != "" {
			t.Errorf("removed by an operator, and back: %+v", n)
		}
		if !strings.Contains(f.log.String(), "an operator removed it") {
			t.Error("no log line says why it is out")
		}
		f.kill(m, "n1")
		m = f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		defer func() { m.Close() }()
		time.Sleep(1100 * time.Millisecond)
		f.wantState("its next process", "n1", topology.StateActive)
	})
}

// TestAdmissionNewLeader: a new leader does not know how long a lease has been
// lost: it waits the whole time itself. Members are known to it though their
// leases went with the old leader.
func TestAdmissionNewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{world: newWorld(t, empty())}
		_, stop := f.control(nil)
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		time.Sleep(1100 * time.Millisecond)
		f.wantState("registered", "n1", topology.StateActive)
		_ = stop()
		f.kill(m, "n1")
		time.Sleep(time.Hour)
		_, stop = f.control(nil)
		defer func() { _ = stop() }()
		f.wantState("at once", "n1", topology.StateActive)
		time.Sleep(29 * time.Second)
		f.wantState("before Settle", "n1", topology.StateDown)
		time.Sleep(1100 * time.Millisecond)
		f.wantState("after Settle", "n1", topology.StateLeft)
		if n := f.node("op"); n.State != topology.StateActive {
			t.Errorf("the operators' node is %+v", n)
		}
	})
}

// TestAdmissionRefused: a registration that the cluster does not bear is left
// out and told; the others are admitted.
func TestAdmissionRefused(t *testing.T) {
	admission(t, empty(), nil, func(t *testing.T, f *fleet) {
		for i := range 3 {
			r := membership.Registration{ID: fmt.Sprint("n", i), Addr: "a:1"}
			if i == 1 {
				r.Weight = new(uint32(topology.MaxWeight)) // 64 million points
			}
			m := f.register(r)
			defer m.Close()
		}
		time.Sleep(1100 * time.Millisecond)
		f.wantState("the first", "n0", topology.StateActive)
		f.wantState("the third", "n2", topology.StateActive)
		if n := f.node("n1"); n.State == topology.StateActive {
			t.Errorf("the one too heavy: %+v", n)
		}
		if got := strings.Count(f.log.String(), "does not bear its change"); got != 1 {
			t.Errorf("told %d times, want once\n%s", got, f.log.String())
		}
	})
}

// TestAdmissionForget: a node that has left for long is no longer declared, and
// nothing of it stays.
func TestAdmissionForget(t *testing.T) {
	set := func(c *membership.ControllerConfig) { c.Admission.Forget = 10 * time.Minute }
	admission(t, empty(), set, func(t *testing.T, f *fleet) {
		m := f.register(membership.Registration{ID: "n1", Addr: "a:1"})
		time.Sleep(1100 * time.Millisecond)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Minute)
		f.wantState("before Forget", "n1", topology.StateLeft)
		time.Sleep(2 * time.Minute)
		if n := f.node("n1"); n.ID != "" {
			t.Errorf("after Forget: %+v", n)
		}
		r, err := f.store.(membership.Roster).Roll(t.Context())
		if err != nil || len(r.Live)+len(r.Marks) > 0 {
			t.Errorf("roll %+v %v, want it empty", r, err)
		}
	})
}
