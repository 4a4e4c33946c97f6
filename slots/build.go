package slots

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/internal/quota"
	"github.com/shardd/shardd/internal/splitmix"
)

// Report is what an Update changed, and what no update could have avoided.
type Report struct {
	// Moves is the number of copies of slots that a node gets and did not hold.
	Moves int
	// Bound is sum max(0, q_i - old_i) over the nodes' quotas q_i and the copies
	// old_i that they held. No table with these quotas moves fewer, so Moves ==
	// Bound proves that the update is optimal. Moves is the fewest in any case,
	// but more than Bound where zones and distinct nodes leave no direct way, as
	// when a node may only come to slots that no node with too many is in.
	Bound int
	// PrimaryMoves is the number of slots whose primary changed, PrimaryBound
	// the same bound for them. A primary is chosen from the slot's own copies,
	// so PrimaryMoves may be above it, and counts of primaries off their quotas
	// by PrimaryMissing in all.
	PrimaryMoves, PrimaryBound, PrimaryMissing int
	// Copies is the number of copies of each slot: replicas, or the number of
	// nodes with weight if that is smaller.
	Copies int
	// PerZone is the largest number of copies of a slot in one zone: 1 while
	// there are enough zones, 0 without zones.
	PerZone int
	// ZonesRelaxed says that there are fewer zones than copies, so that some
	// zone holds several copies of a slot (PerZone at most, and no zone two more
	// than another that could hold them).
	ZonesRelaxed bool
}

// Build returns the table of nodes without a past: count slots with replicas
// copies each. ids must be strictly ascending; weights run parallel, and a node
// of weight 0 owns nothing. zones gives each node's zone as any number, equal
// for nodes of one zone; nil asks for no zones.
//
// Build refuses a count outside 1..65536 (ErrCount), replicas outside 1..16, and
// a count that leaves some node of weight > 0 without a slot (ErrCount); more
// nodes than slots are an instance of that.
//
// The result is a function of the arguments alone and is frozen. Sets of copies
// are drawn at random by share, so that the slots of a node have many different
// partners and its load spreads when it leaves. Cost: O(count x (16 + replicas
// log N)).
func Build(ids []string, weights []uint32, zones []uint16, count, replicas int) (Rows, error) {
	rows, _, err := Update(nil, ids, weights, zones, count, replicas)
	return rows, err
}

// Update returns the table that follows prev when the nodes are now ids with
// weights and zones. prev holds indices into the new ids, NoOwner where a copy's
// node is gone, and is not changed. The arguments are refused for the same
// reasons as Build's; an error changes nothing. replicas may differ from the
// number of rows before. A count that differs takes each new slot from the old
// slot that holds its middle, and Report counts from there.
//
// Quotas are the exact shares rounded as package quota says: floors of 0 first,
// then nodes that hold more than their floor, then largest fractions. A share is
// proportional to weight as far as a node holds a slot once and zones keep their
// limits; what they cannot hold falls to the others.
//
// Which copies move is drawn at random, with a seed from ids and weights: a node
// above its quota gives up any of its slots, primaries as far as it has too many
// of them; a slot with a place to fill takes a node below its quota by what that
// node still needs. Only where these direct moves do not suffice are copies
// moved along longer paths, at no more cost in sum than the least possible.
//
// Rows: a copy that stays keeps its row, a new one takes the place of one that
// left. Primaries follow weights like the copies: every node is primary for its
// share of the slots rounded down or up, as near as the sets of copies allow,
// with the fewest changes; where another copy becomes primary the two swap rows.
func Update(prev Rows, ids []string, weights []uint32, zones []uint16, count, replicas int) (Rows, Report, error) {
	if err := checkUpdate(prev, ids, weights, zones, count, replicas); err != nil {
		return nil, Report{}, err
	}
	owners := len(byWeight(weights))
	if owners == 0 {
		return unowned(count, replicas), Report{}, nil
	}
	old := held(prev.resized(count), weights)
	p, err := newPlan(ids, weights, zones, count, min(replicas, owners), old)
	if err != nil {
		return nil, Report{}, err
	}
	rng := seed(ids, weights, count)
	copies := assign(p, old, &rng)
	lead, missing := choosePrimaries(p, old, copies, &rng)
	rows := arrange(p, old, copies, lead, replicas)
	return rows, p.report(old, rows, missing), nil
}

func checkShape(count, replicas int) error {
	if count < 1 || count > MaxCount {
		return fmt.Errorf("%w: %d; want 1 to %d, usually %d", ErrCount, count, MaxCount, DefaultCount)
	}
	if replicas < 1 || replicas > MaxReplicas {
		return fmt.Errorf("slots: %d replicas; want 1 to %d", replicas, MaxReplicas)
	}
	return nil
}

func checkUpdate(prev Rows, ids []string, weights []uint32, zones []uint16, count, replicas int) error {
	if err := checkShape(count, replicas); err != nil {
		return err
	}
	if err := quota.CheckNodes("slots", ids, weights); err != nil {
		return err
	}
	if zones != nil && len(zones) != len(ids) {
		return fmt.Errorf("slots: %d ids but %d zones; give one zone a node, or none at all", len(ids), len(zones))
	}
	return prev.check(len(ids))
}

func unowned(count, replicas int) Rows {
	rows := make(Rows, replicas)
	for j := range rows {
		rows[j] = slices.Repeat([]uint16{NoOwner}, count)
	}
	return rows
}

// resized returns rows of count slots, each the old slot that holds its middle.
func (r Rows) resized(count int) Rows {
	if r.Count() == count || r.Count() == 0 {
		return r
	}
	out := unowned(count, len(r))
	for j, row := range r {
		for s := range count {
			out[j][s] = row[(2*int64(s)+1)*int64(len(row))/(2*int64(count))]
		}
	}
	return out
}

// held returns rows without the entries of nodes that own nothing now.
func held(r Rows, weights []uint32) Rows {
	out := make(Rows, len(r))
	for j, row := range r {
		out[j] = slices.Clone(row)
		for s, o := range row {
			if o != NoOwner && weights[o] == 0 {
				out[j][s] = NoOwner
			}
		}
	}
	return out
}

// seed draws from what the update is asked for, so that one after the other does
// not treat the same slots alike.
func seed(ids []string, weights []uint32, count int) splitmix.Source {
	s := uint64(count)
	for i, id := range ids {
		s = splitmix.Mix(s ^ xxhash.Sum64String(id) + uint64(weights[i]))
	}
	return splitmix.Source(s)
}

// tally counts the entries of each of n nodes.
func tally(n int, rows ...[]uint16) []int {
	c := make([]int, n)
	for _, row := range rows {
		for _, o := range row {
			if o != NoOwner {
				c[o]++
			}
		}
	}
	return c
}

func newPlan(ids []string, weights []uint32, zones []uint16, count, width int, old Rows) (*plan, error) {
	p := &plan{count: count, width: width}
	if zones != nil {
		p.setZones(weights, zones)
	}
	if owners := len(byWeight(weights)); owners > count {
		return nil, fmt.Errorf("%w: %d nodes with weight but %d slots; take at least %d slots", ErrCount, owners, count, owners)
	}
	if err := p.setQuotas(ids, weights, old); err != nil {
		return nil, err
	}
	return p, nil
}

// setQuotas rounds the shares of copies and of primaries. Where nodes have equal
// claims to a unit, those that hold fewer primaries get the copy, and those that
// gain copies get the primary: whoever takes a copy can become primary there.
func (p *plan) setQuotas(ids []string, weights []uint32, old Rows) error {
	n := len(ids)
	had, led, tie := tally(n, old...), tally(n, old.first()), []int(nil)
	if p.width > 1 {
		tie = make([]int, n)
		for i, c := range led {
			tie[i] = -c
		}
	}
	shares, bounds := p.shares(weights)
	p.quotas = quota.Round(shares, p.count*p.width, quota.Given{Old: had, Tie: tie, Group: p.zone, Bounds: bounds})
	if i, bad := quota.Starved(p.quotas, weights); bad {
		return fmt.Errorf("%w: node %q of weight %d would hold none of %d slots; raise the weight, set it to 0, or take more slots (up to %d)", ErrCount, ids[i], weights[i], p.count, MaxCount)
	}
	for i := range tie {
		tie[i] = p.quotas[i] - had[i]
	}
	p.primary = quota.Round(quota.Proportional(p.count, weights), p.count, quota.Given{Old: led, Tie: tie})
	return nil
}

// first returns the primaries, nil if there are no rows.
func (r Rows) first() []uint16 {
	if len(r) == 0 {
		return nil
	}
	return r[0]
}

// setZones numbers the zones of nodes with weight without gaps and sets limits.
func (p *plan) setZones(weights []uint32, zones []uint16) {
	number := map[uint16]uint16{}
	var nodes []int
	p.zone = make([]uint16, len(zones))
	for i, z := range zones {
		if weights[i] == 0 {
			continue
		}
		k, known := number[z]
		if !known {
			k = uint16(len(nodes))
			number[z], nodes = k, append(nodes, 0)
		}
		p.zone[i] = k
		nodes[k]++
	}
	p.limits = apart(nodes, p.width)
	for _, l := range p.limits {
		p.owed += l.Lo
	}
}

func (p *plan) report(old, rows Rows, missing int) Report {
	n := len(p.quotas)
	r := Report{Copies: p.width, PrimaryMissing: missing, Bound: quota.Bound(p.quotas, tally(n, old...))}
	first := old.first()
	r.PrimaryBound = quota.Bound(p.primary, tally(n, first))
	for _, l := range p.limits {
		r.PerZone = max(r.PerZone, l.Hi)
	}
	r.ZonesRelaxed = r.PerZone > 1
	for s := range p.count {
		if first == nil || first[s] != rows[0][s] {
			r.PrimaryMoves++
		}
		for _, row := range rows[:p.width] {
			if !old.holds(s, row[s]) {
				r.Moves++
			}
		}
	}
	return r
}

// holds reports whether slot s has a copy on a node.
func (r Rows) holds(s int, node uint16) bool {
	for _, row := range r {
		if row[s] == node {
			return true
		}
	}
	return false
}
