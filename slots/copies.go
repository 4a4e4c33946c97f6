package slots

import (
	"slices"

	"github.com/shardd/shardd/internal/splitmix"
)

// assign returns the copies of every slot, slot by slot, width each, in no
// particular order: the plan's quotas reached from old with the fewest moves.
func assign(p *plan, old Rows, rng *splitmix.Source) []uint16 {
	cells, kept, pruned := p.keep(old)
	if !kept {
		return deal(p, rng)
	}
	f := newFlow(cells, p.width, old, p.quotas, p.zone, rng)
	f.rule = &zoneRule{p: p, f: f}
	if pruned {
		f.augment(0) // what went may come back, here or there, for nothing
	}
	d := direct{flow: f, lead: newLeads(p, old, cells), zones: p.zone}
	d.fillPlaces()
	d.shift()
	if !f.augment(anyCost) {
		// The quotas can always be met (each slot holding its share of every node
		// is a fractional solution, so there is a whole one), and augmenting finds
		// it; this is for the mistake nobody has made yet.
		return deal(p, rng)
	}
	return cells
}

// keep copies old into cells, without what the rules forbid now; pruned says
// whether that was anything.
func (p *plan) keep(old Rows) (cells []uint16, kept, pruned bool) {
	cells = slices.Repeat([]uint16{NoOwner}, p.count*p.width)
	have := tally(len(p.quotas), old...)
	set := make([]uint16, 0, len(old))
	for s := range p.count {
		set = set[:0]
		for _, row := range old {
			if row[s] != NoOwner {
				set = append(set, row[s])
			}
		}
		left := p.prune(set, len(old) > 0 && old[0][s] != NoOwner, have)
		kept, pruned = kept || len(left) > 0, pruned || len(left) < len(set)
		copy(cells[s*p.width:], left)
	}
	return cells, kept, pruned
}

// prune drops copies of one slot until the zone limits hold and the rest can be
// completed within them: that of the node farthest above its quota, but the
// first one, if it is the primary, only where no other will do.
func (p *plan) prune(set []uint16, led bool, have []int) []uint16 {
	for {
		crowded, owed := p.inZones(set)
		if crowded < 0 && len(set)+owed <= p.width {
			return set
		}
		may := func(node uint16) bool {
			if crowded >= 0 {
				return int(p.zone[node]) == crowded
			}
			return p.zone == nil || p.spare(set, p.zone[node]) > 0
		}
		worst := -1
		for k, o := range slices.Backward(set) {
			if k == 0 && led && worst >= 0 {
				break
			}
			if may(o) && (worst < 0 || have[o]-p.quotas[o] > have[set[worst]]-p.quotas[set[worst]]) {
				worst = k
			}
		}
		led = led && worst != 0
		have[set[worst]]--
		set = slices.Delete(set, worst, worst+1)
	}
}

// inZones returns a zone that has too many of nodes, -1 if none has, and how many
// more the zones together must have.
func (p *plan) inZones(nodes []uint16) (crowded, owed int) {
	if p.zone == nil {
		return -1, 0
	}
	crowded, owed = -1, p.owed
	for k, o := range nodes {
		if o == NoOwner {
			continue
		}
		z := p.zone[o]
		switch c, l := p.inZone(nodes[:k], z), p.limits[z]; {
		case c < l.Lo:
			owed--
		case c >= l.Hi:
			crowded = int(z)
		}
	}
	return crowded, owed
}

// inZone counts the nodes of zone z.
func (p *plan) inZone(nodes []uint16, z uint16) int {
	c := 0
	for _, o := range nodes {
		if o != NoOwner && p.zone[o] == z {
			c++
		}
	}
	return c
}

// spare returns how many copies zone z has above the least that it must.
func (p *plan) spare(nodes []uint16, z uint16) int {
	return p.inZone(nodes, z) - p.limits[z].Lo
}

// zoneRule is the rule for copies: distinct nodes, zones within their limits.
type zoneRule struct {
	p *plan
	f *flow
}

func (r *zoneRule) choices(int) []uint16 { return nil }

func (r *zoneRule) allows(s int, out, in uint16) bool {
	cells := r.f.at(s)
	if slices.Contains(cells, in) {
		return false
	}
	if r.p.zone == nil {
		return true
	}
	z := r.p.zone[in]
	if out != NoOwner && r.p.zone[out] == z {
		return true
	}
	l, c := r.p.limits[z], r.p.inZone(cells, z)
	if c >= l.Hi {
		return false
	}
	if out != NoOwner {
		return r.p.spare(cells, r.p.zone[out]) > 0
	}
	if c < l.Lo {
		return true
	}
	_, owed := r.p.inZones(cells) // a place beyond what is owed elsewhere
	return r.p.places(cells) > owed
}

func (p *plan) places(cells []uint16) int {
	c := 0
	for _, o := range cells {
		if o == NoOwner {
			c++
		}
	}
	return c
}

// leads is what the choice of copies to move should know about primaries.
type leads struct {
	first []uint16 // by slot: the primary that is still there, or will be; else NoOwner
	spare []int    // by node: primaries above its quota of them
}

func newLeads(p *plan, old Rows, cells []uint16) leads {
	first := slices.Clone(old[0])
	for s, o := range first {
		if o != NoOwner && !slices.Contains(cells[s*p.width:][:p.width], o) {
			first[s] = NoOwner
		}
	}
	l := leads{first: first, spare: tally(len(p.quotas), first)}
	for i, q := range p.primary {
		l.spare[i] -= q
	}
	return l
}

// direct makes the moves of one step, at cost 1: from a slot with a place to
// fill, or a node above quota, to a node below. All of them are on cheapest
// paths, since nothing has moved yet that could be had for less.
type direct struct {
	*flow
	lead  leads
	zones []uint16 // by node, or nil
}

// draws is how many times a node is drawn before all nodes are tried in turn.
const draws = 16

// glances is how many slots of a node are looked at for a node that was drawn;
// one of a zone that all slots have already would be refused by every one.
const glances = 64

// fillPlaces fills the empty places of all slots, as far as one step goes; those
// first whose primary is gone, since whoever comes there may become primary.
func (d *direct) fillPlaces() {
	open := d.openSlots()
	for _, orphan := range []bool{true, false} {
		for _, s := range open {
			if (d.lead.first[s] == NoOwner) == orphan {
				for slices.Contains(d.at(int(s)), NoOwner) && d.fillPlace(int(s)) {
				}
			}
		}
	}
}

func (d *direct) fillPlace(s int) bool {
	if d.lead.first[s] == NoOwner { // for a node that lacks primaries, if one is drawn
		for k := 0; k < draws && d.need.total > 0; k++ {
			if b := d.need.draw(); d.lead.spare[b] < 0 && d.enter(s, b) {
				d.lead.spare[b]++
				d.lead.first[s] = b
				return true
			}
		}
	}
	for k := 0; k < draws && d.need.total > 0; k++ {
		if d.enter(s, d.need.draw()) {
			return true
		}
	}
	return slices.ContainsFunc(d.wanting(), func(b uint16) bool { return d.enter(s, b) })
}

// enter fills a place of slot s with node b, if that is allowed.
func (d *direct) enter(s int, b uint16) bool {
	if !d.rule.allows(s, NoOwner, b) {
		return false
	}
	d.put(s, NoOwner, b)
	return true
}

// shift moves copies from nodes above quota to nodes below, as far as one step goes.
func (d *direct) shift() {
	stuck := make([]bool, len(d.quota))
	for _, a := range d.surplus() {
		if !stuck[a] {
			stuck[a] = !d.shiftOne(a)
		}
	}
}

func (d *direct) shiftOne(a uint16) bool {
	for k := 0; k < draws && d.need.total > 0; k++ {
		b, ok := d.taker(a, k)
		if ok && d.give(a, b, glances) {
			return true
		}
	}
	return slices.ContainsFunc(d.wanting(), func(b uint16) bool { return d.give(a, b, len(d.slots[a])) })
}

// taker draws a node for one of a's copies. Where zones are full, only nodes of
// a's own zone can take it, so every other draw is from there.
func (d *direct) taker(a uint16, k int) (uint16, bool) {
	if zone := d.zones; zone != nil && k%2 == 1 {
		return d.need.drawFrom(zone[a])
	}
	return d.need.draw(), true
}

// give moves a copy from a to b, if there is a slot for it among the next ones
// from a random place in a's list: one where a is primary while it has too many
// of those, else one where it is not.
func (d *direct) give(a, b uint16, next int) bool {
	list := d.slots[a]
	leading := d.lead.spare[a] > 0
	second := -1
	start := int(d.rng.Below(uint64(len(list))))
	for k := range min(next, len(list)) {
		s := int(list[(start+k)%len(list)])
		if !d.rule.allows(s, a, b) {
			continue
		}
		if (d.lead.first[s] == a) == leading {
			second = s
			break
		}
		if second < 0 {
			second = s
		}
	}
	if second < 0 {
		return false
	}
	if d.lead.first[second] == a {
		d.lead.first[second] = b
		d.lead.spare[a]--
		d.lead.spare[b]++
	}
	d.put(second, a, b)
	return true
}
