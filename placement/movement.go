package placement

import (
	"errors"

	"github.com/shardd/shardd/topology"
)

// errNoTarget: Movement needs the later version.
var errNoTarget = errors.New("placement: movement to no version; give the later table")

// Movement says what moves from one mapping to another, exactly where that is
// possible: see Method. from may be nil (the first version: ratio 0, cause
// created). Any two tables can be compared, of whatever algorithms, key hashes
// and nodes. The report is a function of the two topologies alone.
//
// Cost: linear in points and entries for arcs, table and breakpoints (about 10
// ms for two rings of 160,000 points); O(N log N) plus one step a flow for
// formula and independent; 65,536 lookups on each side for enumeration; see
// MovementOptions for sample.
func Movement(from, to *Table) (Report, error) {
	return MovementWith(from, to, MovementOptions{})
}

// MovementWith is Movement with options.
func MovementWith(from, to *Table, o MovementOptions) (Report, error) {
	if to == nil {
		return Report{}, errNoTarget
	}
	o = o.withDefaults()
	if to.kind == kindSteps || from != nil && from.kind == kindSteps {
		return stepMovement(from, to, o)
	}
	c := newComparison(from, to, o)
	return c.report(c.sheet()), nil
}

// comparison is two tables side by side.
type comparison struct {
	from, to *Table // from may be nil
	roster   *roster
	method   Method
	o        MovementOptions
}

func newComparison(from, to *Table, o MovementOptions) *comparison {
	return &comparison{from: from, to: to, roster: newRoster(from.topology(), to.topology()), method: methodFor(from, to), o: o}
}

// topology is Topology for a table that may be nil.
func (t *Table) topology() *topology.Topology {
	if t == nil {
		return nil
	}
	return t.topo
}

// methodFor chooses the method by the kinds of mapping on both sides.
func methodFor(from, to *Table) Method {
	switch {
	case from == nil || from.owners == 0 || to.owners == 0:
		return MethodNone
	case from.lawless() || to.lawless():
		return sampleOrIdentical(from, to)
	case !from.hash.SameHash(to.hash):
		return lawOrSample(from, to)
	case sameTable(from, to):
		return MethodTable
	case from.hash.Few():
		return MethodEnumeration
	case from.pieces() != nil && to.pieces() != nil:
		if from.kind == kindRing && to.kind == kindRing {
			return MethodArcs
		}
		return MethodBreakpoints
	case from.copies() > 1 || to.copies() > 1:
		return sampleOrIdentical(from, to)
	case from.kind == kindModulo && to.kind == kindModulo:
		return MethodResidues
	case sameLaw(from, to):
		return MethodFormula
	}
	return MethodIndependent
}

// lawless reports whether only a sample says what the mapping does.
func (t *Table) lawless() bool {
	return t.kind == kindKeyed || t.kind == kindScore && !t.foreign.Score.Lawful()
}

// sampleOrIdentical is the method where keys have to be looked up.
func sampleOrIdentical(from, to *Table) Method {
	if from.Digest() == to.Digest() {
		return MethodIdentical
	}
	return MethodSample
}

// lawOrSample is the method for two mappings that know nothing of each other:
// the law needs the exact share of every node's copies on both sides.
func lawOrSample(from, to *Table) Method {
	if from.countable() && to.countable() {
		return MethodIndependent
	}
	return MethodSample
}

// countable reports whether the share of copies of each node can be had exactly
// or by a law.
func (t *Table) countable() bool {
	return t.copies() == 1 || t.pieces() != nil || t.hash.Few() || t.kind == kindModulo
}

// sameTable reports whether both are tables of one size whose entries are
// equally likely: always so for 64-bit hashes, for crc16 if its 16,384 slots
// fall evenly on the table's.
func sameTable(from, to *Table) bool {
	if from.kind == kindModulo || to.kind == kindModulo {
		return from.kind == to.kind && from.foreign.Modulo.Size() == to.foreign.Modulo.Size() && !from.hash.Few()
	}
	n := from.slotCount()
	return n > 0 && n == to.slotCount() && (!from.hash.Few() || evenSlots%n == 0)
}

// evenSlots is how finely the hashes of crc16 are spread evenly: 4 on each slot.
const evenSlots = 16384

// sameLaw reports whether both are exact rendezvous, or both the same variant of
// jump, so that a formula joins them.
func sameLaw(from, to *Table) bool {
	a, b := from.topo.Spec(), to.topo.Spec()
	switch {
	case from.kind == kindScore && to.kind == kindScore:
		return from.foreign.Score.SameRule(to.foreign.Score) && sameTexts(from.topo, to.topo)
	case from.classicJump() && to.classicJump():
		return true
	case from.compat() || to.compat():
		return false
	}
	return a.Algorithm == b.Algorithm && a.JumpVariant == b.JumpVariant
}

// classicJump reports whether the mapping is the published Jump, native or not.
func (t *Table) classicJump() bool {
	return t.kind == kindList || t.kind == kindJump && t.topo.Spec().JumpVariant == topology.JumpClassic
}

// sheet works the movement out by the chosen method.
func (c *comparison) sheet() *sheet {
	switch c.method {
	case MethodNone:
		return c.none()
	case MethodTable:
		return c.entries()
	case MethodEnumeration:
		return c.enumerate()
	case MethodArcs, MethodBreakpoints:
		return c.merged()
	case MethodFormula:
		switch c.to.kind {
		case kindJump, kindList:
			return jumpMovement(c.roster, c.from.buckets(c.roster.fromAt), c.to.buckets(c.roster.toAt), c.o.MaxFlows)
		}
		return hrwMovement(c.roster, c.o.MaxFlows)
	case MethodResidues:
		return residues(c.roster, c.from.moduloOwners(c.roster.fromAt), c.to.moduloOwners(c.roster.toAt), c.o.MaxFlows)
	case MethodIndependent:
		return c.independent()
	case MethodIdentical:
		s := c.sample()
		s.interval = nil
		return s
	}
	return c.sample()
}

// none is the movement where one side has no owners. Where nobody owned
// anything nothing can move; where nobody is left every key leaves its node.
func (c *comparison) none() *sheet {
	n := len(c.roster.ids)
	s := &sheet{roster: c.roster, total: 1, before: make([]float64, n), after: make([]float64, n), in: make([]float64, n), out: make([]float64, n)}
	if c.from != nil && c.from.owners > 0 {
		s.before = c.copyShares(c.from, c.roster.fromAt)
		s.moved, s.least, s.out = float64(c.from.copies()), float64(c.from.copies()), s.before
		return s
	}
	if c.to.owners > 0 {
		s.after = c.copyShares(c.to, c.roster.toAt)
	}
	return s
}

// independent is the law for mappings that know nothing of each other, with a
// sample beside it.
func (c *comparison) independent() *sheet {
	before, after := c.copyShares(c.from, c.roster.fromAt), c.copyShares(c.to, c.roster.toAt)
	sampled := c.sample()
	var s *sheet
	if c.from.copies() == 1 && c.to.copies() == 1 {
		s = independent(c.roster, before, after, c.o.MaxFlows)
	} else {
		s = independentSets(sampled, before, after)
	}
	ratio := sampled.moved / (sampled.total * float64(c.to.copies()))
	s.sample = &Sample{Keys: int(sampled.total), Ratio: ratio, Interval: *sampled.interval}
	return s
}

// independentSets is the law for sets of replicas: node i gains a key that it
// did not hold with probability after[i] * (1 - before[i]). Who hands to whom
// within a key has no closed form; those figures are the sample's.
func independentSets(sampled *sheet, before, after []float64) *sheet {
	s := *sampled
	s.flows = make([]flow, len(sampled.flows))
	for i, f := range sampled.flows {
		s.flows[i] = flow{f.from, f.to, f.amount / sampled.total}
	}
	s.needless, s.reordered = sampled.needless/sampled.total, sampled.reordered/sampled.total
	s.before, s.after, s.total, s.interval = before, after, 1, nil
	s.in, s.out = make([]float64, len(before)), make([]float64, len(before))
	s.moved, s.least, s.optimal = 0, 0, false
	for i, p := range before {
		q := after[i]
		s.in[i], s.out[i] = q*(1-p), p*(1-q)
		s.moved += s.in[i]
		s.least += max(0, q-p)
	}
	return &s
}
