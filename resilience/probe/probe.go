// Package probe looks at failed nodes without user traffic, so that a node which
// no request is sent to any more is noticed when it is well again.
//
// A node that failed is put into a Set. It is probed after a wait that grows
// from probe to probe (package backoff), until Successes probes in a row succeed;
// then it leaves the Set and its owner is told. A probe that does not end within
// Timeout has failed.
//
// Law: a node that is well is found within Max + Timeout for the first success
// and Base + Timeout for each further one (with the defaults: 7 s); at most
// Concurrency probes run at once; no node is probed twice at once; a node that is
// forgotten is told of no more. A client sends at most n/(Max/2) probes a second
// to n failed nodes: with 100 clients and the default 5 s a dead node is asked 27
// times a second on average, which is what Max is for.
//
// Cost: O(n) under a mutex for each look at the schedule, n being the failed
// nodes; nothing at all on the path of requests.
//
// Source: active health checks as in HAProxy and Envoy, but of the failed set
// only: the nodes in use are judged by their requests (packages outlier and
// breaker), which costs no probes and sees what users see.
//
// When not to use it: where requests still reach the failed node (a breaker's
// half-open probes do), and as the only judge of a node's health: a probe that
// answers says little about the requests.
package probe

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shardd/shardd/resilience/backoff"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("probe: bad config")

// Defaults of Config.
const (
	DefaultBase        = time.Second
	DefaultMax         = 5 * time.Second
	DefaultTimeout     = 2 * time.Second
	DefaultConcurrency = 8
	DefaultSuccesses   = 1
)

// Config says how often and how many. The zero Config is the default.
type Config struct {
	// Backoff is the wait before each probe; a Base of 0 means DefaultBase
	// (1 s) and a Max of 0 DefaultMax (5 s). Its Jitter should be Equal, so
	// that no client probes without pause: the zero Config has that.
	Backoff backoff.Config
	// Timeout is how long a probe may take; 0 means DefaultTimeout (2 s).
	Timeout time.Duration
	// Concurrency is the probes at once; 0 means DefaultConcurrency (8).
	Concurrency int
	// Successes is the probes in a row that must succeed; 0 means
	// DefaultSuccesses (1).
	Successes int
}

// Set is the failed nodes and when to look at each. K names a node, as its ID.
// Make one with New; it must not be copied. Its methods may be called by any
// number of goroutines.
type Set[K comparable] struct {
	c    Config
	wait backoff.Policy
	wake chan struct{} // something is due earlier than it was

	mu      sync.Mutex // guards the rest
	nodes   map[K]*node
	running int
	serial  uint64
}

// node is one failed node; guarded by the set's mu.
type node struct {
	order       uint64        // of Fail, so that equal times have an order
	since, wait time.Duration // the next probe is due when wait has passed since
	tries       int
	good        int
	probe       uint64 // the serial number of the probe under way, 0 for none
	began       time.Duration
}

// Probe is one probe that is to be run. Copies are the same probe.
type Probe[K comparable] struct {
	Key    K
	set    *Set[K]
	serial uint64
}

// New returns an empty set. The error wraps ErrConfig or backoff.ErrConfig.
func New[K comparable](c Config) (*Set[K], error) {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Successes == 0 {
		c.Successes = DefaultSuccesses
	}
	b := &c.Backoff
	if b.Base == 0 && b.Max == 0 && b.Factor == 0 && b.Jitter == backoff.Full {
		b.Jitter = backoff.Equal
	}
	if b.Max == 0 {
		b.Max = max(DefaultMax, b.Base)
	}
	if b.Base == 0 {
		b.Base = min(DefaultBase, b.Max)
	}
	if c.Timeout < 0 || c.Concurrency < 0 || c.Successes < 0 {
		return nil, fmt.Errorf("%w: timeout %v, concurrency %d, successes %d: want 0 or more", ErrConfig, c.Timeout, c.Concurrency, c.Successes)
	}
	wait, err := backoff.New(*b)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return &Set[K]{c: c, wait: wait, wake: make(chan struct{}, 1), nodes: map[K]*node{}}, nil
}

// Fail puts a node in at now. One that is in already is left as it is, and keeps
// the wait it has grown to. It reports whether the node is new.
func (s *Set[K]) Fail(key K, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, in := s.nodes[key]; in {
		return false
	}
	s.serial++
	s.nodes[key] = &node{order: s.serial, since: now, wait: s.wait.Next(0, 0)}
	s.poke()
	return true
}

// Forget takes a node out, because it left or was found well otherwise; a probe
// under way is not stopped, and tells nobody. It reports whether it was in.
func (s *Set[K]) Forget(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, in := s.nodes[key]
	if in {
		s.free(n)
		delete(s.nodes, key)
	}
	return in
}

// Len returns the number of failed nodes.
func (s *Set[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}

// Contains reports whether the node is in.
func (s *Set[K]) Contains(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := s.nodes[key]
	return in
}

// Due appends to dst the probes to begin at now, as many as Concurrency leaves
// room for, those that have been due longest first when there are more. Each must
// be ended by Done; one that is not has failed after Timeout.
func (s *Set[K]) Due(dst []Probe[K], now time.Duration) []Probe[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	for s.running < s.c.Concurrency {
		key, n := s.first(now)
		if n == nil {
			return dst
		}
		s.serial++
		s.running++
		n.probe, n.began = s.serial, now
		dst = append(dst, Probe[K]{key, s, s.serial})
	}
	return dst
}

// Next returns how long after now something is to be done: a probe to begin or to
// give up. ok is false when the set is empty.
func (s *Set[K]) Next(now time.Duration) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		left := s.c.Timeout - (now - n.began)
		if n.probe == 0 {
			if s.running >= s.c.Concurrency {
				continue // until one of those under way ends
			}
			left = n.left(now)
		}
		if left = max(0, left); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}

// Done ends the probe at now, once, and reports whether it made the node well: it
// is out of the set then. A probe of a node that was forgotten, or that has timed
// out, does nothing.
func (p Probe[K]) Done(now time.Duration, good bool) (well bool) {
	s := p.set
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[p.Key]
	if n == nil || n.probe != p.serial {
		return false
	}
	s.end(n, now, good)
	if n.good < s.c.Successes {
		return false
	}
	delete(s.nodes, p.Key)
	return true
}

// expire ends the probes that have taken longer than Timeout.
func (s *Set[K]) expire(now time.Duration) {
	for _, n := range s.nodes {
		if took := now - n.began; n.probe != 0 && (took >= s.c.Timeout || took <= -s.c.Timeout) {
			s.end(n, now, false)
		}
	}
}

// end takes a probe's outcome and sets the next wait.
func (s *Set[K]) end(n *node, now time.Duration, good bool) {
	s.free(n)
	if good {
		n.good, n.tries = n.good+1, 0
	} else {
		n.good, n.tries = 0, n.tries+1
	}
	n.since, n.wait = now, s.wait.Next(n.tries, n.wait)
	s.poke()
}

func (s *Set[K]) free(n *node) {
	if n.probe != 0 {
		n.probe = 0
		s.running--
		s.poke()
	}
}

// first returns the node that has been due longest.
func (s *Set[K]) first(now time.Duration) (key K, first *node) {
	for k, n := range s.nodes {
		if n.probe == 0 && n.left(now) <= 0 && (first == nil || n.before(first)) {
			key, first = k, n
		}
	}
	return key, first
}

func (n *node) before(m *node) bool {
	a, b := n.since+n.wait, m.since+m.wait
	return a < b || a == b && n.order < m.order
}

// left is what is left of the wait; a clock that went back leaves no more than
// the whole.
func (n *node) left(now time.Duration) time.Duration {
	return min(n.wait, n.since+n.wait-now)
}

func (s *Set[K]) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
