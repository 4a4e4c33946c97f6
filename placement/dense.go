package placement

// lawSheet collects a movement that is given by a law rather than counted: the
// shares of both sides and, node by node, what each hands over. Amounts are
// shares of the key space.
type lawSheet struct {
	*sheet
	top *topFlows
}

func newLawSheet(r *roster, before, after []float64, maxFlows int) *lawSheet {
	n := len(r.ids)
	s := &sheet{roster: r, total: 1, before: before, after: after, in: make([]float64, n), out: make([]float64, n)}
	for i := range n {
		s.least += max(0, after[i]-before[i])
	}
	return &lawSheet{s, newTopFlows(maxFlows)}
}

// move books amount from a to b; both are nodes and differ.
func (l *lawSheet) move(a, b int, amount float64) {
	if amount <= 0 {
		return
	}
	l.out[a] += amount
	l.in[b] += amount
	l.moved += amount
	if !l.roster.changed[a] && !l.roster.changed[b] {
		l.needless += amount
	}
	l.top.add(flow{a, b, amount})
}

func (l *lawSheet) done() *sheet {
	l.flows, l.flowsLeft = l.top.sorted()
	return l.sheet
}

// independent is the movement between two mappings that know nothing of each
// other: a key of a is then one of b with probability before[a] * after[b], and
// 1 - sum before[i]*after[i] of all keys move.
func independent(r *roster, before, after []float64, maxFlows int) *sheet {
	l := newLawSheet(r, before, after, maxFlows)
	for a, p := range before {
		if p == 0 {
			continue
		}
		for b, q := range after {
			if a != b {
				l.move(a, b, p*q)
			}
		}
	}
	return l.done()
}
