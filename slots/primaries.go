package slots

import (
	"slices"

	"github.com/shardd/shardd/internal/splitmix"
)

// choosePrimaries returns the primary of every slot, one of its copies, and by
// how many the nodes miss their quotas of primaries in all.
func choosePrimaries(p *plan, old Rows, copies []uint16, rng *splitmix.Source) (lead []uint16, missing int) {
	if p.width == 1 {
		return copies, 0
	}
	lead = slices.Repeat([]uint16{NoOwner}, p.count)
	before := Rows{slices.Clone(lead)}
	if len(old) > 0 {
		for s, o := range old[0] {
			if o != NoOwner && slices.Contains(copies[s*p.width:][:p.width], o) {
				lead[s], before[0][s] = o, o
			}
		}
	}
	f := newFlow(lead, 1, before, p.primary, nil, rng)
	f.rule, f.picky = &leadRule{copies, p.width}, true
	f.elect()
	f.depose()
	f.augment(anyCost)
	for s, o := range lead {
		if o == NoOwner { // no way within the sets: the copy with the fewest too many
			f.put(s, NoOwner, slices.MinFunc(f.rule.choices(s), func(a, b uint16) int { return f.over(int(a)) - f.over(int(b)) }))
		}
	}
	for i := range p.primary {
		missing += max(0, -f.over(i))
	}
	return lead, missing
}

// leadRule is the rule for primaries: one of the slot's copies.
type leadRule struct {
	copies []uint16
	width  int
}

func (r *leadRule) choices(s int) []uint16 { return r.copies[s*r.width:][:r.width] }

func (r *leadRule) allows(s int, out, in uint16) bool {
	return out != in && slices.Contains(r.choices(s), in)
}

// elect gives slots without a primary the copy whose node lacks the largest part
// of its quota.
func (f *flow) elect() {
	for _, s := range f.openSlots() {
		best := uint16(NoOwner)
		for _, b := range f.rule.choices(int(s)) {
			if f.over(int(b)) < 0 && (best == NoOwner || f.lacksMore(b, best)) {
				best = b
			}
		}
		if best != NoOwner {
			f.put(int(s), NoOwner, best)
		}
	}
}

// lacksMore reports whether a lacks a larger part of its quota than b does.
func (f *flow) lacksMore(a, b uint16) bool {
	return int64(f.over(int(a)))*int64(f.quota[b]) < int64(f.over(int(b)))*int64(f.quota[a])
}

// depose takes slots from nodes that are primary too often, where another copy's
// node is primary too seldom.
func (f *flow) depose() {
	for i := range f.quota {
		list := slices.Clone(f.slots[i])
		splitmix.Shuffle(f.rng, list)
		for _, s := range list {
			if f.over(i) <= 0 {
				break
			}
			for _, b := range f.rule.choices(int(s)) {
				if f.over(int(b)) < 0 {
					f.put(int(s), uint16(i), b)
					break
				}
			}
		}
	}
}

// arrange puts the copies of every slot in rows, the primary first: a copy that
// was there keeps its row, new ones take the rows left over, and then the
// primary swaps with what stands in row 0.
func arrange(p *plan, old Rows, copies, lead []uint16, replicas int) Rows {
	rows := unowned(p.count, replicas)
	var fresh []uint16
	for s := range p.count {
		set := copies[s*p.width:][:p.width]
		fresh = fresh[:0]
		for _, o := range set {
			if j := old.row(s, o); j >= 0 && j < p.width {
				rows[j][s] = o
			} else {
				fresh = append(fresh, o)
			}
		}
		for j := 0; len(fresh) > 0; j++ {
			if rows[j][s] == NoOwner {
				rows[j][s], fresh = fresh[0], fresh[1:]
			}
		}
		j := rows.row(s, lead[s])
		rows[0][s], rows[j][s] = rows[j][s], rows[0][s]
	}
	return rows
}

// row returns the row in which slot s has node, -1 if in none.
func (r Rows) row(s int, node uint16) int {
	return slices.IndexFunc(r, func(row []uint16) bool { return row[s] == node })
}
