package balance

import "sync"

// Identity names one incarnation of a node. ID is who it is; Incarnation tells
// its stays apart (a counter or a boot time; 0 where nothing is known).
type Identity struct {
	ID          string
	Incarnation uint64
}

// Pool keeps one Node for every identity that is present. The zero value is
// not usable; see NewPool. It is safe for concurrent use.
type Pool struct {
	mu    sync.Mutex
	nodes map[Identity]*Node
}

// NewPool returns a pool without nodes.
func NewPool() *Pool { return &Pool{nodes: map[Identity]*Node{}} }

// Update makes ids the identities that are present and returns their nodes in
// the same order. An identity that was present keeps its Node; one that is new,
// or comes back after an Update without it, or has another incarnation, starts
// anew: requests still in flight on the old Node end there. An empty or
// repeated ID is refused with ErrInvalid and changes nothing. O(n).
func (p *Pool) Update(ids []Identity) ([]*Node, error) {
	seen := make(map[string]bool, len(ids))
	for i, id := range ids {
		if id.ID == "" {
			return nil, Invalidf("balance: identity %d has no ID; give every node one", i)
		}
		if seen[id.ID] {
			return nil, Invalidf("balance: ID %q occurs twice; a node has one incarnation at a time", id.ID)
		}
		seen[id.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*Node, len(ids))
	next := make(map[Identity]*Node, len(ids))
	for i, id := range ids {
		n := p.nodes[id]
		if n == nil {
			n = NewNode(id.ID, id.Incarnation)
		}
		list[i], next[id] = n, n
	}
	p.nodes = next
	return list, nil
}
