package wrr

import (
	"slices"
	"sync"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// LeastConn is nginx's least_conn: the node with the fewest requests in flight
// by weight (a before b iff a * w_b < b * w_a); among several of them, a step of
// smooth weighted round robin over those alone. O(n).
//
// The turns among equals are shared state. A pick that finds somebody else
// taking one draws among the equals at random by weight instead of waiting.
// nginx's max_fails is not part of it: bar a node by the set, or use Smooth.
// Like every full scan it herds when several clients use it; use P2C there.
// Source: ngx_http_upstream_least_conn_module.c 1.26.2.
type LeastConn struct {
	set   *balance.Set
	peers []peer
	turn  *ties
}

// ties is the state of the turns, taken by TryLock only.
type ties struct {
	mu      sync.Mutex
	current []int64 // of the peers
}

// NewLeastConn returns a least-connections picker over set.
func NewLeastConn(set *balance.Set) *LeastConn {
	peers := newPeers(set)
	return &LeastConn{set: set.Observed(nil), peers: peers, turn: &ties{current: make([]int64, len(peers))}}
}

// Pick returns the node with the fewest requests in flight by weight.
func (l *LeastConn) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	best, many := l.scan(exclude)
	if best < 0 {
		return balance.Ticket{}, l.set.None(exclude)
	}
	if many {
		best = l.breakTie(best, seed, exclude)
	}
	return l.set.Take(int(l.peers[best].index), now), nil
}

// load returns a peer's requests in flight.
func (l *LeastConn) load(k int) int64 {
	return int64(l.set.Node(int(l.peers[k].index)).InFlight())
}

// scan returns the first peer with the least load, and whether there are others.
func (l *LeastConn) scan(exclude []*balance.Node) (best int, many bool) {
	best = -1
	var load, weight int64 // of best
	for k := range l.peers {
		if !l.eligible(k, exclude) {
			continue
		}
		n, w := l.load(k), l.peers[k].weight
		switch diff := n*weight - load*w; {
		case best < 0 || diff < 0:
			best, load, weight, many = k, n, w, false
		case diff == 0:
			many = true
		}
	}
	return best, many
}

func (l *LeastConn) eligible(k int, exclude []*balance.Node) bool {
	p := &l.peers[k]
	return !p.down && (len(exclude) == 0 || !slices.Contains(exclude, l.set.Node(int(p.index))))
}

// breakTie chooses among the peers that are as little loaded as first.
func (l *LeastConn) breakTie(first int, seed uint64, exclude []*balance.Node) int {
	load, weight := l.load(first), l.peers[first].weight
	tied := func(k int) bool {
		return l.eligible(k, exclude) && l.load(k)*weight == load*l.peers[k].weight
	}
	if !l.turn.mu.TryLock() {
		return l.drawTie(first, seed, tied)
	}
	defer l.turn.mu.Unlock()
	best, total := -1, int64(0)
	for k := first; k < len(l.peers); k++ {
		if !tied(k) {
			continue
		}
		l.turn.current[k] += l.peers[k].weight
		total += l.peers[k].weight
		if best < 0 || l.turn.current[k] > l.turn.current[best] {
			best = k
		}
	}
	if best < 0 { // the loads have changed meanwhile
		return first
	}
	l.turn.current[best] -= total
	return best
}

// drawTie chooses at random by weight.
func (l *LeastConn) drawTie(first int, seed uint64, tied func(k int) bool) int {
	dice := splitmix.Source(seed)
	best, total := first, uint64(0)
	for k := first; k < len(l.peers); k++ {
		if !tied(k) {
			continue
		}
		w := uint64(l.peers[k].weight)
		if total += w; dice.Below(total) < w {
			best = k
		}
	}
	return best
}

// Next returns a least-connections picker over set. Nodes that stay with their
// weight keep their place in the turns.
func (l *LeastConn) Next(set *balance.Set) (balance.Picker, error) {
	n := NewLeastConn(set)
	was := make(map[*balance.Node]int, len(l.peers))
	for k := range l.peers {
		was[l.set.Node(int(l.peers[k].index))] = k
	}
	l.turn.mu.Lock()
	defer l.turn.mu.Unlock()
	for k := range n.peers {
		if j, ok := was[set.Node(int(n.peers[k].index))]; ok && l.peers[j].weight == n.peers[k].weight {
			n.turn.current[k] = l.turn.current[j]
		}
	}
	return n, nil
}

// Set returns the set the picker was made of.
func (l *LeastConn) Set() *balance.Set { return l.set }
