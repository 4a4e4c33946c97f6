package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// noise returns n printable characters that do not compress well.
func noise(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(byte('!' + rng.IntN(94)))
	}
	return b.String()
}

func labelled(cluster string, nodes, label int) topology.Declared {
	rng := rand.New(rand.NewPCG(1, uint64(nodes)))
	d := declared(cluster, nodes)
	for i := range d.Nodes {
		d.Nodes[i].Label = noise(rng, label)
	}
	return d
}

// testSizes (field case watch-08): clusters far beyond one request publish, are read back and seen by
// watchers whole.
func testSizes(t *testing.T, s *suite) {
	slots := declared("slots", 1000)
	slots.Spec = topology.Spec{Algorithm: topology.Slots, Replicas: 3}
	for i := range slots.Nodes {
		slots.Nodes[i].ID = fmt.Sprintf("node-with-an-id-of-exactly-40-bytes-%04d", i)
	}
	maglev := declared("maglev", 100)
	maglev.Spec = topology.Spec{Algorithm: topology.Maglev, TableSize: 655_373}
	for _, d := range []topology.Declared{
		labelled("n127", 127, 200), labelled("n128", 128, 200), labelled("n129", 129, 200), labelled("n256", 256, 200),
		labelled("n1000", 1000, 200), labelled("n5000", 5000, 200), labelled("mb", 3400, 510), slots, maglev,
	} {
		t.Run(d.Cluster, func(t *testing.T) { s.testSize(t, d) })
	}
}

func (s *suite) testSize(t *testing.T, d topology.Declared) {
	empty := d
	empty.Nodes = nil
	store, _ := s.create(t, empty)
	l := s.lead(t, d.Cluster)
	s.publish(t, store, l)
	seen := make(chan *topology.Topology, 10)
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		done <- s.Other.Open(d.Cluster).Watch(ctx, func(s membership.State) error {
			if s.Head != nil {
				seen <- s.Head
			}
			return nil
		})
	}()
	defer func() {
		cancel()
		wantErr(t, "Watch", <-done, context.Canceled)
	}()
	s.declare(t, store, membership.ReplaceAll(d))
	want := s.publish(t, store, l)
	for got := range seen {
		if !got.Complete() {
			t.Fatalf("version %s is not complete", got.Version())
		}
		if got.Version().Seq == 2 {
			break
		}
	}
	fresh := s.load(t, s.Other.Open(d.Cluster))
	normal, err := membership.Normal(d)
	if diff := cmp.Diff(normal, fresh.Declared); diff != "" || err != nil {
		t.Errorf("declared state read back: %v %.2000s", err, diff)
	}
	if !fresh.Head.Equal(want.Next) {
		t.Errorf("head %v, published %v", fresh.Head.Ref(), want.Next.Ref())
	}
	if _, err := placement.New(fresh.Head); err != nil {
		t.Errorf("the head does not build: %v", err)
	}
	if m, err := store.Movement(s.ctx, want.Next.Version()); err != nil || m.Ratio != want.Movement.Ratio {
		t.Errorf("movement: %v", err)
	}
}

// testNeverHalf: a reader that reads all the time while large versions are
// written finds each of them whole.
func testNeverHalf(t *testing.T, s *suite) {
	store, _ := s.create(t, labelled("c", 1300, 500))
	l := s.lead(t, "c")
	s.publish(t, store, l)
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan int, 1)
	go func() {
		reads := 0
		last := topology.Version{}
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; reads++ {
			<-tick.C
			state, err := s.Other.Open("c").Load(ctx) // a fresh store each time: nothing remembered
			if ctx.Err() != nil {
				break
			}
			if err != nil || state.Invalid != nil || !state.Head.Complete() || state.Head.Version().Compare(last) < 0 || len(state.Declared.Nodes) != 1300 {
				t.Errorf("half a state: %v, %v", err, state.Invalid)
				break
			}
			last = state.Head.Version()
		}
		done <- reads
	}()
	for range 4 {
		s.declare(t, store, membership.ChangeNode("n00001", func(n *topology.Node) error { n.Weight++; return nil }))
		s.publish(t, store, l)
	}
	cancel()
	if reads := <-done; reads < 3 {
		t.Errorf("only %d readings", reads)
	}
}
