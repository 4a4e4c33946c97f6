package storetest

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// TestModels: the models accept what a right store answers, and refuse what a
// wrong one might.
func TestModels(t *testing.T) {
	first := declaredState{generation: 1, weights: [historyNodes]uint32{1, 1}}
	after := func(generation uint64, w ...uint32) answer {
		a := answer{state: declaredState{generation: generation}}
		copy(a.state.weights[:], w)
		return a
	}
	published := func(a answer, head byte, applied uint64) answer {
		a.state.head, a.state.applied = topology.Digest{head}, applied
		return a
	}
	type step struct {
		from, to int64
		in       op
		out      answer
	}
	weight := op{kind: "weight", node: 0, weight: 9}
	attach := func(owner string) op { return op{kind: "attach", owner: owner} }
	for name, c := range map[string]struct {
		model porcupine.Model
		want  bool
		ops   []step
	}{
		"reading while it is written":       {declaredModel(first), true, []step{{1, 5, weight, after(2, 9, 1)}, {2, 3, op{kind: "load"}, after(1, 1, 1)}, {4, 6, op{kind: "load"}, after(2, 9, 1)}}},
		"an old reading after the write":    {declaredModel(first), false, []step{{1, 2, weight, after(2, 9, 1)}, {3, 4, op{kind: "load"}, after(1, 1, 1)}}},
		"a reading that goes back":          {declaredModel(first), false, []step{{1, 9, weight, after(2, 9, 1)}, {2, 3, op{kind: "load"}, after(2, 9, 1)}, {4, 5, op{kind: "load"}, after(1, 1, 1)}}},
		"a lost edit":                       {declaredModel(first), false, []step{{1, 9, weight, after(2, 9, 1)}, {1, 9, op{kind: "weight", node: 1, weight: 7}, after(2, 1, 7)}}},
		"an edit over another":              {declaredModel(first), false, []step{{1, 2, weight, after(2, 9, 1)}, {3, 4, op{kind: "remove", node: 1, expect: 1}, after(3, 9)}}},
		"an edit that was refused for it":   {declaredModel(first), true, []step{{1, 2, weight, after(2, 9, 1)}, {3, 4, op{kind: "remove", node: 1, expect: 1}, answer{err: membership.ErrConflict}}}},
		"refused because of what is not":    {declaredModel(first), false, []step{{1, 2, op{kind: "add", node: 3, weight: 1}, answer{err: membership.ErrExists}}}},
		"unknown, and made later":           {declaredModel(first), true, []step{{1, 9, weight, answer{unknown: true}}, {2, 3, op{kind: "load"}, after(1, 1, 1)}, {4, 5, op{kind: "load"}, after(2, 9, 1)}}},
		"unknown, and made twice":           {declaredModel(first), false, []step{{1, 9, weight, answer{unknown: true}}, {4, 5, op{kind: "load"}, after(3, 9, 1)}}},
		"a version":                         {declaredModel(first), true, []step{{1, 2, op{kind: "publish", gen: 1, to: topology.Digest{1}}, answer{}}, {3, 4, op{kind: "load"}, published(after(1, 1, 1), 1, 1)}}},
		"a version twice":                   {declaredModel(first), false, []step{{1, 9, op{kind: "publish", gen: 1, to: topology.Digest{1}}, answer{}}, {2, 8, op{kind: "publish", gen: 1, to: topology.Digest{1}}, answer{}}}},
		"a version of what is not declared": {declaredModel(first), false, []step{{1, 2, op{kind: "publish", gen: 2, to: topology.Digest{1}}, answer{}}}},
		"one place for two":                 {liveModel(), false, []step{{1, 9, attach("a"), answer{}}, {2, 8, attach("b"), answer{}}}},
		"one place after the other":         {liveModel(), true, []step{{1, 2, attach("a"), answer{}}, {3, 8, op{kind: "end", owner: "a"}, answer{}}, {4, 9, attach("b"), answer{}}}},
		"refused by nobody":                 {liveModel(), false, []step{{1, 2, attach("a"), answer{err: membership.ErrDuplicate, held: "b"}}}},
		"there after its end":               {liveModel(), false, []step{{1, 2, attach("a"), answer{}}, {3, 4, op{kind: "end", owner: "a"}, answer{}}, {5, 6, op{kind: "roll"}, answer{live: liveState{"a"}}}}},
		"unknown, there and gone":           {liveModel(), true, []step{{1, 9, attach("a"), answer{unknown: true}}, {2, 3, op{kind: "roll"}, answer{live: liveState{"a"}}}, {4, 5, op{kind: "roll"}, answer{}}}},
		"unknown, in the way and gone":      {liveModel(), true, []step{{1, 9, attach("a"), answer{unknown: true}}, {2, 3, attach("b"), answer{err: membership.ErrDuplicate, held: "a"}}, {4, 5, attach("b"), answer{}}}},
		"unknown, gone and there":           {liveModel(), false, []step{{1, 9, attach("a"), answer{unknown: true}}, {2, 3, op{kind: "roll"}, answer{live: liveState{"a"}}}, {4, 5, op{kind: "roll"}, answer{}}, {6, 7, op{kind: "roll"}, answer{live: liveState{"a"}}}}},
	} {
		var ops []porcupine.Operation
		for i, s := range c.ops {
			ops = append(ops, porcupine.Operation{ClientId: i, Input: s.in, Call: s.from, Output: s.out, Return: s.to})
		}
		if got := porcupine.CheckOperations(c.model, ops); got != c.want {
			t.Errorf("%s: explained %t, want %t", name, got, c.want)
		}
	}
}
