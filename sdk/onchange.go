package sdk

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/shardd/shardd/topology"
)

// Change is a step from one topology to a later one.
type Change struct {
	From *topology.Topology // what this callback was called with last; nil the first time
	To   *topology.Topology // what lookups go by
	// Anew says that To need not continue From: the client was reset in between
	// (Client.Reset).
	Anew bool
}

// subscriber is one callback and what it has yet to be told. A goroutine runs
// only while there is something to tell.
type subscriber struct {
	client *Client
	fn     func(Change)

	mu      sync.Mutex
	seen    *topology.Topology // what fn was called with last
	next    *topology.Topology // newest; replaced while fn runs
	anew    bool               // there was a reset between seen and next
	running bool               // there is a goroutine
	stopped bool
}

// OnChange calls fn with the topology that is held, if there is one, and with
// every later one: in order, one call at a time, and the newest wins, so that a
// slow callback skips versions but always gets the last. From and To may be
// several versions apart.
//
// Lookups have gone over to the new topology before fn is called, and wait for
// no callback; neither do other callbacks. fn is called in a goroutine of its
// own with no lock held: it may take its time, look up, unsubscribe and Close.
// A panic in fn is logged, and fn is called again with the next version.
//
// cancel ends the calls: none begins after it has returned, but one that is
// running is not waited for (Close does that).
func (c *Client) OnChange(fn func(Change)) (cancel func()) {
	s := &subscriber{client: c, fn: fn}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return func() {}
	}
	c.subs[s] = struct{}{}
	if t := c.snap.Load().topology(); t != nil {
		s.notify(t, false)
	}
	return func() {
		c.mu.Lock()
		delete(c.subs, s)
		c.mu.Unlock()
		s.stop()
	}
}

func (s *subscriber) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// notify is called with c.mu held and the client not closed.
func (s *subscriber) notify(t *topology.Topology, anew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.next, s.anew = t, s.anew || anew
	if !s.running {
		s.running = true
		s.client.calls.Add(1)
		go s.run()
	}
}

func (s *subscriber) run() {
	defer s.client.calls.Done()
	defer s.client.callers.enter()()
	ended := false
	defer func() {
		if !ended { // fn called runtime.Goexit: it wants no more
			s.stop()
		}
	}()
	for {
		change, ok := s.take()
		if !ok {
			ended = true
			return
		}
		s.call(change)
	}
}

// take returns the next change, or false: then the goroutine is to end, and
// what comes later starts another one.
func (s *subscriber) take() (Change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.next == s.seen {
		s.running = false
		return Change{}, false
	}
	change := Change{From: s.seen, To: s.next, Anew: s.anew}
	s.seen, s.anew = s.next, false
	return change, true
}

func (s *subscriber) call(change Change) {
	defer func() {
		if p := recover(); p != nil {
			s.client.logger.Error("callback panicked", "panic", p, "version", change.To.Version(), "stack", string(debug.Stack()))
		}
	}()
	s.fn(change)
}

// callers are the goroutines that run callbacks. They only let Close see that
// it is called inside a callback, for which it then must not wait.
type callers struct {
	mu  sync.Mutex
	ids map[uint64]struct{}
}

// enter notes the calling goroutine; the function returned forgets it.
func (c *callers) enter() (leave func()) {
	id := goroutineID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = make(map[uint64]struct{})
	}
	c.ids[id] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ids, id)
	}
}

// inside reports whether the calling goroutine runs a callback.
func (c *callers) inside() bool {
	id := goroutineID()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, found := c.ids[id]
	return found
}

// goroutineID returns the number that the runtime prints for the calling
// goroutine, such as 7 from "goroutine 7 [running]:". Go offers no other way
// to tell that one is called back by oneself.
func goroutineID() uint64 {
	var room [64]byte
	text := room[:runtime.Stack(room[:], false)]
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	id, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return id
}
