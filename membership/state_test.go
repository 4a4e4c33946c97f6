package membership_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// TestApplyChangesNothing: neither a refused edit nor an accepted one touches
// the state it was made from.
func TestApplyChangesNothing(t *testing.T) {
	s := membership.State{Declared: declared(3), Generation: 4, Applied: 2, Edits: []membership.Note{{Generation: 2}, {Generation: 3}, {Generation: 4}}}
	before := s
	before.Declared.Nodes, before.Edits = slices.Clone(s.Declared.Nodes), slices.Clone(s.Edits)
	for name, e := range map[string]membership.Edit{
		"weight": membership.SetWeight("n01", 9), "remove": membership.RemoveNode("n00"), "add": membership.AddNode(topology.Node{ID: "a", Weight: 1}),
		"refused": {Apply: func(d topology.Declared) (topology.Declared, error) {
			d.Nodes[0].Weight = 77
			return d, errors.New("no")
		}},
	} {
		next, err := s.Apply(e)
		if diff := cmp.Diff([]any{before.Declared, before.Edits}, []any{s.Declared, s.Edits}); diff != "" {
			t.Fatalf("%s changed the state: %s", name, diff)
		}
		if err != nil {
			continue
		}
		if next.Generation != 5 || len(next.Edits) != 3 || next.Edits[0].Generation != 3 {
			t.Errorf("%s: generation %d, notes %+v", name, next.Generation, next.Edits)
		}
	}
}

func TestApplyInvalidState(t *testing.T) {
	s := membership.State{Declared: topology.Declared{Cluster: "c"}, Generation: 4, Invalid: errors.New("garbage")}
	if _, err := s.Apply(membership.AddNode(topology.Node{ID: "a"})); !errors.Is(err, membership.ErrCorrupt) || !errors.Is(err, s.Invalid) {
		t.Errorf("an edit of garbage: %v", err)
	}
	next, err := s.Apply(membership.ReplaceAll(declared(2)))
	if err != nil || next.Invalid != nil || len(next.Declared.Nodes) != 2 {
		t.Errorf("a whole declaration: %+v %v", next, err)
	}
}

func TestChangeNodeKeepsID(t *testing.T) {
	s := membership.State{Declared: declared(2), Generation: 1}
	_, err := s.Apply(membership.ChangeNode("n00", func(n *topology.Node) error { n.ID = "z"; return nil }))
	if !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("another id: %v", err)
	}
	boom := errors.New("boom")
	if _, err := s.Apply(membership.ChangeNode("n00", func(*topology.Node) error { return boom })); !errors.Is(err, boom) {
		t.Errorf("an error of change: %v", err)
	}
}

// TestApplyOrder: whatever the order of edits of different nodes, the declared
// state is the same, in normal form.
func TestApplyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 8, rapid.ID[string]).Draw(t, "ids")
		apply := func(ids []string) topology.Declared {
			s := membership.State{Declared: declared(1), Generation: 1}
			for _, id := range ids {
				next, err := s.Apply(membership.AddNode(topology.Node{ID: id, Weight: uint32(len(id))}))
				if err != nil {
					t.Fatal(err)
				}
				s = next
			}
			return s.Declared
		}
		shuffled := rapid.Permutation(ids).Draw(t, "order")
		if diff := cmp.Diff(apply(ids), apply(shuffled)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestETag(t *testing.T) {
	s := membership.State{Generation: 7}
	if got := s.ETag(); got != `"0.0+7"` {
		t.Errorf("before the first version: %s", got)
	}
	head, err := topology.New(topology.Draft{Cluster: "c", ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 2, Seq: 45}, Spec: declared(0).Spec})
	if err != nil {
		t.Fatal(err)
	}
	s.Head = head
	if got := s.ETag(); got != `"2.45+7"` {
		t.Errorf("ETag %s", got)
	}
}

// TestApplyRefusesWhatCannotBePublished: a table too small for the weights is
// found out before the edit stands, not when a version shall be made of it.
func TestApplyRefusesWhatCannotBePublished(t *testing.T) {
	s := membership.State{Declared: declared(3), Generation: 4}
	starving := declared(3)
	starving.Spec = topology.Spec{Algorithm: topology.Maglev, TableSize: 3}
	starving.Nodes[0].Weight = 17
	var field *topology.FieldError
	if _, err := s.Apply(membership.ReplaceAll(starving)); !errors.Is(err, membership.ErrInvalid) || !errors.As(err, &field) {
		t.Errorf("a node that would own nothing: %v", err)
	}
	starving.Nodes[0].Weight = 1
	even, err := s.Apply(membership.ReplaceAll(starving))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := even.Apply(membership.SetWeight("n01", 17)); !errors.Is(err, membership.ErrInvalid) {
		t.Errorf("a weight that starves another node: %v", err)
	}
}
