package affinity

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"
)

// SessionConfig configures Sessions. The zero value takes the defaults.
type SessionConfig struct {
	// Max is the most sessions remembered; 0 means 100,000.
	Max int
	// Idle is the time without a request after which a session is over; 0 means 10
	// min.
	Idle time.Duration
	// Low is the share of its cap below which a node takes sessions back that are
	// elsewhere, above 0 to 1; 0 means 0.8.
	Low float64
}

// Load says how loaded a node is: its load and its cap, in any one unit. A node with
// load >= cap takes no more. Client.LoadStats has both.
type Load func(node string) (load, limit float64)

// Sessions remembers where sessions are. Make one with NewSessions. Safe for concurrent
// use.
type Sessions struct {
	cfg SessionConfig

	mu     sync.Mutex
	byID   map[string]*list.Element
	recent *list.List // of *session, the most recent first
	moves  uint64
}

type session struct {
	id     string
	node   string
	home   string // head of its order when it was looked at last
	due    bool   // its home has changed: it may move there, once
	pinned bool   // it has: it stays
	seen   time.Duration
}

// NewSessions returns an empty memory.
func NewSessions(cfg SessionConfig) *Sessions {
	cfg.Max = cmp.Or(max(0, cfg.Max), 100_000)
	cfg.Idle = cmp.Or(max(0, cfg.Idle), 10*time.Minute)
	if !(cfg.Low > 0 && cfg.Low <= 1) {
		cfg.Low = 0.8
	}
	return &Sessions{cfg: cfg, byID: make(map[string]*list.Element), recent: list.New()}
}

// Pick returns the node for a request of the session. order is the session's order of
// preference over the nodes that may serve it, at least one; now is the time since any
// fixed origin. moved says that the session was elsewhere at its last request. Without
// an order it returns "".
func (s *Sessions) Pick(id string, order []string, load Load, now time.Duration) (node string, moved bool) {
	if len(order) == 0 {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	e, ok := s.byID[id]
	if !ok {
		if len(s.byID) >= s.cfg.Max {
			s.remove(s.recent.Back())
		}
		n := &session{id: id, node: first(order, load), home: order[0], seen: now}
		s.byID[id] = s.recent.PushFront(n)
		return n.node, false
	}
	s.recent.MoveToFront(e)
	n, _ := e.Value.(*session)
	n.seen = now
	before := n.node
	s.move(n, order, load)
	if n.node != before {
		s.moves++
	}
	return n.node, n.node != before
}

// move says where a known session goes on.
func (s *Sessions) move(n *session, order []string, load Load) {
	changed := order[0] != n.home
	if changed {
		n.home, n.pinned = order[0], false
		n.due = n.node != n.home
	}
	switch {
	case !slices.Contains(order, n.node):
		n.node = first(order, load)
	case n.pinned:
	case n.node != n.home:
		if l, limit := load(n.home); l < s.cfg.Low*limit {
			n.node = n.home
			n.pinned, n.due = n.due, false
		}
	case !changed:
		if l, limit := load(n.home); l >= limit {
			n.node = first(order, load)
		}
	}
}

// first returns the first node under its cap, or the one that is least over it.
func first(order []string, load Load) string {
	best, least := order[0], -1.0
	for _, node := range order {
		l, limit := load(node)
		if l < limit {
			return node
		}
		if over := l / max(limit, 1e-9); least < 0 || over < least {
			best, least = node, over
		}
	}
	return best
}

// forget ends sessions that have been idle; mu is held.
func (s *Sessions) forget(now time.Duration) {
	for e := s.recent.Back(); e != nil; e = s.recent.Back() {
		if n, _ := e.Value.(*session); now-n.seen < s.cfg.Idle {
			return
		}
		s.remove(e)
	}
}

func (s *Sessions) remove(e *list.Element) {
	n, _ := e.Value.(*session)
	s.recent.Remove(e)
	delete(s.byID, n.id)
}

// Where returns where the session is, "" if it is not known.
func (s *Sessions) Where(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byID[id]; ok {
		n, _ := e.Value.(*session)
		return n.node
	}
	return ""
}

// End forgets a session that is over.
func (s *Sessions) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byID[id]; ok {
		s.remove(e)
	}
}

// Stats returns how many sessions are remembered, and how often one has moved.
func (s *Sessions) Stats() (sessions int, moves uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID), s.moves
}
