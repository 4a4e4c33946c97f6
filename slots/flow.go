package slots

import (
	"cmp"
	"slices"

	"github.com/shardd/shardd/internal/splitmix"
)

// flow is an assignment of nodes to the cells of slots on its way to quotas. It
// is a flow in the network slot -> zone -> node: an entry costs 1 if the slot
// did not have that node before, so that the cheapest flow moves the fewest.
type flow struct {
	width  int
	cells  []uint16 // slot by slot; NoOwner: a place to fill
	before Rows     // what costs nothing
	quota  []int
	have   []int
	slots  [][]uint32 // by node: the slots that have it, in any order
	where  []uint32   // by cell: where its slot stands in the node's list
	dirty  []bool     // by slot: not just as before
	need   *shortage
	rule   rule
	picky  bool // the rule leaves only some nodes for a slot
	rng    *splitmix.Source
}

// rule says what a slot may hold.
type rule interface {
	// allows reports whether node in may take a place of slot s where node out
	// is now, or, if out is NoOwner, an empty one.
	allows(s int, out, in uint16) bool
	// choices returns the only nodes that slot s may hold; nil, for every slot
	// alike, if it may hold any.
	choices(s int) []uint16
}

// newFlow starts from cells, which it goes on to change. zone may be nil.
func newFlow(cells []uint16, width int, before Rows, quotas []int, zone []uint16, rng *splitmix.Source) *flow {
	n := len(quotas)
	f := &flow{width: width, cells: cells, before: before, quota: quotas, rng: rng,
		have: tally(n, cells), slots: make([][]uint32, n), where: make([]uint32, len(cells)), dirty: make([]bool, len(cells)/width)}
	all := make([]uint32, len(cells)) // one array for all lists; one that grows leaves it
	for i, c := range f.have {
		f.slots[i], all = all[:0:c], all[c:]
	}
	for s := range f.dirty {
		for j, o := range f.at(s) {
			if o != NoOwner {
				f.list(s*width+j, o)
			}
		}
		f.mark(s)
	}
	f.need = newShortage(f, zone)
	return f
}

// at returns the cells of slot s.
func (f *flow) at(s int) []uint16 { return f.cells[s*f.width:][:f.width] }

// mark notes whether slot s is just as before.
func (f *flow) mark(s int) {
	kept, had := 0, 0
	for _, row := range f.before {
		if o := row[s]; o != NoOwner {
			had++
			if slices.Contains(f.at(s), o) {
				kept++
			}
		}
	}
	f.dirty[s] = kept < had || kept < f.width
}

// over returns how many entries node i has above its quota.
func (f *flow) over(i int) int { return f.have[i] - f.quota[i] }

// list enters a cell's slot into its node's list.
func (f *flow) list(cell int, node uint16) {
	f.where[cell] = uint32(len(f.slots[node]))
	f.slots[node] = append(f.slots[node], uint32(cell/f.width))
}

// unlist takes a cell's slot out of its node's list; the last one fills the gap.
func (f *flow) unlist(cell int, node uint16) {
	list, k := f.slots[node], f.where[cell]
	last := int(list[len(list)-1])
	list[k] = uint32(last)
	f.where[last*f.width+slices.Index(f.at(last), node)] = k
	f.slots[node] = list[:len(list)-1]
}

// put places node in where out is in slot s.
func (f *flow) put(s int, out, in uint16) {
	cell := s*f.width + slices.Index(f.at(s), out)
	if out != NoOwner {
		f.unlist(cell, out)
		if f.have[out]--; f.have[out] < f.quota[out] {
			f.need.change(out, 1)
		}
	}
	f.cells[cell] = in
	f.list(cell, in)
	if f.have[in]++; f.have[in] <= f.quota[in] {
		f.need.change(in, -1)
	}
	f.mark(s)
}

// wanting returns the nodes below their quotas, in a shuffled order.
func (f *flow) wanting() []uint16 {
	var list []uint16
	for i := range f.quota {
		if f.over(i) < 0 {
			list = append(list, uint16(i))
		}
	}
	splitmix.Shuffle(f.rng, list)
	return list
}

// openSlots returns the slots with a place to fill, shuffled.
func (f *flow) openSlots() []uint32 {
	var open []uint32
	for s := range f.dirty {
		if f.dirty[s] && slices.Contains(f.at(s), NoOwner) {
			open = append(open, uint32(s))
		}
	}
	splitmix.Shuffle(f.rng, open)
	return open
}

// surplus lists the nodes above their quotas, once for each entry too many, shuffled.
func (f *flow) surplus() []uint16 {
	var list []uint16
	for i := range f.quota {
		for range f.over(i) {
			list = append(list, uint16(i))
		}
	}
	splitmix.Shuffle(f.rng, list)
	return list
}

// done reports whether every cell is filled and every quota met.
func (f *flow) done() bool {
	for i := range f.quota {
		if f.over(i) != 0 {
			return false
		}
	}
	return true
}

// shortage is what each node lacks, ready to draw nodes by it, from all or from
// those of one zone.
type shortage struct {
	*sums
	rng   *splitmix.Source
	order []uint16 // nodes, zone by zone
	place []int    // by node: where it is in order
	span  [][2]int // by zone: begin and end in order
}

func newShortage(f *flow, zone []uint16) *shortage {
	n := len(f.quota)
	s := &shortage{rng: f.rng, order: make([]uint16, n), place: make([]int, n), span: [][2]int{{0, n}}}
	for i := range s.order {
		s.order[i] = uint16(i)
	}
	if zone != nil {
		slices.SortStableFunc(s.order, func(a, b uint16) int { return cmp.Compare(zone[a], zone[b]) })
		s.span = make([][2]int, slices.Max(zone)+1)
	}
	lack := make([]int, n)
	for k, i := range s.order {
		s.place[i] = k
		lack[k] = max(0, -f.over(int(i)))
		if zone != nil {
			if z := &s.span[zone[i]]; z[1] == 0 {
				*z = [2]int{k, k + 1}
			} else {
				z[1] = k + 1
			}
		}
	}
	s.sums = newSums(lack)
	return s
}

// change notes that a node lacks d more.
func (s *shortage) change(node uint16, d int) { s.add(s.place[node], d) }

// draw returns a node by what it lacks; some node lacks something.
func (s *shortage) draw() uint16 { return s.order[s.find(int(s.rng.Below(uint64(s.total))))] }

// drawFrom is draw for the nodes of one zone; ok is false if none lacks anything.
func (s *shortage) drawFrom(zone uint16) (node uint16, ok bool) {
	begin, end := s.upTo(s.span[zone][0]), s.upTo(s.span[zone][1])
	if begin == end {
		return 0, false
	}
	return s.order[s.find(begin+int(s.rng.Below(uint64(end-begin))))], true
}
