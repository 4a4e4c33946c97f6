package membership_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func ramped(over time.Duration, e membership.Edit) membership.Edit {
	e.Ramp = over
	return e
}

// moved is the part of the keys that have gone over, in sixteenths, -1 without a
// transition.
func (w *world) moved() int {
	w.t.Helper()
	if x := w.load().Head.Transition(); x != nil {
		return int(x.Thresholds[0] >> 60)
	}
	return -1
}

// A ramp is published at once with its first step, goes on by the leader's clock,
// and ends in the whole change.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(4))
		_, stop := w.run(nil)
		defer stop()
		w.want("1.1", 1)
		added := membership.AddNode(topology.Node{ID: "n99", Weight: 1})
		w.declare(ramped(16*time.Minute, by("alice", "growth", added)))
		head := w.want("1.2", 2).Head
		if x := head.Transition(); w.moved() != 1 || x.Kind != topology.TransitionNone || x.Over != 16*time.Minute || head.Cause().By != "alice" {
			t.Fatalf("%d moved, %+v", w.moved(), x)
		}
		before := head
		for k := 2; k < 16; k++ {
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := w.moved(); got != k {
				t.Fatalf("%d of 16 after %d minutes, want %d", got, k-1, k)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		done := w.want("1.17", 2).Head
		if done.Transition() != nil || done.Index("n99") < 0 {
			t.Fatal("not ended")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want("1.17", 2)
		total := 0.0
		for seq := uint64(2); seq <= 17; seq++ {
			r, err := w.store.Movement(t.Context(), topology.Version{Epoch: 1, Seq: seq})
			if err != nil {
				t.Fatal(err)
			}
			total += r.Ratio
		}
		if total < 0.15 || total > 0.25 { // one of five
			t.Errorf("the reports add up to %.3f", total)
		}
		a, _ := placement.New(before)
		b, _ := placement.New(done)
		for h := range uint64(1000) {
			h *= 0x9e3779b97f4a7c15
			if o := a.Other(h); o >= 0 && placement.Rank(h, before.Transition().ID) >= 1<<60 && o != b.Locate(h) {
				t.Fatal("the other owner is not the next")
			}
		}
	})
}

// What is declared back turns the ramp back; a new leader goes on where the old
// one was; what would move other keys waits or is refused; what moves none does
// not; EndRamp ends it.
func TestRampTurnsWaitsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(4))
		_, stop := w.run(nil)
		first := w.load().Head
		w.declare(ramped(16*time.Minute, membership.SetWeight("n01", 3)))
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		if got := w.moved(); got != 4 {
			t.Fatalf("%d of 16", got)
		}
		if err := stop(); err != nil && w.moved() != 4 {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		c, stop := w.run(func(c *membership.ControllerConfig) { c.ID = "y" })
		defer stop()
		if got := w.moved(); got != 4 {
			t.Fatalf("%d of 16 right after a change of leader", got)
		}
		for _, e := range []membership.Edit{membership.SetWeight("n02", 5), membership.RemoveNode("n03"), membership.AddNode(topology.Node{ID: "x", Weight: 1})} {
			if _, err := w.store.Declare(t.Context(), e); !errors.Is(err, membership.ErrConflict) || !errors.Is(err, placement.ErrMoving) {
				t.Fatalf("another change of owners: %v", err)
			}
		}
		s := w.declare(membership.ChangeNode("n02", func(n *topology.Node) error { n.Addr = "elsewhere"; return nil }))
		if head := w.load().Head; head.Node(2).Addr != "elsewhere" || w.moved() != 4 || w.load().Applied != s.Generation {
			t.Fatal("an address waits for the ramp")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.moved(); got != 5 {
			t.Fatalf("%d of 16", got)
		}
		w.declare(membership.SetWeight("n01", 1))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := w.moved(); got != 2 {
			t.Fatalf("%d of 16 after three minutes back", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if st := w.load(); w.moved() != -1 || st.Head.Mapping() != first.Mapping() || st.Applied != st.Generation || c.Status().Err != nil {
			t.Fatalf("%d of 16, applied %d of %d, %v", w.moved(), st.Applied, st.Generation, c.Status().Err)
		}

		w.declare(ramped(16*time.Minute, membership.Drain("n00")))
		if w.moved() != 1 {
			t.Fatal("no ramp")
		}
		s = w.declare(membership.EndRamp())
		if st := w.load(); w.moved() != -1 || st.Applied != s.Generation || st.Head.Node(0).State != topology.StateDraining {
			t.Fatal("not ended")
		}
		s = w.declare(membership.EndRamp()) // there is none
		if w.load().Applied != s.Generation {
			t.Fatal("an end of nothing is not answered")
		}
	})
}

// What cannot be made in steps is made at once.
func TestRampAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(4))
		_, stop := w.run(nil)
		defer stop()
		w.declare(ramped(time.Minute, membership.RemoveNode("n00")))
		if got := w.want("1.2", 2); got.Head.Len() != 3 || got.Head.Transition() != nil {
			t.Fatal("a removal in steps")
		}
		w.declare(ramped(time.Minute, membership.ChangeNode("n01", func(n *topology.Node) error { n.Addr = "a"; return nil })))
		if w.want("1.3", 3).Head.Transition() != nil {
			t.Fatal("an address in steps")
		}
		for _, over := range []time.Duration{-2, time.Millisecond, membership.MaxRamp + 1} {
			if _, err := w.store.Declare(t.Context(), ramped(over, membership.SetWeight("n01", 2))); !errors.Is(err, membership.ErrInvalid) {
				t.Errorf("over %v: %v", over, err)
			}
		}
	})
}

// An epoch that begins during a ramp goes on with it.
func TestRampThroughABump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(4))
		_, stop := w.run(nil)
		defer stop()
		first := w.load().Head
		w.declare(ramped(16*time.Minute, membership.SetWeight("n01", 3)))
		s := w.load()
		b, err := s.Bump(first, topology.Cause{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.store.Bump(t.Context(), nil, b); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(15*time.Minute + time.Second)
		synctest.Wait()
		if st := w.load(); st.Head.Transition() != nil || st.Head.Version().Epoch != 2 || st.Head.Node(1).Weight != 3 {
			t.Fatalf("%s, %d of 16", st.Head.Version(), w.moved())
		}
	})
}

// Steps by hand: forth, back, more at once, by time or without; ends are the first
// step and the last; TurnRamp declares what was before, and what was to come again.
func TestRampByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declared(4))
		_, stop := w.run(nil)
		defer stop()
		first := w.load().Head
		if _, err := w.store.Declare(t.Context(), membership.StepRamp(1)); !errors.Is(err, membership.ErrConflict) {
			t.Fatalf("a step of nothing: %v", err)
		}
		if _, err := w.store.Declare(t.Context(), membership.TurnRamp(true)); !errors.Is(err, membership.ErrConflict) {
			t.Fatalf("nothing turned back: %v", err)
		}
		if _, err := w.store.Declare(t.Context(), membership.StepRamp(17)); !errors.Is(err, membership.ErrInvalid) {
			t.Fatalf("17 steps: %v", err)
		}
		w.declare(ramped(membership.RampByHand, membership.AddNode(topology.Node{ID: "x", Weight: 2})))
		step := func(e membership.Edit, want int) {
			t.Helper()
			s := w.declare(e)
			if got := w.moved(); got != want {
				t.Fatalf("%d of 16, want %d", got, want)
			}
			if now := w.load(); !now.Turning() && now.Applied != s.Generation {
				t.Fatalf("applied %d of %d", now.Applied, s.Generation)
			}
		}
		time.Sleep(time.Hour)
		step(membership.StepRamp(1), 2)
		step(membership.StepRamp(5), 7)
		step(membership.StepRamp(-2), 5)
		step(membership.StepRamp(-9), 1)
		step(membership.StepRamp(11), 12)
		step(membership.TurnRamp(true), 12)
		step(membership.StepRamp(3), 9)
		step(membership.StepRamp(-1), 10)
		step(membership.StepRamp(-9), 15)
		step(membership.TurnRamp(false), 15)
		step(membership.TurnRamp(true), 15)
		step(membership.StepRamp(15), -1)
		st := w.load()
		if i := st.Head.Index("x"); st.Head.Mapping() != first.Mapping() || st.Applied != st.Generation || st.Head.Node(i).State != topology.StateDraining {
			t.Fatalf("not turned back: %+v", st.Head.Nodes())
		}
		w.declare(membership.ForgetNode("x"))
		if len(w.load().Edits) != 0 {
			t.Fatalf("%+v", w.load().Edits)
		}

		w.declare(ramped(16*time.Minute, membership.Drain("n00")))
		time.Sleep(30 * time.Second)
		step(membership.StepRamp(2), 3)
		time.Sleep(59 * time.Second) // a whole step's time after the last one
		synctest.Wait()
		if w.moved() != 3 {
			t.Fatalf("%d of 16", w.moved())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if w.moved() != 4 {
			t.Fatalf("%d of 16", w.moved())
		}
		step(membership.TurnRamp(true), 4)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if st := w.load(); w.moved() != -1 || st.Head.Mapping() != first.Mapping() || st.Head.Node(0).State != topology.StateActive {
			t.Fatalf("not turned back: %d of 16, %+v", w.moved(), st.Head.Nodes())
		}
		w.declare(ramped(membership.RampByHand, membership.SetWeight("n01", 4)))
		step(membership.StepRamp(16), -1)
		if st := w.load(); st.Head.Node(1).Weight != 4 || st.Applied != st.Generation {
			t.Fatal("not ended")
		}
	})
}

// While owners change in steps, members whose change moves keys wait and are
// counted, and the changes of others go on.
func TestRampAndMembers(t *testing.T) {
	c := (*membership.Controller)(nil)
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{world: newWorld(t, declared(4))}
		var stop func() error
		c, stop = f.control(nil)
		defer func() { _ = stop() }()
		a := f.register(membership.Registration{ID: "a", Addr: "a:1"})
		time.Sleep(3 * time.Second)
		f.wantState("registered", "a", topology.StateActive)
		f.declare(ramped(10*time.Minute, membership.SetWeight("n01", 3)))
		b := f.register(membership.Registration{ID: "b", Addr: "b:1"})
		defer b.Close()
		f.kill(a, "a")
		time.Sleep(10 * time.Second)
		f.wantState("lost in a ramp", "a", topology.StateDown)
		f.wantState("new in a ramp", "b", topology.StateJoining)
		if got := c.Status().Waiting; got != 1 {
			t.Errorf("%d wait", got)
		}
		f.declare(membership.EndRamp())
		time.Sleep(10 * time.Second)
		f.wantState("new, ramp ended", "b", topology.StateActive)
		if got := c.Status().Waiting; got != 0 {
			t.Errorf("%d wait still", got)
		}
	})
}
