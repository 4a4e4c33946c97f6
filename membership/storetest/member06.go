package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// testMember06: 20 nodes join at once, 5 operators change the weights of other
// nodes at once, two controllers run, one operator saves late. (Field case
// member-06: two nodes join, or two operators edit, at the same moment, and one
// change disappears.)
func testMember06(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 5))
	ctx, cancel := context.WithCancel(s.ctx)
	var controllers sync.WaitGroup
	for i, side := range []Harness{{Directory: s.Directory, Elector: s.Elector}, {Directory: s.Other, Elector: s.OtherElector}} {
		c, err := membership.NewController(membership.ControllerConfig{Store: side.Directory.Open("c"), Elector: side.Elector, Cluster: "c", ID: fmt.Sprint("controller-", i)})
		if err != nil {
			t.Fatal(err)
		}
		controllers.Go(func() {
			if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("controller: %v", err)
			}
		})
	}
	versions := make(chan []topology.Ref, 1)
	go func() {
		var refs []topology.Ref
		_ = s.Other.Open("c").Watch(ctx, func(s membership.State) error {
			if s.Head != nil {
				refs = append(refs, s.Head.Ref())
			}
			return nil
		})
		versions <- refs
	}()
	held := s.load(t, store) // by the operator who saves late
	s.storm(t)
	late := membership.SetWeight("n00000", 99)
	late.Expect = held.Generation
	_, err := store.Declare(s.ctx, late)
	wantErr(t, "the late save", err, membership.ErrConflict)
	s.eventually(t, "all edits are published", func() bool {
		state := s.load(t, store)
		return state.Head != nil && state.Applied == state.Generation && state.Generation == 26
	})
	s.checkStorm(t, s.load(t, store).Head)
	s.checkChain(t, store)
	cancel()
	controllers.Wait()
	last := topology.Version{}
	for _, ref := range <-versions {
		if ref.Version.Compare(last) < 0 {
			t.Errorf("a watcher saw %s after %s", ref.Version, last)
		}
		last = ref.Version
	}
}

// storm makes 25 edits at once through both processes.
func (s *suite) storm(t *testing.T) {
	var edits sync.WaitGroup
	start := make(chan struct{})
	for i := range 25 {
		edit := membership.AddNode(node(i + 100))
		if i < 5 {
			edit = membership.SetWeight(node(i).ID, uint32(10+i))
		}
		edit.By = fmt.Sprint("operator-", i)
		target := s.Directory.Open("c")
		if i%2 == 0 {
			target = s.Other.Open("c")
		}
		edits.Go(func() {
			<-start
			if _, err := target.Declare(s.ctx, edit); err != nil {
				t.Errorf("edit %d: %v", i, err)
			}
		})
	}
	close(start)
	edits.Wait()
}

func (s *suite) checkStorm(t *testing.T, head *topology.Topology) {
	t.Helper()
	for i := range 5 {
		if got := head.Node(head.Index(node(i).ID)).Weight; got != uint32(10+i) {
			t.Errorf("weight of %s is %d: an acknowledged edit was lost", node(i).ID, got)
		}
	}
	for i := 5; i < 25; i++ {
		if head.Index(node(i+100).ID) < 0 {
			t.Errorf("node %s was lost", node(i+100).ID)
		}
	}
}

// checkChain: versions 1 to the head, each the child of the one before.
func (s *suite) checkChain(t *testing.T, store membership.Reader) {
	t.Helper()
	infos, err := store.Versions(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	parent := topology.Digest{}
	for i, info := range infos {
		v, err := store.Version(s.ctx, info.Version)
		if err != nil {
			t.Fatal(err)
		}
		if info.Version != (topology.Version{Epoch: 1, Seq: uint64(i) + 1}) || v.Parent() != parent {
			t.Errorf("version %s at place %d with parent %s, want parent %s", info.Version, i+1, v.Parent(), parent)
		}
		parent = v.Digest()
	}
}
