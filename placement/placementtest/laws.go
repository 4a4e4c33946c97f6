package placementtest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/topology"
)

// tb is what *testing.T and *rapid.T have in common here.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// must maps nodes after prev. Nodes that the subject refuses rightly end the
// attempt.
func (s Subject) must(t tb, prev Mapping, nodes []topology.Node) Mapping {
	t.Helper()
	m, err := s.Next(prev, nodes)
	if err == nil {
		return m
	}
	if s.Refuses == nil || !s.Refuses(nodes) {
		t.Fatalf("refused %v: %v", nodes, err)
	}
	t.Skip("refused rightly")
	return nil
}

func (s Subject) copies() int { return max(1, s.Replicas) }

// same fails unless both mappings answer alike for keys, replicas included.
func (s Subject) same(t tb, what string, a, b Mapping, keys []string) {
	t.Helper()
	for _, k := range keys {
		if x, y := a.Owner(k), b.Owner(k); x != y {
			t.Fatalf("%s: key %q belongs to %q and to %q", what, k, x, y)
		}
		n := s.copies() + 2
		if x, y := a.Replicas(k, n), b.Replicas(k, n); !slices.Equal(x, y) {
			t.Fatalf("%s: key %q has replicas %q and %q", what, k, x, y)
		}
	}
}

// order: the same nodes in any order give the same mapping.
func (s Subject) order(t *testing.T) {
	keys := sampleKeys(60)
	rapid.Check(t, func(t *rapid.T) {
		nodes := s.drawNodes(t, 12)
		shuffled := rapid.Permutation(nodes).Draw(t, "order")
		a, b := s.must(t, nil, nodes), s.must(t, nil, shuffled)
		s.same(t, "in another order", a, b, keys)
		next, _ := s.edit(t, nodes)
		s.same(t, "after a change, in another order", s.must(t, a, next), s.must(t, b, rapid.Permutation(next).Draw(t, "next order")), keys)
	})
}

// path: without history the mapping does not depend on the edits that led to
// it; with history it is what its published form says.
func (s Subject) path(t *testing.T) {
	keys := sampleKeys(60)
	rapid.Check(t, func(t *rapid.T) {
		nodes := s.drawNodes(t, 10)
		m := s.must(t, nil, nodes)
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			nodes, _ = s.edit(t, nodes)
			m = s.must(t, m, nodes)
		}
		if !s.History {
			s.same(t, "on another path", m, s.must(t, nil, nodes), keys)
		}
		if s.Reload == nil {
			return
		}
		back, err := s.Reload(m)
		if err != nil {
			t.Fatalf("published form refused: %v", err)
		}
		s.same(t, "from its published form", m, back, keys)
	})
}

// moves: a change of one node moves keys to it or from it, never both ways and
// never between others. A change that adds a node and takes it away again
// restores every owner.
func (s Subject) moves(t *testing.T) {
	if s.Moves {
		t.Skip("this placement moves other keys too")
	}
	keys := sampleKeys(300)
	rapid.Check(t, func(t *rapid.T) {
		nodes := s.drawNodes(t, 12)
		a := s.must(t, nil, nodes)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			next, id := s.edit(t, nodes)
			b := s.must(t, a, next)
			s.movedOnly(t, a, b, id, keys)
			a, nodes = b, next
		}
	})
}

func (s Subject) movedOnly(t tb, a, b Mapping, id string, keys []string) {
	t.Helper()
	to, from := "", ""
	for _, k := range keys {
		x, y := a.Owner(k), b.Owner(k)
		switch {
		case x == y:
		case y == id:
			to = k
		case x == id:
			from = k
		default:
			t.Fatalf("a change of %q moved key %q from %q to %q", id, k, x, y)
		}
	}
	if to != "" && from != "" {
		t.Fatalf("a change of %q moved key %q to it and key %q away from it", id, to, from)
	}
}

// replace: if one node takes another's place only that node's keys move, all
// of them to the new one.
func (s Subject) replace(t *testing.T) {
	if s.Replace == nil {
		t.Skip("this placement offers no replacement")
	}
	keys := sampleKeys(300)
	rapid.Check(t, func(t *rapid.T) {
		nodes := s.drawNodes(t, 12)
		a := s.must(t, nil, nodes)
		i := slices.IndexFunc(nodes, func(n topology.Node) bool { return s.weight(n) > 0 })
		by := nodes[i]
		by.ID = "by"
		next := append(without(nodes, nodes[i].ID), by)
		b, err := s.Replace(a, next, nodes[i].ID, by.ID)
		if err != nil {
			t.Fatalf("replacing %q by %q: %v", nodes[i].ID, by.ID, err)
		}
		for _, k := range keys {
			x, y := a.Owner(k), b.Owner(k)
			if want := map[bool]string{true: by.ID, false: x}[x == nodes[i].ID]; y != want {
				t.Fatalf("replacing %q by %q: key %q went from %q to %q", nodes[i].ID, by.ID, k, x, y)
			}
		}
	})
}

// shares: every node with weight owns something, as much as its weight asks
// for within the stated bound; others own nothing.
func (s Subject) shares(t *testing.T) {
	keys := sampleKeys(countedKeys)
	rapid.Check(t, func(t *rapid.T) {
		nodes := s.drawNodes(t, 12)
		m := s.must(t, nil, nodes)
		if rapid.Bool().Draw(t, "after a change") {
			nodes, _ = s.edit(t, nodes)
			m = s.must(t, m, nodes)
		}
		s.checkShares(t, m, nodes, keys)
	})
}

func (s Subject) checkShares(t tb, m Mapping, nodes []topology.Node, keys []string) {
	t.Helper()
	share := make(map[string]float64)
	if s.Shares != nil {
		share = s.Shares(m)
	} else {
		for _, k := range keys {
			share[m.Owner(k)] += 1 / float64(len(keys))
		}
	}
	var total uint32
	for _, n := range nodes {
		total += s.weight(n)
	}
	for _, n := range nodes {
		got, weight := share[n.ID], s.weight(n)
		if weight == 0 || got == 0 {
			if (weight == 0) != (got == 0) {
				t.Fatalf("node %q of owner weight %d of %d has share %v", n.ID, weight, total, got)
			}
			continue
		}
		if s.Tolerance == nil {
			continue
		}
		want := float64(weight) / float64(total)
		if tol := s.Tolerance(weight, total, s.owners(nodes)); math.Abs(got-want) > tol {
			t.Fatalf("node %q of owner weight %d of %d has share %v, want %v within %v", n.ID, weight, total, got, want, tol)
		}
	}
}
