package lalb

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// Config configures a Picker; the zero value is brpc.
type Config struct {
	// Floor is the least weight of a node as a part of the mean weight, 0 to 1:
	// the share of requests that a node gets however slow it is, and what tells
	// that it is well again. 0 is brpc's floor of 1 request a second over its
	// latency.
	Floor float64
	// ColdLatency is the average latency assumed of a node before its first
	// answer, so that one which never answers is punished for what it has in
	// flight. 0 punishes it never, as brpc does.
	ColdLatency time.Duration
}

// maxTries bounds the draws that hit a node which is excluded, down, or found to
// be slower than its weight said.
const maxTries = 64

// Picker draws by measured weight.
type Picker struct {
	cfg    Config
	set    *balance.Set
	tree   *tree
	slots  []int32 // of the members, -1 for weight 0
	newest *atomic.Pointer[tree]
}

// New returns a picker over set whose nodes all start with the same weight.
// Settings out of range are refused with balance.ErrInvalid.
func New(set *balance.Set, cfg Config) (*Picker, error) {
	if !(cfg.Floor >= 0 && cfg.Floor <= 1) || cfg.ColdLatency < 0 {
		return nil, balance.Invalidf("lalb: Config%+v: Floor must be in [0, 1] and nothing negative", cfg)
	}
	p := &Picker{cfg: cfg, newest: new(atomic.Pointer[tree])}
	p.plant(set, nil)
	return p, nil
}

// Next returns a picker over set. Nodes that stay keep what was measured; new
// ones start with the mean weight; a node that left makes room for the last one
// of the tree. Done of older pickers' tickets reaches the newest.
func (p *Picker) Next(set *balance.Set) (balance.Picker, error) {
	n := &Picker{cfg: p.cfg, newest: p.newest}
	n.plant(set, p)
	return n, nil
}

// Set returns the set the picker was made of.
func (p *Picker) Set() *balance.Set { return p.set }

// twig is a leaf before the tree is made.
type twig struct {
	server *server
	weight int64
	member int32
}

// plant makes the tree over set, after that of was.
func (p *Picker) plant(set *balance.Set, was *Picker) {
	p.set = set.Observed(p)
	stay := make(map[*server]int32)
	var twigs []twig
	if was != nil {
		for i, j := range set.From(was.set) {
			if j >= 0 && was.slots[j] >= 0 && set.Member(i).Weight > 0 {
				stay[was.tree.leaves[was.slots[j]].server] = int32(i)
			}
		}
		twigs = prune(was.tree, stay)
	}
	var total int64
	for _, w := range twigs {
		total += w.weight
	}
	planted := make([]bool, set.Len())
	for _, w := range twigs {
		planted[w.member] = true
	}
	for i := range set.Len() {
		if planted[i] || set.Member(i).Weight == 0 {
			continue
		}
		weight := int64(scaleUnit)
		if n := int64(len(twigs)); n > 0 {
			weight = max(minWeight, total/n)
		}
		twigs = append(twigs, twig{server: newServer(weight), weight: weight, member: int32(i)})
		total += weight
	}
	p.grow(twigs)
}

// prune returns the leaves of t that stay: the last one takes the place of one
// that goes.
func prune(t *tree, stay map[*server]int32) []twig {
	var twigs []twig
	for i := range t.leaves {
		l := &t.leaves[i]
		twigs = append(twigs, twig{server: l.server, weight: l.weight.Load()})
	}
	for i := 0; i < len(twigs); {
		if member, ok := stay[twigs[i].server]; ok {
			twigs[i].member = member
			i++
			continue
		}
		twigs[i] = twigs[len(twigs)-1]
		twigs = twigs[:len(twigs)-1]
	}
	return twigs
}

// grow makes the tree and publishes it.
func (p *Picker) grow(twigs []twig) {
	p.tree = &tree{leaves: make([]leaf, len(twigs))}
	p.slots = make([]int32, p.set.Len())
	for i := range p.slots {
		p.slots[i] = -1
	}
	for i, w := range twigs {
		l := &p.tree.leaves[i]
		l.server, l.member, l.down = w.server, w.member, p.set.Member(int(w.member)).Down
		l.weight.Store(w.weight)
		p.slots[w.member] = int32(i)
		w.server.slot.Store(int32(i))
	}
	p.tree.sum()
	p.newest.Store(p.tree)
}

// limits returns what weights in t obey.
func (p *Picker) limits(t *tree) limits {
	l := limits{least: minWeight, cold: micros(p.cfg.ColdLatency)}
	if p.cfg.Floor > 0 {
		l.least = max(l.least, int64(p.cfg.Floor*float64(t.total.Load())/float64(len(t.leaves))))
	}
	return l
}

// Pick draws a node by weight. A draw that falls on a node which turns out to
// weigh less by now, or is excluded, is made again.
func (p *Picker) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	t, dice, begin := p.tree, splitmix.Source(seed), micros(now)
	if p.set.Live() == 0 {
		return balance.Ticket{}, balance.ErrNoNode
	}
	if p.cfg.Floor > 0 {
		p.lift(t, int(dice.Below(uint64(len(t.leaves)))))
	}
	for tries := 0; tries < maxTries; tries++ {
		total := t.total.Load()
		if total <= 0 {
			break
		}
		i, rest := p.find(t, int64(dice.Below(uint64(total))), total, begin)
		if i < 0 || len(exclude) != 0 && slices.Contains(exclude, p.set.Node(int(t.leaves[i].member))) {
			continue
		}
		l := &t.leaves[i]
		w := l.server.weight(begin, p.limits(t))
		t.set(i, w)
		if w < rest { // what is in flight there takes too long
			continue
		}
		return p.set.Take(int(l.member), now), nil
	}
	i, err := p.set.Draw(&dice, exclude)
	if err != nil {
		return balance.Ticket{}, err
	}
	return p.set.Take(i, now), nil
}

// Start counts a request that begins.
func (p *Picker) Start(i int, now time.Duration) {
	if slot := p.slots[i]; slot >= 0 {
		p.tree.leaves[slot].server.enter(micros(now))
	}
}

// lift raises leaf i to the floor, which rises with the mean: a leaf that others
// have outgrown is not drawn, and so not looked at, for a long time. One random
// leaf a pick keeps all of them there.
func (p *Picker) lift(t *tree, i int) {
	if least := p.limits(t).least; t.leaves[i].weight.Load() < least {
		t.set(i, least)
	}
}

// find descends to the leaf on which the draw falls, and returns what is left of
// the draw there; -1 if it falls on none that is up, or past the end while sums
// are changing. A node that is down loses its advantage over the mean, and the
// draw goes on behind what remains of it.
func (p *Picker) find(t *tree, draw, total, now int64) (i int, rest int64) {
	for i < len(t.leaves) {
		l := &t.leaves[i]
		left := l.left.Load()
		if draw < left {
			i = 2*i + 1
			continue
		}
		self := l.weight.Load()
		if draw < left+self {
			if !l.down {
				return i, draw - left
			}
			if l.server.fail(total / int64(len(t.leaves))) {
				self += t.set(i, l.server.weight(now, p.limits(t)))
			}
			if draw < left+self {
				return -1, 0
			}
		}
		draw -= left + self
		i = 2*i + 2
	}
	return -1, 0
}

// Observe takes the end of a request into the node's weight.
func (p *Picker) Observe(i int, start, now time.Duration, o balance.Outcome) {
	slot := p.slots[i]
	if slot < 0 {
		return // of weight 0, chosen by other means
	}
	s := p.tree.leaves[slot].server
	s.leave(micros(start))
	if o.Result != balance.Ignored && !s.learn(micros(start), micros(now), o) {
		return
	}
	p.tree.set(int(slot), s.weight(micros(now), p.limits(p.tree)))
	if t := p.newest.Load(); t != p.tree {
		if k := int(s.slot.Load()); k < len(t.leaves) && t.leaves[k].server == s {
			t.set(k, s.weight(micros(now), p.limits(t)))
		}
	}
}

// Share returns member i's part of all weights at the moment.
func (p *Picker) Share(i int) float64 {
	if p.slots[i] < 0 || p.set.Member(i).Down {
		return 0
	}
	return float64(p.tree.leaves[p.slots[i]].weight.Load()) / float64(max(1, p.tree.total.Load()))
}
