package placement

import (
	"fmt"
)

// stepMovement is the movement between two versions of which one or both are in a
// transition: the whole transition's, times the part of the ranks between their
// thresholds. Which keys have moved does not depend on where they live, so that
// is the law of the key hash.
func stepMovement(from, to *Table, o MovementOptions) (Report, error) {
	s := to.steps
	if s == nil {
		s = from.steps
	}
	p, okFrom := s.position(from)
	q, okTo := s.position(to)
	if !okFrom || !okTo {
		return Report{}, fmt.Errorf("%w between versions %s and %s, of which one is no part of it; compare with the version before it or after it", ErrMoving, from.name(), to.topo.Version())
	}
	a, b := s.before, s.after
	low, high := p, q
	if q < p {
		a, b = b, a
		low, high = 1-p, 1-q
	}
	r, err := MovementWith(a, b, o)
	if err != nil {
		return Report{}, err
	}
	r.part(low, high)
	c := comparison{from: from, to: to}
	r.Cause = c.cause()
	return r, nil
}

// position is the part of the ranks that belongs to the mapping after the
// transition in t: false if t is no part of it.
func (s *steps) position(t *Table) (float64, bool) {
	switch {
	case t == nil:
		return 0, false
	case t.kind == kindSteps:
		return t.steps.share(), t.steps.id == s.id && t.steps.before.digest == s.before.digest && t.steps.after.digest == s.after.digest
	case t.digest == s.before.digest:
		return 0, true
	}
	return 1, t.digest == s.after.digest
}

func (t *Table) name() string {
	if t == nil {
		return "none"
	}
	return t.topo.Version().String()
}

// part cuts a report of a whole change down to the part of it from low to high.
func (r *Report) part(low, high float64) {
	f := high - low
	for _, x := range []*float64{&r.Ratio, &r.Minimum, &r.MinimumRealised, &r.Excess, &r.BetweenUnchanged, &r.Remapped, &r.Reordered} {
		*x *= f
	}
	if r.Interval != nil {
		r.Interval = &[2]float64{r.Interval[0] * f, r.Interval[1] * f}
	}
	r.Sample, r.Optimal = nil, false
	for i := range r.Nodes {
		n := &r.Nodes[i]
		was, change := n.Before, n.After-n.Before
		n.Before, n.After = was+low*change, was+high*change
		n.In, n.Out = n.In*f, n.Out*f
	}
	for i := range r.Flows {
		r.Flows[i].Share *= f
	}
}

// shares mixes the copies of a key that each node holds before and after.
func (s *steps) shares(replicas int) []float64 {
	one, other := *s.before, *s.after
	one.replicas, other.replicas = replicas, replicas
	before, after := one.heldShares(), other.heldShares()
	p := s.share()
	for i := range after {
		after[i] = p*after[i] + (1-p)*before[i]
	}
	return after
}
