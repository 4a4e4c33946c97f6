package sdk

import (
	"context"
	"runtime/debug"
	"sync"
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

// all returns hooks that call h's and then those that are plugged in, each guarded.
func (c *Client) all(h Hooks, plugged []Hook) Hooks {
	all := c.safe(h)
	for _, p := range plugged {
		var more Hooks
		if p, ok := p.(TakenHook); ok {
			more.OnTaken = p.OnTaken
		}
		if p, ok := p.(RefusedHook); ok {
			more.OnRefused = p.OnRefused
		}
		if p, ok := p.(ProblemHook); ok {
			more.OnProblem = p.OnProblem
		}
		if p, ok := p.(DrainedHook); ok {
			more.OnDrained = p.OnDrained
		}
		all = all.and(c.safe(more))
	}
	return all
}

// safe returns hooks that call h's, of which a panic is logged and goes no further.
func (c *Client) safe(h Hooks) Hooks {
	taken := h.OnTaken
	if taken != nil {
		h.OnTaken = func(from, to topology.Ref, build time.Duration) {
			c.guarded("OnTaken", func() { taken(from, to, build) })
		}
	}
	h.OnRefused = safe(c, "OnRefused", h.OnRefused)
	h.OnProblem = safe(c, "OnProblem", h.OnProblem)
	h.OnDrained = safe(c, "OnDrained", h.OnDrained)
	return h
}

func safe[T any](c *Client, name string, fn func(T)) func(T) {
	if fn == nil {
		return nil
	}
	return func(v T) { c.guarded(name, func() { fn(v) }) }
}

// and returns hooks that call h's and then next's.
func (h Hooks) and(next Hooks) Hooks {
	first, second := h.OnTaken, next.OnTaken
	switch {
	case first == nil:
		h.OnTaken = second
	case second != nil:
		h.OnTaken = func(from, to topology.Ref, build time.Duration) {
			first(from, to, build)
			second(from, to, build)
		}
	}
	h.OnRefused = both(h.OnRefused, next.OnRefused)
	h.OnProblem = both(h.OnProblem, next.OnProblem)
	h.OnDrained = both(h.OnDrained, next.OnDrained)
	return h
}

// both calls one function and then the other; either may be nil.
func both[T any](first, second func(T)) func(T) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(v T) {
		first(v)
		second(v)
	}
}

// guarded calls a function of the user; a panic is logged and goes no further.
func (c *Client) guarded(name string, fn func()) (panicked bool) {
	defer c.hooking.enter()()
	defer func() {
		if p := recover(); p != nil {
			panicked = true
			c.logger.Error("callback panicked", "callback", name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	fn()
	return false
}

// teller calls functions of the user one after another in a goroutine of its own, so
// that a slow one holds nothing else up.
type teller struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// tell has fn called after those that are waiting. Only upkeep calls it, which ended
// counts while it does.
func (t *teller) tell(ctx context.Context, ended *sync.WaitGroup, fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue = append(t.queue, fn); !t.running {
		t.running = true
		ended.Go(func() { t.run(ctx) })
	}
}

func (t *teller) run(ctx context.Context) {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 || ctx.Err() != nil {
			t.queue, t.running = nil, false
			t.mu.Unlock()
			return
		}
		fn := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		fn()
	}
}
