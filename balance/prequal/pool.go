package prequal

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance/internal/decay"
)

// recent is how many RIFs the quantile is taken of.
const recent = 128

// pool holds answers. Picks read and remove without a lock; reports are
// serialised.
type pool struct {
	slots []atomic.Pointer[answer]
	hot   atomic.Int64 // RIF above which a node is hot

	mu      sync.Mutex
	rifs    []int // ring of the last RIFs
	next    int
	reports uint64
}

// answer is what one probe told.
type answer struct {
	member  int
	latency time.Duration
	at      time.Duration
	rif     atomic.Int64 // with what was sent since
	left    atomic.Int64 // uses; only looked at if limited
	limited bool
}

// add puts an answer into the pool: in place of one of the same member, into a
// free slot, or in place of the oldest.
func (p *pool) add(a *answer, quantile float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(int(a.rif.Load()), quantile)
	var free, oldest, same *atomic.Pointer[answer]
	var first time.Duration
	for i := range p.slots {
		s := &p.slots[i]
		switch b := s.Load(); {
		case b == nil:
			free = s
		case b.member == a.member:
			same = s
		case oldest == nil || b.at < first:
			oldest, first = s, b.at
		}
	}
	for _, s := range []*atomic.Pointer[answer]{same, free, oldest} {
		if s != nil {
			s.Store(a)
			return
		}
	}
}

// note takes a RIF into the quantile.
func (p *pool) note(rif int, quantile float64) {
	if len(p.rifs) < recent {
		p.rifs = append(p.rifs, rif)
	} else {
		p.rifs[p.next] = rif
		p.next = (p.next + 1) % recent
	}
	sorted := slices.Clone(p.rifs)
	slices.Sort(sorted)
	p.hot.Store(int64(sorted[int(quantile*float64(len(sorted)-1))]))
}

// drop removes a from slot i, unless somebody else has.
func (p *pool) drop(i int, a *answer) bool { return p.slots[i].CompareAndSwap(a, nil) }

// choose returns the answer to follow and its slot, and how many are usable. It
// looks at slot first first: among equal answers the one that comes first wins.
func (p *pool) choose(first int, now, maxAge time.Duration, r rule, unusable func(member int) bool) (best *answer, slot, usable int) {
	for k := range p.slots {
		i := (first + k) % len(p.slots)
		a := p.slots[i].Load()
		if a == nil {
			continue
		}
		if decay.Elapsed(a.at, now) > maxAge || now < a.at-maxAge {
			p.drop(i, a)
			continue
		}
		if unusable(a.member) {
			continue
		}
		usable++
		if best == nil || r.better(a, best) {
			best, slot = a, i
		}
	}
	return best, slot, usable
}

// rule says which of two answers to follow.
type rule struct {
	hot    int64 // RIF above which a node is hot
	linear *Linear
}

// better is the hot-cold lexicographic rule: cold before hot, the cold by
// latency, the hot by RIF; a tie goes by the other one.
func (r rule) better(a, b *answer) bool {
	if r.linear != nil {
		return r.linear.score(a) < r.linear.score(b)
	}
	ra, rb := a.rif.Load(), b.rif.Load()
	switch ha, hb := ra > r.hot, rb > r.hot; {
	case ha != hb:
		return hb
	case ha:
		return ra < rb || ra == rb && a.latency < b.latency
	}
	return a.latency < b.latency || a.latency == b.latency && ra < rb
}

// removeOldest and removeWorst take one answer out.
func (p *pool) removeOldest() {
	p.removeLast(func(a, b *answer) bool { return a.at > b.at })
}

func (p *pool) removeWorst(r rule) {
	p.removeLast(r.better)
}

// removeLast removes the answer that comes last in an order.
func (p *pool) removeLast(before func(a, b *answer) bool) {
	var last *answer
	at := 0
	for i := range p.slots {
		if a := p.slots[i].Load(); a != nil && (last == nil || before(last, a)) {
			last, at = a, i
		}
	}
	if last != nil {
		p.drop(at, last)
	}
}

// carry copies the answers of members that stay; from gives each member's old
// index.
func (p *pool) carry(was *pool, from []int) {
	to := map[int]int{}
	for i, j := range from {
		if j >= 0 {
			to[j] = i
		}
	}
	was.mu.Lock()
	defer was.mu.Unlock()
	p.rifs, p.next, p.reports = slices.Clone(was.rifs), was.next, was.reports
	p.hot.Store(was.hot.Load())
	k := 0
	for i := range was.slots {
		a := was.slots[i].Load()
		if a == nil || k >= len(p.slots) {
			continue
		}
		if member, ok := to[a.member]; ok {
			b := &answer{member: member, latency: a.latency, at: a.at, limited: a.limited}
			b.rif.Store(a.rif.Load())
			b.left.Store(a.left.Load())
			p.slots[k].Store(b)
			k++
		}
	}
}
