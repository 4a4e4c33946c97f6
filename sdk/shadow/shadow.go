// Package shadow compares an old mapping with a new one on live traffic, without
// acting on it: the program goes on routing by the old one, and counts how many
// requests would go to another node, from which and to which.
//
//	s := shadow.New(today, tomorrow)
//	...
//	s.Observe(key) // beside each request
//	...
//	f := s.Figures() // f.Ratio: the share of requests that would move
//
// # Law
//
// A plan (package migrate) tells the share of keys that moves; a shadow tells the
// share of requests, which differs as far as some keys are asked for more often.
// With every key asked for once the two agree. Nothing is routed, held up or stored.
//
// # Cost
//
// Observe is two lookups (one hash where both mappings hash keys alike) and two to
// four additions to counters of nodes, each on a cache line of its own; 0
// allocations, no lock. See BenchmarkObserve.
//
// # What it does not do
//
// It knows owners only: replicas, health and bounded load are not compared.
package shadow

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shardd/shardd/placement"
)

// Shadow counts what a change of mapping would do to requests. All methods are safe
// for concurrent use.
type Shadow struct {
	onMove func(Move)
	pair   atomic.Pointer[pair]

	mu    sync.Mutex // of what follows
	nodes map[string]*counters
}

// Move is a request that would go to another node.
type Move struct {
	Key      string
	From, To string // ids of nodes; "" = none owns anything
}

// counters are those of one node.
type counters struct {
	before, after, in, out atomic.Uint64
	_                      [32]byte // a cache line
}

// pair is two mappings with the counters of their nodes, by index.
type pair struct {
	old, new   *placement.Table
	was, will  []*counters
	none       *counters
	sameHash   bool // one hash serves both
	keyedOwner bool // some mapping takes keys, not hashes
}

// Option configures a Shadow.
type Option func(*Shadow)

// WithMoves calls fn for every request that would move, in the goroutine of
// Observe: it must be fast. The default is to count only.
func WithMoves(fn func(Move)) Option { return func(s *Shadow) { s.onMove = fn } }

// New returns a shadow that compares old, which requests go by, with new. The two
// may be of any kind: a foreign mapping, one for planning only, another cluster.
// Nodes are the same if their ids are.
func New(old, new *placement.Table, opts ...Option) *Shadow {
	s := &Shadow{nodes: make(map[string]*counters)}
	for _, o := range opts {
		o(s)
	}
	s.Set(old, new)
	return s
}

// Set compares other mappings from now on, such as the newest version with the same
// plan (Client.OnChange tells of versions). The counts go on; Reset ends them.
func (s *Shadow) Set(old, new *placement.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, b := old.Topology().Spec(), new.Topology().Spec()
	p := &pair{old: old, new: new, was: s.countersOf(old), will: s.countersOf(new), none: s.counter(""),
		sameHash: a.KeyHash == b.KeyHash && a.HashTag == b.HashTag && a.Compat == b.Compat, keyedOwner: old.PlanOnly() || new.PlanOnly()}
	s.pair.Store(p)
}

func (s *Shadow) countersOf(t *placement.Table) []*counters {
	out := make([]*counters, t.Len())
	for i := range out {
		out[i] = s.counter(t.Topology().Node(i).ID)
	}
	return out
}

func (s *Shadow) counter(id string) *counters {
	c := s.nodes[id]
	if c == nil {
		c = new(counters)
		s.nodes[id] = c
	}
	return c
}

// Observe counts one request for key, and reports whether it would move.
func (s *Shadow) Observe(key string) (moved bool) {
	p := s.pair.Load()
	i, j := p.owners(key)
	was, will := p.none, p.none
	if i >= 0 {
		was = p.was[i]
	}
	if j >= 0 {
		will = p.will[j]
	}
	was.before.Add(1)
	will.after.Add(1)
	if was == will {
		return false
	}
	was.out.Add(1)
	will.in.Add(1)
	if s.onMove != nil {
		s.onMove(Move{Key: key, From: idOf(p.old, i), To: idOf(p.new, j)})
	}
	return true
}

// owners returns the indices of key's nodes, -1 for none.
func (p *pair) owners(key string) (i, j int) {
	if p.keyedOwner {
		return ownerOf(p.old, key), ownerOf(p.new, key)
	}
	h := p.old.Hash(key)
	i = p.old.Locate(h)
	if !p.sameHash {
		h = p.new.Hash(key)
	}
	return i, p.new.Locate(h)
}

func ownerOf(t *placement.Table, key string) int {
	i, err := t.Owner(key)
	if err != nil {
		return -1
	}
	return i
}

func idOf(t *placement.Table, i int) string {
	if i < 0 {
		return ""
	}
	return t.Topology().Node(i).ID
}

// Figures are the counts so far.
type Figures struct {
	// Requests is how many were observed, Moved how many of them would move.
	Requests uint64 `json:"requests"`
	Moved    uint64 `json:"moved"`
	// Ratio is Moved / Requests, 0 without requests.
	Ratio float64 `json:"ratio"`
	// Nodes are those of any mapping compared so far, by id. The id "" stands for
	// requests that have no node, where nobody owns anything.
	Nodes []NodeFigures `json:"nodes"`
}

// NodeFigures are the counts of one node.
type NodeFigures struct {
	ID string `json:"id"`
	// Before is how many requests the node has under the old mapping, After
	// under the new one; In and Out are those that come and go.
	Before uint64 `json:"before"`
	After  uint64 `json:"after"`
	In     uint64 `json:"in"`
	Out    uint64 `json:"out"`
}

// Figures returns the counts so far. Requests that are being observed meanwhile may
// be counted in part. O(nodes).
func (s *Shadow) Figures() Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f Figures
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		c := s.nodes[id]
		n := NodeFigures{ID: id, Before: c.before.Load(), After: c.after.Load(), In: c.in.Load(), Out: c.out.Load()}
		f.Requests += n.Before
		f.Moved += n.Out
		if id != "" || n.Before+n.After > 0 {
			f.Nodes = append(f.Nodes, n)
		}
	}
	if f.Requests > 0 {
		f.Ratio = float64(f.Moved) / float64(f.Requests)
	}
	return f
}

// Reset sets all counts to 0 and forgets nodes that are in neither mapping.
func (s *Shadow) Reset() {
	s.mu.Lock()
	s.nodes = make(map[string]*counters)
	s.mu.Unlock()
	p := s.pair.Load()
	s.Set(p.old, p.new)
}
