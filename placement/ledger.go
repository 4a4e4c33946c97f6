package placement

import "slices"

// sheet is a movement worked out, in whatever unit adds up to total for all
// keys: what the methods hand to the report.
type sheet struct {
	roster        *roster
	before, after []float64 // copies held, by roster index
	in, out       []float64
	flows         []flow // largest first
	flowsLeft     int    // how many flows are not in the list
	moved         float64
	needless      float64 // between nodes that did not change
	least         float64 // sum max(0, after - before)
	reordered     float64
	total         float64
	optimal       bool
	interval      *[2]float64
	sample        *Sample
}

// flow is an amount from one roster index to another; -1 = nobody.
type flow struct {
	from, to int
	amount   float64
}

// ledger counts a movement in whole units.
type ledger struct {
	roster        *roster
	before, after []units
	in, out       []units
	flows         map[uint64]units
	moved         units
	needless      units
	reordered     units

	entering, leaving []int // scratch
}

func newLedger(r *roster) *ledger {
	n := len(r.ids)
	return &ledger{roster: r, before: make([]units, n), after: make([]units, n),
		in: make([]units, n), out: make([]units, n), flows: make(map[uint64]units)}
}

func flowKey(from, to int) uint64 { return uint64(uint32(from))<<32 | uint64(uint32(to)) }

// one books amount of keys that node a owned and node b owns now.
func (l *ledger) one(amount units, a, b int) {
	l.before[a].add(amount)
	l.after[b].add(amount)
	if a != b {
		l.move(amount, a, b)
	}
}

// move books a copy that leaves a (-1: nobody gives it up) and enters b.
func (l *ledger) move(amount units, a, b int) {
	l.in[b].add(amount)
	l.moved.add(amount)
	if a >= 0 {
		l.out[a].add(amount)
		if !l.roster.changed[a] && !l.roster.changed[b] {
			l.needless.add(amount)
		}
	}
	l.flow(amount, a, b)
}

// flow books who hands over; -1 = nobody.
func (l *ledger) flow(amount units, a, b int) {
	k := flowKey(a, b)
	f := l.flows[k]
	f.add(amount)
	l.flows[k] = f
}

// set books amount of keys whose replicas were the nodes of a and are those of
// b, both in preference order and without repetition. The copies that enter are
// paired with those that leave so that as few pairs as possible are between two
// unchanged nodes.
func (l *ledger) set(amount units, a, b []int) {
	for _, x := range a {
		l.before[x].add(amount)
	}
	for _, x := range b {
		l.after[x].add(amount)
	}
	l.entering, l.leaving = without(l.entering[:0], b, a), without(l.leaving[:0], a, b)
	if len(l.entering)+len(l.leaving) == 0 && !slices.Equal(a, b) {
		l.reordered.add(amount)
	}
	l.pair()
	for i, x := range l.entering {
		from := -1
		if i < len(l.leaving) {
			from = l.leaving[i]
		}
		l.move(amount, from, x)
	}
	for _, x := range l.leaving[min(len(l.entering), len(l.leaving)):] {
		l.out[x].add(amount)
		l.flow(amount, x, -1)
	}
}

// lists books keys whose nodes were those of a and are those of b.
func (l *ledger) lists(amount units, a, b []int) {
	if len(a) == 1 && len(b) == 1 {
		l.one(amount, a[0], b[0])
		return
	}
	l.set(amount, a, b)
}

// pair puts unchanged nodes that enter, and changed nodes that leave, first.
func (l *ledger) pair() {
	if len(l.entering) < 2 && len(l.leaving) < 2 {
		return
	}
	slices.SortStableFunc(l.entering, func(a, b int) int { return l.rank(a) - l.rank(b) })
	slices.SortStableFunc(l.leaving, func(a, b int) int { return l.rank(b) - l.rank(a) })
}

func (l *ledger) rank(i int) int {
	if l.roster.changed[i] {
		return 1
	}
	return 0
}

// without appends the elements of a that are not in b to dst.
func without(dst, a, b []int) []int {
	for _, x := range a {
		if !slices.Contains(b, x) {
			dst = append(dst, x)
		}
	}
	return dst
}

// sheet closes the ledger.
func (l *ledger) sheet(total float64, maxFlows int) *sheet {
	s := &sheet{roster: l.roster, total: total, moved: l.moved.float(), needless: l.needless.float(), reordered: l.reordered.float()}
	var least units
	for i := range l.before {
		least.add(l.after[i].above(l.before[i]))
	}
	s.least = least.float()
	s.optimal = least == l.moved
	s.before, s.after, s.in, s.out = floats(l.before), floats(l.after), floats(l.in), floats(l.out)
	top := newTopFlows(maxFlows)
	for k, amount := range l.flows {
		top.add(flow{int(int32(k >> 32)), int(int32(k)), amount.float()})
	}
	s.flows, s.flowsLeft = top.sorted()
	return s
}

func floats(u []units) []float64 {
	f := make([]float64, len(u))
	for i, x := range u {
		f[i] = x.float()
	}
	return f
}
