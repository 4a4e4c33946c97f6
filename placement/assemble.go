package placement

import (
	"maps"
	"slices"
)

// defaultFlows is how many flows a report keeps, so that a report of ten
// thousand nodes can be stored.
const defaultFlows = 1000

func (o MovementOptions) withDefaults() MovementOptions {
	if o.MaxFlows == 0 {
		o.MaxFlows = defaultFlows
	}
	return o
}

// report turns a sheet of the two tables into a report.
func (c *comparison) report(s *sheet) Report {
	before, after := 0, c.to.copies()
	if c.from != nil {
		before = c.from.copies()
	}
	r := c.assemble(s, before, after, c.cause())
	r.ZonesRelaxed = c.to.ZonesRelaxed()
	r.Conditional = c.conditional()
	return r
}

// cause is the later version's own where it follows the earlier directly,
// otherwise what differs.
func (c *comparison) cause() string {
	t := c.to.topo
	own := t.Cause().Kind
	direct := c.from == nil || t.Parent() == c.from.topo.Digest()
	if own != "" && direct {
		return own
	}
	return CauseKind(c.from.topology(), t.Spec(), t.Nodes())
}

// conditional says for which keys the figures hold.
func (c *comparison) conditional() string {
	to := c.to.hash.Tag()
	if c.from != nil && c.from.hash.Tag() != to {
		return "for keys without a hash tag under both rules; keys with one are hashed anew: count your own with a key list"
	}
	if to != "" {
		return "keys with the same hash tag move together: count your own with a key list"
	}
	return ""
}

// assemble scales a sheet to shares of all copies after the change (before it,
// if none is left).
func (c *comparison) assemble(s *sheet, copiesBefore, copiesAfter int, cause string) Report {
	copies := copiesAfter
	if copies == 0 {
		copies = copiesBefore
	}
	scale := 1.0
	if copies > 0 {
		scale = 1 / (s.total * float64(copies))
	}
	r := Report{Cause: cause, Optimal: s.optimal, FlowsOmitted: s.flowsLeft, Reordered: s.reordered / s.total, Sample: s.sample}
	r.Ratio, r.MinimumRealised = s.moved*scale, s.least*scale
	r.Minimum = c.minimum(copies)
	r.Excess = r.Ratio - r.Minimum
	r.BetweenUnchanged = s.needless * scale
	if c.from != nil && remapping(c.from.topo.Spec(), c.to.topo.Spec()) {
		r.BetweenUnchanged, r.Remapped = 0, r.BetweenUnchanged
	}
	r.Method, r.Interval = c.method, s.interval
	r.Nodes = c.nodes(s, scale)
	r.Flows = c.flows(s, scale)
	return r
}

// minimum is the least movement between the shares that the weights ask for.
func (c *comparison) minimum(copies int) float64 {
	var before, after []float64
	if c.from == nil || c.to == nil { // a first version, or Modulo, which has one copy
		before, after = targets(c.roster.from, 1, false), targets(c.roster.to, 1, false)
	} else {
		a, b := c.from.topo.Spec(), c.to.topo.Spec()
		before = targets(c.roster.from, int(a.Replicas), a.ZoneAware)
		after = targets(c.roster.to, int(b.Replicas), b.ZoneAware)
	}
	switch {
	case sum(before) == 0:
		return 0
	case sum(after) == 0:
		return 1
	}
	least := 0.0
	for i := range before {
		least += max(0, after[i]-before[i])
	}
	return least / float64(copies)
}

func (c *comparison) nodes(s *sheet, scale float64) []NodeMovement {
	list := make([]NodeMovement, 0, len(s.before))
	for i, id := range s.roster.ids {
		if s.before[i] > 0 || s.after[i] > 0 {
			list = append(list, NodeMovement{ID: id, Before: s.before[i] * scale, After: s.after[i] * scale, In: s.in[i] * scale, Out: s.out[i] * scale})
		}
	}
	return list
}

func (c *comparison) flows(s *sheet, scale float64) []Flow {
	list := make([]Flow, len(s.flows))
	name := func(i int) string {
		if i < 0 {
			return ""
		}
		return s.roster.ids[i]
	}
	for i, f := range s.flows {
		list[i] = Flow{From: name(f.from), To: name(f.to), Share: f.amount * scale}
	}
	return list
}

func sortedFlowKeys(m map[uint64]float64) []uint64 { return slices.Sorted(maps.Keys(m)) }
