package affinity

import (
	"cmp"
	"container/list"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Chain appends the hash of each whole chunk of data to dst, each covering all chunks
// up to it: xxh64 of the hash before (8 bytes, little endian; the seed for the first) and
// the chunk. A rest that is shorter than a chunk has none. seed keeps models, adapters or
// tenants apart. Chunks of a size below 1 have none.
//
// Tokens are given as bytes: 4 a token, say, with a chunk of 16 tokens = 64.
func Chain(dst []uint64, seed uint64, data []byte, chunk int) []uint64 {
	if chunk < 1 {
		return dst
	}
	var d xxhash.Digest
	var before [8]byte
	for h := seed; len(data) >= chunk; data = data[chunk:] {
		d.Reset()
		binary.LittleEndian.PutUint64(before[:], h)
		_, _ = d.Write(before[:]) // never fails
		_, _ = d.Write(data[:chunk])
		h = d.Sum64()
		dst = append(dst, h)
	}
	return dst
}

// PrefixConfig configures Prefixes. The zero value takes the defaults.
type PrefixConfig struct {
	// Max is the most prefixes remembered; 0 means 1,000,000.
	Max int
	// Nodes is how many nodes are remembered for a prefix, the most recent ones; 0
	// means 4.
	Nodes int
	// Idle is the time after which a node is taken to have evicted a prefix that it
	// was not asked for; 0 means 10 min.
	Idle time.Duration
}

// Prefixes remembers which node served which beginning. Make one with NewPrefixes. Safe
// for concurrent use.
type Prefixes struct {
	cfg PrefixConfig

	mu     sync.Mutex
	byHash map[uint64]*list.Element
	recent *list.List // of *prefix, the most recent first
}

type prefix struct {
	hash  uint64
	nodes []holder // the most recent first
}

type holder struct {
	node string
	at   time.Duration
}

// NewPrefixes returns an empty memory.
func NewPrefixes(cfg PrefixConfig) *Prefixes {
	cfg.Max = cmp.Or(max(0, cfg.Max), 1_000_000)
	cfg.Nodes = cmp.Or(max(0, cfg.Nodes), 4)
	cfg.Idle = cmp.Or(max(0, cfg.Idle), 10*time.Minute)
	return &Prefixes{cfg: cfg, byHash: make(map[uint64]*list.Element), recent: list.New()}
}

// Candidate is a node and how many chunks of a beginning it has served.
type Candidate struct {
	Node   string
	Chunks int
}

// Candidates appends the nodes that have served a beginning of chain to dst, each once:
// the longest first, of equal ones the most recent. A node that has served a beginning
// has served all shorter ones, so a later candidate is of use only if those before it
// may not take the request.
func (p *Prefixes) Candidates(dst []Candidate, chain []uint64, now time.Duration) []Candidate {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := len(dst)
	for i := len(chain) - 1; i >= 0; i-- {
		e, ok := p.byHash[chain[i]]
		if !ok {
			continue
		}
		f, _ := e.Value.(*prefix)
		for _, h := range f.nodes {
			if now-h.at >= p.cfg.Idle || slices.ContainsFunc(dst[from:], func(c Candidate) bool { return c.Node == h.node }) {
				continue
			}
			dst = append(dst, Candidate{h.node, i + 1})
		}
	}
	return dst
}

// Pick returns the first candidate whose load is under its cap, or else the first node of
// order (sdk.Client.RouteN of the first chunk's hash, say) that is, or the one that is
// least over it; "" without candidate and order. chunks is how many it has served.
// Candidates that are not in order are passed over: they have left.
func (p *Prefixes) Pick(chain []uint64, order []string, load Load, now time.Duration) (node string, chunks int) {
	var room [8]Candidate
	for _, c := range p.Candidates(room[:0], chain, now) {
		if l, limit := load(c.Node); l < limit && slices.Contains(order, c.Node) {
			return c.Node, c.Chunks
		}
	}
	if len(order) == 0 {
		return "", 0
	}
	return first(order, load), 0
}

// Note remembers that node serves a request with this chain.
func (p *Prefixes) Note(chain []uint64, node string, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, hash := range slices.Backward(chain) { // so that short beginnings stay longest
		e, ok := p.byHash[hash]
		if !ok {
			if len(p.byHash) >= p.cfg.Max {
				old, _ := p.recent.Remove(p.recent.Back()).(*prefix)
				delete(p.byHash, old.hash)
			}
			e = p.recent.PushFront(&prefix{hash: hash})
			p.byHash[hash] = e
		}
		p.recent.MoveToFront(e)
		f, _ := e.Value.(*prefix)
		f.note(node, now, p.cfg.Nodes)
	}
}

// note puts the node first.
func (f *prefix) note(node string, now time.Duration, most int) {
	i := slices.IndexFunc(f.nodes, func(h holder) bool { return h.node == node })
	switch {
	case i >= 0:
		f.nodes = slices.Delete(f.nodes, i, i+1)
	case len(f.nodes) >= most:
		f.nodes = f.nodes[:most-1]
	}
	f.nodes = slices.Insert(f.nodes, 0, holder{node, now})
}

// Forget forgets what a node has served: it was started anew. O(prefixes).
func (p *Prefixes) Forget(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.recent.Front(); e != nil; {
		next := e.Next()
		f, _ := e.Value.(*prefix)
		f.nodes = slices.DeleteFunc(f.nodes, func(h holder) bool { return h.node == node })
		if len(f.nodes) == 0 {
			p.recent.Remove(e)
			delete(p.byHash, f.hash)
		}
		e = next
	}
}

// Len returns the number of prefixes remembered.
func (p *Prefixes) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byHash)
}
