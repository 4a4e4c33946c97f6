package bounded

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// View says whose load counts.
type View uint8

const (
	// Own is the cost in flight of this process alone.
	Own View = iota
	// Reported is what nodes report in their answers and the own change since.
	Reported
)

// Options configure a Group. The zero value is exact counts of own requests.
type Options struct {
	// View says whose load counts.
	View View
	// Every lets the total lag by this many admissions and releases of each
	// core, so that cores do not wait for each other's word; 0 and 1 mean an
	// exact total. A node that would refuse by a total that lags is asked again
	// by the exact one, so a lag admits more and never less.
	Every int
}

// Group is what the nodes of one client share: the total load of those that
// count. It must not be copied.
type Group struct {
	reported bool
	every    uint64
	stripes  []stripe

	_     [128]byte
	total atomic.Int64
	_     [128]byte

	mu     sync.Mutex // guards what follows
	counts map[*Node]bool
}

// stripe is what the goroutines of one core have added since they last told
// the total: the sum (48 bits) | how many additions (16 bits).
type stripe struct {
	word atomic.Int64
	_    [120]byte
}

// numStripes is a power of two well above the number of cores on most machines:
// two goroutines that meet in one stripe are only slower.
const numStripes = 32

// NewGroup returns a group without nodes.
func NewGroup(o Options) *Group {
	g := &Group{reported: o.View == Reported, counts: map[*Node]bool{}}
	if o.Every > 1 {
		g.every = uint64(min(o.Every, 1<<15))
		g.stripes = make([]stripe, numStripes)
	}
	return g
}

// NewNode returns the load of a node that has just appeared: none. It does not
// count until a set with it is used.
func (g *Group) NewNode() *Node { return &Node{group: g} }

func (g *Group) add(q int64) {
	if g.every == 0 {
		g.total.Add(q)
		return
	}
	s := &g.stripes[here()]
	if w := s.word.Add(q<<16 + 1); uint64(w)&0xffff >= g.every {
		g.total.Add(s.word.Swap(0) >> 16)
	}
}

// here returns a stripe by the address of the stack: the same one for calls of
// one goroutine, and another for most others. There is no cheaper name for
// where one runs (a sync.Pool, which knows the processor, costs 6 ns a turn).
func here() uintptr {
	var b byte
	return uintptr(unsafe.Pointer(&b)) >> 12 % numStripes
}

// Total returns the load of all nodes that count. It is the exact sum when
// nothing is admitted or released meanwhile.
func (g *Group) Total() int64 {
	t := g.total.Load()
	for i := range g.stripes {
		t += g.stripes[i].word.Load() >> 16
	}
	return t
}

// Use lets exactly the members of s that may take requests count in the total.
// Call it when requests begin to go by s; sets of one group are used one at a
// time. O(n).
func (g *Group) Use(s *Set) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := make(map[*Node]bool, len(s.members))
	for i := range s.members {
		if m := &s.members[i]; m.reach > 0 {
			next[m.node] = true
		}
	}
	for n := range g.counts {
		if !next[n] {
			n.count(false)
		}
	}
	for n := range next {
		n.count(true)
	}
	g.counts = next
}
