package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

func testDirectory(t *testing.T, s *suite) {
	_, state := s.create(t, declared("b", 3))
	if state.ID.IsZero() || state.Epoch != 1 || state.History == 0 || state.Generation != 1 || state.Head != nil {
		t.Errorf("a new cluster has state %+v", state)
	}
	if notes := s.load(t, s.Other.Open("b")).Edits; len(notes) != 1 || notes[0].By != "test" || notes[0].Why != "to begin" {
		t.Errorf("a new cluster has notes %+v", notes)
	}
	_, other := s.create(t, declared("a", 0))
	if other.ID == state.ID {
		t.Error("two clusters have the same id")
	}
	if _, err := s.Other.Create(s.ctx, declared("b", 5), "test", ""); !errors.Is(err, membership.ErrExists) {
		t.Errorf("Create of a taken name: %v", err)
	}
	names, err := s.Other.List(s.ctx)
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" || err != nil {
		t.Errorf("List: %v %s", err, diff)
	}
	got := s.load(t, s.Other.Open("b"))
	if diff := cmp.Diff(declared("b", 3), got.Declared); diff != "" || got.ID != state.ID || got.Generation != 1 {
		t.Errorf("Load: %+v %s", got, diff)
	}
	for _, name := range []string{"", "a/b", "../x", ".clusters", "a b"} {
		if _, err := s.Directory.Create(s.ctx, declared(name, 1), "", ""); !errors.Is(err, membership.ErrInvalid) {
			t.Errorf("Create(%q): %v", name, err)
		}
	}
}

func testWatchNames(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(s.ctx)
	got := make(chan []string, 10)
	done := make(chan error, 1)
	go func() { done <- s.Other.WatchNames(ctx, func(names []string) error { got <- names; return nil }) }()
	if first := <-got; len(first) != 0 {
		t.Errorf("first call with %v", first)
	}
	s.create(t, declared("a", 1))
	for names := range got {
		if slices.Equal(names, []string{"a"}) {
			break
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("WatchNames returned %v", err)
	}
}

func testNoCluster(t *testing.T, s *suite) {
	for _, name := range []string{"nowhere", "no/where"} {
		store := s.Directory.Open(name)
		_, err := store.Load(s.ctx)
		wantErr(t, "Load", err, membership.ErrNoCluster)
		_, err = store.Declare(s.ctx, membership.AddNode(node(1)))
		wantErr(t, "Declare", err, membership.ErrNoCluster)
		wantErr(t, "Watch", store.Watch(s.ctx, func(membership.State) error { return nil }), membership.ErrNoCluster)
		_, err = store.Versions(s.ctx)
		wantErr(t, "Versions", err, membership.ErrNoCluster)
		_, err = store.Descends(s.ctx, topology.Ref{})
		wantErr(t, "Descends", err, membership.ErrNoCluster)
	}
}

func testDeclare(t *testing.T, s *suite) {
	store, first := s.create(t, declared("c", 2))
	second := s.declare(t, store, membership.AddNode(node(0x102)))
	if second.Generation != first.Generation+1 || len(second.Declared.Nodes) != 3 || second.ETag() != fmt.Sprintf(`"0.0+2@%s"`, first.ID) {
		t.Errorf("after AddNode: %+v", second)
	}
	other := membership.SetWeight("n00001", 9)
	other.Of = topology.NewClusterID()
	if _, err := store.Declare(s.ctx, other); !errors.Is(err, membership.ErrConflict) {
		t.Errorf("an edit of another cluster of that name: %v", err)
	}
	seven := membership.SetWeight("n00001", 7)
	seven.Of = first.ID
	s.declare(t, store, seven)
	s.declare(t, store, membership.RemoveNode("n00000"))
	want := declared("c", 2)
	want.Nodes = []topology.Node{node(1), node(0x102)}
	want.Nodes[0].Weight = 7
	got := s.load(t, s.Other.Open("c"))
	if diff := cmp.Diff(want, got.Declared); diff != "" || got.Generation != 4 {
		t.Errorf("generation %d %s", got.Generation, diff)
	}
	s.declare(t, store, membership.ReplaceAll(declared("c", 0)))
	if got := s.load(t, store); len(got.Declared.Nodes) != 0 || got.Generation != 5 {
		t.Errorf("after ReplaceAll with no nodes: %+v", got)
	}
}

func testDeclareConflict(t *testing.T, s *suite) {
	store, state := s.create(t, declared("c", 2))
	late := membership.SetWeight("n00000", 3) // held since the first reading
	late.Expect = state.Generation
	s.declare(t, s.Other.Open("c"), membership.SetWeight("n00000", 2))
	_, err := store.Declare(s.ctx, late)
	wantErr(t, "a late save", err, membership.ErrConflict)
	if !strings.Contains(err.Error(), "version changed") {
		t.Errorf("the error does not say that the version changed: %v", err)
	}
	if got := s.load(t, store); got.Declared.Nodes[0].Weight != 2 || got.Generation != 2 {
		t.Errorf("the late save changed something: %+v", got)
	}
	late.Expect = 2
	if got := s.declare(t, store, late); got.Declared.Nodes[0].Weight != 3 {
		t.Errorf("with the right generation: %+v", got)
	}
}

func testDeclareInvalid(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	before := s.load(t, store)
	boom := errors.New("boom")
	long := membership.AddNode(node(9))
	long.Why = strings.Repeat("x", membership.MaxNoteLen+1)
	control := membership.AddNode(node(9))
	control.By = "a\nb"
	for name, c := range map[string]struct {
		e    membership.Edit
		want error
	}{
		"duplicate":      {membership.AddNode(node(1)), membership.ErrExists},
		"unknown":        {membership.RemoveNode("nobody"), membership.ErrNoNode},
		"unknown weight": {membership.SetWeight("nobody", 1), membership.ErrNoNode},
		"bad id":         {membership.AddNode(topology.Node{ID: "a/b", Weight: 1}), membership.ErrInvalid},
		"empty id":       {membership.AddNode(topology.Node{Weight: 1}), membership.ErrInvalid},
		"huge weight":    {membership.SetWeight("n00001", topology.MaxWeight+1), membership.ErrInvalid},
		"all weights 0": {membership.Edit{Apply: func(d topology.Declared) (topology.Declared, error) {
			d.Nodes[0].Weight, d.Nodes[1].Weight = 0, 0
			return d, nil
		}}, membership.ErrInvalid},
		"other cluster": {membership.ReplaceAll(declared("d", 1)), membership.ErrInvalid},
		"algorithm":     {membership.ReplaceAll(topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: "md5"}}), membership.ErrInvalid},
		"own error":     {membership.Edit{Apply: func(d topology.Declared) (topology.Declared, error) { return d, boom }}, boom},
		"no apply":      {membership.Edit{}, membership.ErrInvalid},
		"long why":      {long, membership.ErrInvalid},
		"control":       {control, membership.ErrInvalid},
	} {
		_, err := store.Declare(s.ctx, c.e)
		wantErr(t, name, err, c.want)
	}
	if diff := cmp.Diff(before.Declared, s.load(t, store).Declared); diff != "" || s.load(t, store).Generation != 1 {
		t.Errorf("a refused edit changed something: %s", diff)
	}
}

// testDeclareAtOnce: edits of different nodes at the same moment are all there.
func testDeclareAtOnce(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 0))
	var wg sync.WaitGroup
	errs := make(chan error, 20)
	for i := range 20 {
		target := store
		if i%2 == 1 {
			target = s.Other.Open("c")
		}
		wg.Go(func() {
			_, err := target.Declare(s.ctx, membership.AddNode(node(i)))
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	got := s.load(t, store)
	if diff := cmp.Diff(declared("c", 20), got.Declared); diff != "" || got.Generation != 21 {
		t.Errorf("generation %d %s", got.Generation, diff)
	}
}

func testNotes(t *testing.T, s *suite) {
	store, _ := s.create(t, declared("c", 2))
	e := membership.AddNode(node(5))
	e.By, e.Why, e.Replace = "alice", "more room", map[string]string{"n00000": "n00005"}
	s.declare(t, store, e)
	l := s.lead(t, "c")
	s.publish(t, store, l)
	state := s.load(t, store)
	for _, n := range state.Edits {
		if n.Generation > state.Applied {
			t.Errorf("note %+v is left, though generation %d is applied", n, state.Applied)
		}
	}
	for i := range membership.MaxNotes + 3 {
		e := membership.SetWeight("n00001", uint32(i+2))
		e.By = fmt.Sprint("bob", i)
		s.declare(t, store, e)
	}
	got := s.load(t, store).Edits
	if len(got) != membership.MaxNotes || got[len(got)-1].By != fmt.Sprint("bob", membership.MaxNotes+2) {
		t.Errorf("%d notes, the last %+v", len(got), got[len(got)-1])
	}
}
