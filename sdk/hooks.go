package sdk

import (
	"time"

	"github.com/shardd/shardd/topology"
)

// Hook is told what a client does. It has one or more of the methods of TakenHook,
// RefusedHook, ProblemHook and DrainedHook, and is told only of those, so that a new
// kind of hook breaks nobody. Package sdk/sdkprom and sdk/sdkotel are made of them.
// When they run and what they must not do is said at Hooks.
type Hook any

// TakenHook is told that lookups go by the topology to. from is what was held
// before, zero at first; build is the time the table took.
type TakenHook interface {
	OnTaken(from, to topology.Ref, build time.Duration)
}

// RefusedHook is told of every topology that is refused.
type RefusedHook interface {
	OnRefused(*RefusedError)
}

// ProblemHook is told of every problem with the source or the snapshot file.
type ProblemHook interface {
	OnProblem(error)
}

// DrainedHook is told that the connections to a node can be closed.
type DrainedHook interface {
	OnDrained(Departed)
}

// WithHook adds hooks, which are called in order after those of WithHooks.
func WithHook(hooks ...Hook) Option {
	return func(o *options) {
		o.plugged = append(o.plugged, hooks...)
	}
}

// and returns hooks that call h's and then those that are plugged in.
func (h Hooks) and(plugged []Hook) Hooks {
	for _, p := range plugged {
		if p, ok := p.(TakenHook); ok {
			before := h.OnTaken
			h.OnTaken = func(from, to topology.Ref, build time.Duration) {
				if before != nil {
					before(from, to, build)
				}
				p.OnTaken(from, to, build)
			}
		}
		if p, ok := p.(RefusedHook); ok {
			h.OnRefused = both(h.OnRefused, p.OnRefused)
		}
		if p, ok := p.(ProblemHook); ok {
			h.OnProblem = both(h.OnProblem, p.OnProblem)
		}
		if p, ok := p.(DrainedHook); ok {
			h.OnDrained = both(h.OnDrained, p.OnDrained)
		}
	}
	return h
}

// both calls one function and then the other; the first may be nil.
func both[T any](first, second func(T)) func(T) {
	if first == nil {
		return second
	}
	return func(v T) {
		first(v)
		second(v)
	}
}
