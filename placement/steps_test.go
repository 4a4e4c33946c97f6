package placement_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/internal/splitmix"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// stepper publishes versions one after the other.
type stepper struct {
	t    *testing.T
	spec topology.Spec
	at   *placement.Table
}

func (s *stepper) draft(nodes []topology.Node) topology.Draft {
	d := topology.Draft{Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: s.spec, Nodes: nodes}
	if s.at != nil {
		d.Version.Seq = s.at.Topology().Version().Seq + 1
	}
	return d
}

// take checks that a client which gets the version as bytes computes the same, and
// goes on from there.
func (s *stepper) take(table *placement.Table, err error) *placement.Table {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	sent, err := topology.Decode(table.Topology().Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	if sent, err = sent.Attach(table.Topology().Objects()...); err != nil {
		s.t.Fatal(err)
	}
	for _, prev := range []*placement.Table{nil, s.at} {
		again, err := placement.Next(prev, sent)
		if err != nil || again.Digest() != table.Digest() {
			s.t.Fatalf("a client computes %v, %v", again, err)
		}
	}
	s.at = table
	return table
}

func stepNodes(weights ...uint32) []topology.Node {
	nodes := make([]topology.Node, len(weights))
	for i, w := range weights {
		nodes[i] = topology.Node{ID: fmt.Sprintf("n%d", i), Addr: fmt.Sprint(i), Zone: fmt.Sprint("z", i%3), Weight: w}
	}
	return nodes
}

func stepHashes() []uint64 {
	hs := make([]uint64, 2000)
	draw := splitmix.Source(5)
	for i := range hs {
		hs[i] = draw.Next()
	}
	return hs
}

// Every algorithm, every change: keys go over by their rank, once, and back again
// when the steps are taken back; who does not change owners has one owner
// throughout; the reports of the steps add up to the whole change's.
func TestSteps(t *testing.T) {
	specs := []topology.Spec{{Algorithm: topology.Rendezvous, RendezvousTable: 1024}, {Algorithm: topology.Rendezvous, Replicas: 3, ZoneAware: true}, {Algorithm: topology.Slots, Replicas: 2}}
	for _, a := range topology.Algorithms() {
		specs = append(specs, topology.Spec{Algorithm: a, TableSize: 4099, SlotCount: 2048})
	}
	draining := stepNodes(1, 2, 3, 2, 1)
	draining[2].State = topology.StateDraining
	changes := map[string][]topology.Node{
		"add":    stepNodes(1, 2, 3, 2, 1, 2),
		"drain":  draining,
		"weight": stepNodes(1, 2, 1, 4, 1),
	}
	for _, spec := range specs {
		for name, after := range changes {
			t.Run(fmt.Sprintf("%s-%d-%d/%s", spec.Algorithm, spec.Replicas, spec.RendezvousTable, name), func(t *testing.T) {
				s := &stepper{t: t, spec: spec}
				before := s.take(placement.Update(nil, s.draft(stepNodes(1, 2, 3, 2, 1))))
				whole, err := placement.Update(before, s.draft(after))
				if err != nil {
					t.Fatal(err)
				}
				checkSteps(t, s, before, whole, after)
			})
		}
	}
}

func checkSteps(t *testing.T, s *stepper, before, whole *placement.Table, after []topology.Node) {
	hs := stepHashes()
	const id = 77
	x := topology.Transition{ID: id, Kind: topology.TransitionNone, Over: time.Minute, Thresholds: []uint64{0}}
	reference, err := placement.Movement(before, whole)
	if err != nil {
		t.Fatal(err)
	}
	moved, least := 0.0, 0.0
	shares := before.Shares()
	step := func(table *placement.Table, below uint64) {
		t.Helper()
		last := s.at
		s.take(table, nil)
		other := 0
		for _, h := range hs {
			now, then := whole, before
			if placement.Rank(h, id) >= below {
				now, then = before, whole
			}
			if table.Locate(h) != now.Locate(h) {
				t.Fatalf("below %x: key of rank %x is at %d", below, placement.Rank(h, id), table.Locate(h))
			}
			if diff := cmp.Diff(now.AppendReplicas(nil, h, 3), table.AppendReplicas(nil, h, 3)); diff != "" {
				t.Fatal(diff)
			}
			want := -1
			if now.Locate(h) != then.Locate(h) {
				want = then.Locate(h)
				other++
			}
			if got := table.Other(h); got != want {
				t.Fatalf("the other owner is %d, want %d", got, want)
			}
		}
		if got := float64(other) / float64(len(hs)); s.spec.Replicas < 2 && math.Abs(got-reference.Ratio) > 0.04 {
			t.Fatalf("%.3f of the keys have another owner, %.3f move", got, reference.Ratio)
		}
		r, err := placement.Movement(last, table)
		if err != nil {
			t.Fatal(err)
		}
		moved, least = moved+r.Ratio, least+r.Minimum
		held := table.Shares()
		for _, n := range r.Nodes {
			i := table.Topology().Index(n.ID)
			if d := n.Before + n.In - n.Out - n.After; math.Abs(d) > 1e-9 && s.spec.Replicas < 2 {
				t.Fatalf("node %s: before %v + in %v - out %v is not after %v", n.ID, n.Before, n.In, n.Out, n.After)
			}
			if s.spec.Replicas < 2 && math.Abs(held[i]-n.After) > 1e-6 {
				t.Fatalf("node %s has %v, the report says %v", n.ID, held[i], n.After)
			}
		}
	}
	begun, err := placement.Begin(before, s.draft(after), x)
	if err != nil {
		t.Fatal(err)
	}
	step(begun, 0)
	if !begun.Moving() || math.Abs(begun.Shares()[0]-shares[0]) > 1e-9 {
		t.Fatal("the first step moved something")
	}
	for _, below := range []uint64{1 << 62, 3 << 62, 1 << 63, math.MaxUint64} {
		next, err := placement.Step(s.at, s.draft(after), below)
		if err != nil {
			t.Fatal(err)
		}
		if below == 1<<63 { // back a quarter: that moves again, in and out
			m, _ := placement.Movement(s.at, next)
			moved, least = moved-2*m.Ratio, least-2*m.Minimum
		}
		step(next, below)
	}
	done, err := placement.Settle(s.at, s.draft(after))
	if err != nil {
		t.Fatal(err)
	}
	r, err := placement.Movement(s.at, done)
	if err != nil {
		t.Fatal(err)
	}
	if done.Digest() != whole.Digest() || done.Moving() {
		t.Fatal("what comes out is not the whole change")
	}
	if got := moved + r.Ratio; math.Abs(got-reference.Ratio) > 1e-9 || math.Abs(least+r.Minimum-reference.Minimum) > 1e-9 {
		t.Fatalf("the steps moved %v, the whole change %v", got, reference.Ratio)
	}
	back, err := placement.Settle(s.at, s.draft(before.Topology().Nodes()))
	if err != nil || back.Digest() != before.Digest() {
		t.Fatalf("taken back: %v", err)
	}
	s.take(done, nil)
}

func TestStepsRefused(t *testing.T) {
	s := &stepper{t: t, spec: topology.Spec{Algorithm: topology.Maglev, TableSize: 251}}
	x := topology.Transition{ID: 1, Kind: topology.TransitionNone, Thresholds: []uint64{1 << 62}}
	if _, err := placement.Begin(nil, s.draft(stepNodes(1)), x); err == nil {
		t.Fatal("a first version in steps")
	}
	plain := s.take(placement.Update(nil, s.draft(stepNodes(1, 1, 1))))
	var field *topology.FieldError
	for name, d := range map[string]topology.Draft{
		"spec":    {Spec: topology.Spec{Algorithm: topology.Ring}, Nodes: stepNodes(1, 1, 1)},
		"removal": {Spec: s.spec, Nodes: stepNodes(1, 1)},
	} {
		full := s.draft(d.Nodes)
		full.Spec = d.Spec
		if _, err := placement.Begin(plain, full, x); !errors.As(err, &field) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := placement.Step(plain, s.draft(stepNodes(1, 1, 1)), 0); err == nil {
		t.Error("a step of nothing")
	}
	if _, err := placement.Settle(plain, s.draft(stepNodes(1, 1, 1))); err == nil {
		t.Error("an end of nothing")
	}
	moved := stepNodes(1, 1, 1)
	moved[0].Addr = "elsewhere"
	same, err := placement.Begin(plain, s.draft(moved), x)
	if err != nil || same.Moving() {
		t.Fatalf("an address in steps: %v", err)
	}
	s.take(placement.Begin(plain, s.draft(stepNodes(1, 1, 2)), x))
	for name, f := range map[string]func() error{
		"update":  func() error { _, err := placement.Update(s.at, s.draft(stepNodes(1, 1, 3))); return err },
		"begin":   func() error { _, err := placement.Begin(s.at, s.draft(stepNodes(1, 1, 3)), x); return err },
		"step":    func() error { _, err := placement.Step(s.at, s.draft(stepNodes(1, 1, 3)), 1<<63); return err },
		"joins":   func() error { _, err := placement.Step(s.at, s.draft(stepNodes(1, 1, 2, 1)), 1<<63); return err },
		"settle":  func() error { _, err := placement.Settle(s.at, s.draft(stepNodes(1, 2, 2))); return err },
		"compare": func() error { o, _ := placement.New(plain.Topology()); return compareWithOther(o, s.at) },
	} {
		if err := f(); (name != "compare") != errors.Is(err, placement.ErrMoving) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after := stepNodes(1, 1, 2)
	after[1].Addr = "moved"
	next := s.take(placement.Step(s.at, s.draft(after), 1<<63))
	if next.Topology().Node(1).Addr != "moved" || next.Topology().Transition().Thresholds[0] != 1<<63 {
		t.Fatal("an address does not change during a transition")
	}
	if a, b, err := placement.Heading(next.Topology(), s.spec, after); !a || b || err != nil {
		t.Fatal("heading to what is declared")
	}
	if a, b, err := placement.Heading(next.Topology(), s.spec, stepNodes(1, 1, 1)); a || !b || err != nil {
		t.Fatal("heading back")
	}
	if a, b, err := placement.Heading(next.Topology(), s.spec, stepNodes(1, 1, 5)); a || b || !errors.Is(err, placement.ErrMoving) {
		t.Fatal("heading nowhere")
	}
	if w := next.OwnerWeights(); w[2] != 1.5 {
		t.Fatalf("half way from 1 to 2 is %v", w[2])
	}
}

func compareWithOther(from, to *placement.Table) error {
	_, err := placement.Movement(from, to)
	return err
}

func BenchmarkLocateMoving(b *testing.B) {
	s := &stepper{spec: topology.Spec{Algorithm: topology.Ring}}
	plain, err := placement.Update(nil, s.draft(stepNodes(1, 1, 1)))
	if err != nil {
		b.Fatal(err)
	}
	s.at = plain
	table, err := placement.Begin(plain, s.draft(stepNodes(1, 1, 1, 1)), topology.Transition{ID: 1, Kind: topology.TransitionNone, Thresholds: []uint64{1 << 63}})
	if err != nil {
		b.Fatal(err)
	}
	h := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		h += splitmix.Golden
		if table.Locate(h) < 0 {
			b.Fatal("nobody")
		}
	}
}
