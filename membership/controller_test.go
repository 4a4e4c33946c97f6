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
	"go.uber.org/goleak"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/memstore"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func declared(n int) topology.Declared {
	d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Maglev, TableSize: 251}.Normal()}
	for i := range n {
		d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("n%02d", i), Weight: 1})
	}
	return d
}

// world is a store in memory with one cluster, in a bubble of virtual time.
type world struct {
	t     *testing.T
	s     *memstore.Store
	store membership.ClusterStore
}

func newWorld(t *testing.T, d topology.Declared) *world {
	t.Helper()
	s := memstore.New()
	if _, err := s.Create(t.Context(), d, "creator", ""); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, s: s, store: s.Open("c")}
}

// run starts a controller; stop ends it and returns what Run did.
func (w *world) run(change func(*membership.ControllerConfig)) (c *membership.Controller, stop func() error) {
	w.t.Helper()
	config := membership.ControllerConfig{Store: w.store, Elector: w.s, Cluster: "c", ID: "x"}
	if change != nil {
		change(&config)
	}
	c, err := membership.NewController(config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	return c, func() error { cancel(); return <-done }
}

func (w *world) declare(e membership.Edit) membership.State {
	w.t.Helper()
	s, err := w.store.Declare(w.t.Context(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return s
}

func (w *world) load() membership.State {
	w.t.Helper()
	s, err := w.store.Load(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) want(version string, applied uint64) membership.State {
	w.t.Helper()
	s := w.load()
	got := "none"
	if s.Head != nil {
		got = s.Head.Version().String()
	}
	if got != version || s.Applied != applied {
		w.t.Fatalf("head %s, applied %d; want %s, %d", got, s.Applied, version, applied)
	}
	return s
}

func by(who, why string, e membership.Edit) membership.Edit {
	e.By, e.Why = who, why
	return e
}

func TestControllerPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		var out bytes.Buffer
		at := time.Now()
		c, stop := w.run(func(c *membership.ControllerConfig) {
			c.Logger = hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Debug})
		})
		first := w.want("1.1", 1).Head
		if diff := cmp.Diff(topology.Cause{Kind: placement.CauseCreated, By: "creator", At: at.UnixMilli()}, first.Cause()); diff != "" {
			t.Error(diff)
		}
		w.declare(by("alice", "black friday", membership.AddNode(topology.Node{ID: "n03", Weight: 2})))
		second := w.want("1.2", 2).Head
		if got := second.Cause(); got.Kind != placement.CauseAdded || got.By != "alice" || got.Why != "black friday" || second.Parent() != first.Digest() {
			t.Errorf("cause %+v", got)
		}
		m, err := w.store.Movement(t.Context(), second.Version())
		if err != nil || m.Ratio <= 0 || m.Ratio > 0.45 || m.Cause != placement.CauseAdded {
			t.Errorf("movement %+v %v", m, err)
		}
		first2, err := w.store.Movement(t.Context(), first.Version())
		if err != nil || first2.Ratio != 0 || first2.Cause != placement.CauseCreated {
			t.Errorf("movement of the first %+v %v", first2.Summary, err)
		}
		st := c.Status()
		if !st.Leading || st.Version != second.Version() || st.Generation != 2 || st.Applied != 2 || st.Err != nil {
			t.Errorf("status %+v", st)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if c.Status().Leading {
			t.Error("leads after its end")
		}
		for _, want := range []string{"controller: published", "cluster=c", "version=1.2", `cause="nodes added"`, "by=alice", "ratio=", "minimum=", "leading: cluster=c id=x"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, out.String())
			}
		}
	})
}

// TestControllerNothingChanged: edits that cancel out, or change nothing, make
// no version, but are answered; an address makes a version that moves nothing.
func TestControllerNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		_, stop := w.run(nil)
		defer stop()
		head := w.want("1.1", 1).Head
		w.declare(membership.SetWeight("n00", 1))
		w.want("1.1", 2)
		w.declare(membership.ReplaceAll(topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Maglev, TableSize: 251}, Nodes: []topology.Node{
			{ID: "n02", Weight: 1}, {ID: "n00", Weight: 1}, {ID: "n01", Weight: 1}}})) // another order, defaults spelled otherwise
		w.want("1.1", 3)
		w.declare(membership.ChangeNode("n00", func(n *topology.Node) error { n.Addr = "10.0.0.1:1"; return nil }))
		s := w.want("1.2", 4)
		if s.Head.Mapping() != head.Mapping() || s.Head.Cause().Kind != placement.CauseDetails {
			t.Errorf("an address moved keys: %+v", s.Head.Cause())
		}
	})
}

// TestControllerBatches: edits that come within Settle become one version, with
// the names of all editors.
func TestControllerBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		_, stop := w.run(func(c *membership.ControllerConfig) { c.Settle = time.Second })
		defer stop()
		w.want("1.1", 1) // the first needs no settling
		for i := range 5 {
			w.declare(by(fmt.Sprint("op", i%2), fmt.Sprint("why", i%2), membership.AddNode(topology.Node{ID: fmt.Sprint("m", i), Weight: 1})))
			time.Sleep(100 * time.Millisecond)
		}
		w.want("1.1", 1)
		time.Sleep(time.Second)
		s := w.want("1.2", 6)
		if got := s.Head.Cause(); got.By != "op0, op1" || got.Why != "why0, why1" {
			t.Errorf("cause %+v", got)
		}
	})
}

// TestControllerEmpty: the last node may go, and come back.
func TestControllerEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(0))
		_, stop := w.run(nil)
		defer stop()
		w.want("1.1", 1)
		w.declare(membership.AddNode(topology.Node{ID: "a", Weight: 1}))
		w.want("1.2", 2)
		w.declare(membership.RemoveNode("a"))
		if s := w.want("1.3", 3); s.Head.Len() != 0 {
			t.Error("the last node is still there")
		}
	})
}

// TestControllerTakesOver: a second controller waits, and goes on when the
// first has lost its leadership, from where that was.
func TestControllerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		a, stopA := w.run(nil)
		b, stopB := w.run(nil)
		defer stopB()
		if !a.Status().Leading || b.Status().Leading {
			t.Fatal("not one leader")
		}
		w.s.Depose("c")
		synctest.Wait()
		w.declare(membership.AddNode(topology.Node{ID: "m", Weight: 1}))
		time.Sleep(time.Second)
		w.want("1.2", 2)
		if a.Status().Leading == b.Status().Leading {
			t.Error("not one leader after the change")
		}
		_ = stopA()
		synctest.Wait()
		if !b.Status().Leading {
			t.Error("the second does not lead after the first ended")
		}
		w.declare(membership.RemoveNode("m"))
		w.want("1.3", 3)
	})
}

func TestControllerNoCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, err := membership.NewController(membership.ControllerConfig{Store: s.Open("gone"), Elector: s, Cluster: "gone", ID: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); !errors.Is(err, membership.ErrNoCluster) {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestNewControllerRefuses(t *testing.T) {
	s := memstore.New()
	for name, c := range map[string]membership.ControllerConfig{
		"nothing": {}, "no elector": {Store: s.Open("c"), Cluster: "c", ID: "x"}, "no id": {Store: s.Open("c"), Elector: s, Cluster: "c"},
		"bad cluster": {Store: s.Open("c"), Elector: s, Cluster: "a/b", ID: "x"},
	} {
		if _, err := membership.NewController(c); !errors.Is(err, membership.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestControllerCannotRead: what the store holds cannot be used when the
// leadership begins: Status says so, and when it is mended all goes on.
func TestControllerCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		f := &faulty{Store: w.store, failLoad: membership.ErrCorrupt}
		ctl, stop := w.run(func(c *membership.ControllerConfig) { c.Store = f })
		defer stop()
		time.Sleep(time.Minute)
		if st := ctl.Status(); !st.Leading || !errors.Is(st.Err, membership.ErrCorrupt) {
			t.Errorf("status %+v", st)
		}
		f.set(func() { f.failLoad = nil })
		time.Sleep(time.Second)
		w.want("1.1", 1)
		if st := ctl.Status(); st.Err != nil {
			t.Errorf("status after the mending %+v", st)
		}
	})
}

// faulty is a store whose calls fail as told.
type faulty struct {
	membership.Store
	mu       sync.Mutex
	publish  []error                 // for the next calls; nil = passes
	load     func(*membership.State) // changes what Load and Watch show
	calls    int
	failLoad error
}

func (f *faulty) Publish(ctx context.Context, l membership.Leadership, p membership.Publication) error {
	f.mu.Lock()
	f.calls++
	var err error
	if len(f.publish) > 0 {
		err, f.publish = f.publish[0], f.publish[1:]
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.Store.Publish(ctx, l, p)
}

func (f *faulty) Load(ctx context.Context) (membership.State, error) {
	s, err := f.Store.Load(ctx)
	f.change(&s)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s, errors.Join(err, f.failLoad)
}

func (f *faulty) Watch(ctx context.Context, fn func(membership.State) error) error {
	return f.Store.Watch(ctx, func(s membership.State) error { f.change(&s); return fn(s) })
}

func (f *faulty) change(s *membership.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.load != nil {
		f.load(s)
	}
}

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// TestControllerTriesAgain: a conflict, a store that is away, a lost leadership
// are overcome; versions stay gap-free.
func TestControllerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		f := &faulty{Store: w.store, publish: []error{membership.ErrConflict, membership.ErrUnreachable, membership.ErrNotLeader, membership.ErrUnreachable}}
		_, stop := w.run(func(c *membership.ControllerConfig) { c.Store = f })
		defer stop()
		time.Sleep(time.Second)
		w.want("1.1", 1)
		f.set(func() { f.publish = []error{membership.ErrNotLeader} })
		w.declare(membership.AddNode(topology.Node{ID: "m", Weight: 1}))
		time.Sleep(time.Second)
		w.want("1.2", 2)
	})
}

// TestControllerRefuses: declared state that cannot be published is told, not
// tried again without end, and the head stays; a good edit mends it.
func TestControllerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		load    func(*membership.State)
		publish error
		want    error
	}{
		"cannot be read": {func(s *membership.State) { s.Declared.Nodes, s.Invalid = nil, membership.ErrCorrupt }, nil, membership.ErrCorrupt},
		"not valid":      {func(s *membership.State) { s.Declared.Spec.TableSize = 4 }, nil, membership.ErrInvalid},
		"does not fit":   {nil, membership.ErrTooLarge, membership.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, declared(3))
				f := &faulty{Store: w.store}
				ctl, stop := w.run(func(c *membership.ControllerConfig) { c.Store = f })
				defer stop()
				f.set(func() { f.load, f.publish = c.load, []error{c.publish} })
				w.declare(membership.AddNode(topology.Node{ID: "m", Weight: 1}))
				time.Sleep(time.Minute)
				if st := ctl.Status(); !errors.Is(st.Err, c.want) || !st.Leading || st.Generation != 2 {
					t.Errorf("status %+v", st)
				}
				w.want("1.1", 1)
				if f.calls > 2 {
					t.Errorf("published %d times in vain", f.calls)
				}
				f.set(func() { f.load, f.publish = nil, nil })
				w.declare(membership.AddNode(topology.Node{ID: "m2", Weight: 1}))
				w.want("1.2", 3)
				if st := ctl.Status(); st.Err != nil || st.Version.Seq != 2 {
					t.Errorf("status after the mending %+v", st)
				}
			})
		})
	}
}

// TestControllerStoreWentBack: a head older than what this process has seen is
// not built upon: that would fork the chain.
func TestControllerStoreWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(3))
		f := &faulty{Store: w.store}
		ctl, stop := w.run(func(c *membership.ControllerConfig) { c.Store = f })
		defer stop()
		old := w.want("1.1", 1)
		w.declare(membership.AddNode(topology.Node{ID: "m", Weight: 1}))
		w.want("1.2", 2)
		f.set(func() { f.load = func(s *membership.State) { s.Head, s.Applied = old.Head, 1 } })
		calls := f.calls
		w.declare(membership.AddNode(topology.Node{ID: "m2", Weight: 1}))
		time.Sleep(time.Minute)
		if st := ctl.Status(); st.Err == nil || !strings.Contains(st.Err.Error(), "went back") || f.calls != calls {
			t.Errorf("status %+v, %d publications", st, f.calls-calls)
		}
		f.set(func() { f.load = nil }) // it was only lagging after all
		w.declare(membership.AddNode(topology.Node{ID: "m3", Weight: 1}))
		w.want("1.3", 4)
	})
}

// TestControllerReplace: the hint of an edit reaches the placement, also through
// a batch in which the heir was replaced again.
func TestControllerReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(10))
		_, stop := w.run(func(c *membership.ControllerConfig) { c.Settle = time.Second })
		defer stop()
		replace := func(old, heir string) {
			w.declare(membership.Edit{Replace: map[string]string{old: heir}, Apply: func(d topology.Declared) (topology.Declared, error) {
				d.Nodes = append(d.Nodes, topology.Node{ID: heir, Weight: 1})
				return membership.RemoveNode(old).Apply(d)
			}})
		}
		replace("n03", "x")
		replace("x", "y")
		time.Sleep(2 * time.Second)
		s := w.want("1.2", 3)
		m, err := w.store.Movement(t.Context(), s.Head.Version())
		if err != nil || m.Ratio > 0.11 || len(m.Flows) != 1 || m.Flows[0].From != "n03" || m.Flows[0].To != "y" {
			t.Errorf("movement %+v %v", m, err)
		}
	})
}
