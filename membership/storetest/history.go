package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// The history of a store: what concurrent callers asked for, were answered, and
// when, in a form that porcupine compares with a model. It answers whether some
// order of the operations, each between its call and its answer, explains all
// answers (linearizability; Herlihy and Wing 1990).

// historyNodes is how many nodes the edits of a history are about.
const historyNodes = 4

// op is what was asked for.
type op struct {
	kind   string // load, weight, add, remove, publish; attach, end, roll
	node   int
	weight uint32
	expect uint64 // generation; 0 = any
	gen    uint64 // that a publication answers
	from   topology.Digest
	to     topology.Digest
	owner  string
}

// answer is what came back. unknown: it may have been done, or may yet be.
type answer struct {
	unknown bool
	err     error // one of membership's sentinels
	held    string
	state   declaredState
	live    liveState
}

// declaredState is the model of declared and published state.
type declaredState struct {
	generation uint64
	weights    [historyNodes]uint32 // 0 = not declared
	head       topology.Digest
	applied    uint64
}

// liveState is the model of presences: the owner of each node, "" = none.
type liveState [historyNodes]string

// history records operations. Safe for concurrent use.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// record notes an operation that began at called.
func (h *history) record(client int, called int64, in op, out answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	returned := h.now()
	if out.unknown {
		if in.kind == "load" || in.kind == "roll" {
			return // tells nothing
		}
		returned = math.MaxInt64
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
}

// outcome reduces an error to what the model knows.
func outcome(err error) answer {
	if err == nil {
		return answer{}
	}
	if !errors.Is(err, membership.ErrUnreachable) {
		for _, known := range []error{membership.ErrConflict, membership.ErrExists, membership.ErrNoNode, membership.ErrDuplicate} {
			if errors.Is(err, known) {
				return answer{err: known}
			}
		}
	}
	if errors.Is(err, membership.ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, membership.ErrNotLeader) {
		return answer{unknown: true}
	}
	return answer{err: err}
}

func declaredOf(s membership.State) (d declaredState) {
	d.generation, d.applied = s.Generation, s.Applied
	for _, n := range s.Declared.Nodes {
		var i int
		if _, err := fmt.Sscanf(n.ID, "n%05d", &i); err == nil && i < historyNodes {
			d.weights[i] = n.Weight
		}
	}
	if s.Head != nil {
		d.head = s.Head.Digest()
	}
	return d
}

// edit returns what an edit makes of the state, and its error.
func (d declaredState) edit(in op) (declaredState, error) {
	there := d.weights[in.node] > 0
	switch {
	case in.expect != 0 && in.expect != d.generation:
		return d, membership.ErrConflict
	case in.kind == "add" && there:
		return d, membership.ErrExists
	case in.kind != "add" && !there:
		return d, membership.ErrNoNode
	}
	d.generation++
	d.weights[in.node] = in.weight
	return d, nil
}

// publish returns the state after a publication, and whether it is to be made.
func (d declaredState) publish(in op) (declaredState, bool) {
	if d.head != in.from || in.gen > d.generation || in.gen < d.applied {
		return d, false
	}
	d.head, d.applied = in.to, in.gen
	return d, true
}

// declaredModel is one cluster with its edits and publications.
func declaredModel(first declaredState) porcupine.Model {
	step := func(d declaredState, in op, out answer) []any {
		switch in.kind {
		case "load":
			return when(d == out.state, d)
		case "publish":
			next, made := d.publish(in)
			switch {
			case out.unknown && made:
				return []any{d, next}
			case out.unknown || errors.Is(out.err, membership.ErrConflict): // others may have come between in other ways
				return []any{d}
			}
			return when(out.err == nil && made, next)
		}
		next, err := d.edit(in)
		if out.unknown {
			return []any{d, next}
		}
		// The answer has the state after the edit, but the head as it was read.
		got := out.state
		got.head, got.applied = next.head, next.applied
		return when(errors.Is(out.err, err) && (err != nil || got == next), next)
	}
	return model(func() any { return first }, func(state any, in op, out answer) []any { return step(state.(declaredState), in, out) })
}

// liveModel is the presences of one cluster.
func liveModel() porcupine.Model {
	step := func(l liveState, in op, out answer) []any {
		next := l
		switch in.kind {
		case "roll":
			return when(l.told() == out.live, l)
		case "attach":
			if held := l.told()[in.node]; held != "" && !out.unknown {
				return when(errors.Is(out.err, membership.ErrDuplicate) && out.held == held, l)
			}
			switch {
			case l[in.node] == "" && out.unknown:
				next[in.node] = in.owner + fleeting
			case l[in.node] == "":
				next[in.node] = in.owner
			}
		case "end":
			if l[in.node] == in.owner {
				next[in.node] = ""
			}
		}
		if out.unknown {
			return []any{l, next}
		}
		return when(out.err == nil, next)
	}
	return model(func() any { return liveState{} }, func(state any, in op, out answer) (all []any) {
		for _, l := range state.(liveState).worlds() {
			all = append(all, step(l, in, out)...)
		}
		return all
	})
}

// fleeting marks the record of an attachment whose outcome its caller does not know:
// it is given up with its lease, and so is there until some moment that nobody tells.
const fleeting = "?"

// told returns what a reader is told.
func (l liveState) told() liveState {
	for i := range l {
		l[i] = strings.TrimSuffix(l[i], fleeting)
	}
	return l
}

// worlds returns what may be there now: every fleeting record still, or no more.
func (l liveState) worlds() []liveState {
	all := []liveState{l}
	for i := range l {
		if strings.HasSuffix(l[i], fleeting) {
			for _, w := range all {
				w[i] = ""
				all = append(all, w)
			}
		}
	}
	return all
}

func when(ok bool, state any) []any {
	if !ok {
		return nil
	}
	return []any{state}
}

func model(first func() any, step func(state any, in op, out answer) []any) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{first()} },
		Step:              func(state, in, out any) []any { return step(state, in.(op), out.(answer)) },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
	return m.ToModel()
}

// check compares the history with the model; at most n operations may be of
// unknown outcome, else it shows nothing.
func (h *history) check(t *testing.T, m porcupine.Model, what string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	unknown := 0
	for _, o := range h.ops {
		if o.Output.(answer).unknown {
			unknown++
		}
	}
	t.Logf("%s: %d operations, %d of unknown outcome", what, len(h.ops), unknown)
	if unknown > len(h.ops)/2 {
		t.Errorf("%s: %d of %d operations have an unknown outcome: the history shows little", what, unknown, len(h.ops))
	}
	result, info := porcupine.CheckOperationsVerbose(m, h.ops, 30*time.Second)
	switch result {
	case porcupine.Illegal:
		t.Errorf("%s: no order of the operations explains the answers; the longest that explains some is", what)
		h.tell(t, info)
	case porcupine.Unknown:
		t.Logf("%s: not decided within 30 s", what)
	}
}

// tell logs the longest order that porcupine found, and what it left out.
func (h *history) tell(t *testing.T, info porcupine.LinearizationInfo) {
	var best []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(best) {
				best = order
			}
		}
	}
	t.Log(len(best), "operations, the last of them:")
	for _, o := range best[max(0, len(best)-10):] {
		t.Log(describe(o))
	}
	t.Log("and what does not follow:")
	left := 0
	for _, o := range h.ops {
		if !slices.ContainsFunc(best, func(b porcupine.Operation) bool { return b.ClientId == o.ClientId && b.Call == o.Call }) && left < 20 {
			t.Log(describe(o))
			left++
		}
	}
}

func describe(o porcupine.Operation) string {
	in, out := o.Input.(op), o.Output.(answer)
	return fmt.Sprintf("client %d, %.3f to %.3f ms: %s node %d weight %d expect %d gen %d from %.8s to %.8s owner %.8s: %v %v held %.8s %d %v %.8s %d %.8v", o.ClientId, float64(o.Call)/1e6, float64(o.Return)/1e6,
		in.kind, in.node, in.weight, in.expect, in.gen, in.from, in.to, in.owner, out.unknown, out.err, out.held, out.state.generation, out.state.weights, out.state.head, out.state.applied, out.live)
}
