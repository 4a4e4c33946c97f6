package slots_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardd/shardd/slots"
)

// fleet is a table with its nodes, changed step by step as a topology is.
type fleet struct {
	weights []uint32
	zones   []uint16
	rows    slots.Rows
}

// change moves to other weights and checks what holds for every table.
func (f *fleet) change(t rapid.TB, weights []uint32, zones []uint16, count, replicas int) slots.Report {
	t.Helper()
	ids, _ := names(len(weights))
	next, report := mustUpdate(t, f.rows, ids, weights, zones, count, replicas)
	if count <= 1000 {
		if again, _ := mustUpdate(t, f.rows, ids, weights, zones, count, replicas); !equal(next, again) {
			t.Fatalf("the same update twice gave two tables")
		}
	}
	checkTable(t, next, weights, zones, count, replicas, report)
	if f.rows.Count() == count {
		checkReport(t, f.rows, next, report)
	}
	f.weights, f.zones, f.rows = slices.Clone(weights), zones, next
	return report
}

func equal(a, b slots.Rows) bool {
	return slices.EqualFunc(a, b, func(x, y []uint16) bool { return slices.Equal(x, y) })
}

func checkTable(t rapid.TB, rows slots.Rows, weights []uint32, zones []uint16, count, replicas int, report slots.Report) {
	t.Helper()
	n := len(weights)
	owners := 0
	for _, w := range weights {
		if w > 0 {
			owners++
		}
	}
	copies := min(replicas, owners)
	if len(rows) != replicas || rows.Count() != count || report.Copies != copies {
		t.Fatalf("%d rows of %d, %d copies; want %d of %d, %d copies", len(rows), rows.Count(), report.Copies, replicas, count, copies)
	}
	least, most := zoneLimits(weights, zones, copies)
	for s := range count {
		inZone := map[uint16]int{}
		for j, row := range rows {
			if (row[s] == none) != (j >= copies) {
				t.Fatalf("slot %d row %d: %d, with %d copies", s, j, row[s], copies)
			}
			if row[s] != none && zones != nil {
				inZone[zones[row[s]]]++
			}
		}
		for z, lo := range least {
			if c := inZone[z]; c < lo || c > most[z] {
				t.Fatalf("slot %d has %d copies in zone %d, want %d to %d", s, c, z, lo, most[z])
			}
		}
	}
	if owners == 0 {
		return
	}
	mustNew(t, n, rows) // distinct nodes
	if n > 1000 {
		return // the slow check of shares
	}
	shares := waterFill(weights, zones, count, copies, least, most)
	for i, c := range tally(n, rows...) {
		if math.Abs(float64(c)-shares[i]) > 1-1e-9 && math.Abs(float64(c)-shares[i]) > 1e-6 || weights[i] > 0 && c == 0 {
			t.Fatalf("node %d of weight %d holds %d copies, share %.4f", i, weights[i], c, shares[i])
		}
	}
}

// zoneLimits is the rule for the copies of a slot in each zone: the smallest
// number c for all that suffices, and c - 1 wherever a zone has so many nodes.
func zoneLimits(weights []uint32, zones []uint16, copies int) (least, most map[uint16]int) {
	if zones == nil {
		return nil, nil
	}
	nodes := map[uint16]int{}
	for i, z := range zones {
		if weights[i] > 0 {
			nodes[z]++
		}
	}
	for c := 1; ; c++ {
		least, most = map[uint16]int{}, map[uint16]int{}
		room := 0
		for z, k := range nodes {
			least[z], most[z] = min(c-1, k), min(c, k)
			room += most[z]
		}
		if room >= copies {
			return least, most
		}
	}
}

// waterFill finds the shares by bisection on two levels: a rate for all zones,
// and one for each zone whose sum that rate would take beyond its limits.
func waterFill(weights []uint32, zones []uint16, count, copies int, least, most map[uint16]int) []float64 {
	at := func(rate float64, i int) float64 { return min(float64(count), rate*float64(weights[i])) }
	sum := func(rate float64, z uint16) float64 {
		total := 0.0
		for i := range weights {
			if zones == nil || zones[i] == z {
				total += at(rate, i)
			}
		}
		return total
	}
	zone := func(rate float64, z uint16) float64 {
		if zones == nil {
			return sum(rate, z)
		}
		return min(max(sum(rate, z), float64(least[z]*count)), float64(most[z]*count))
	}
	all := map[uint16]int{0: 0}
	if zones != nil {
		all = most
	}
	rate := bisect(float64(count*copies), func(rate float64) float64 {
		total := 0.0
		for z := range all {
			total += zone(rate, z)
		}
		return total
	})
	shares := make([]float64, len(weights))
	for z := range all {
		own := bisect(zone(rate, z), func(r float64) float64 { return sum(r, z) })
		for i := range weights {
			if zones == nil || zones[i] == z {
				shares[i] = at(own, i)
			}
		}
	}
	return shares
}

// bisect returns the least rate at which f, which does not fall, reaches want.
func bisect(want float64, f func(float64) float64) float64 {
	lo, hi := 0.0, 1e7
	for range 200 {
		if mid := (lo + hi) / 2; f(mid) < want-1e-9 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func checkReport(t rapid.TB, prev, next slots.Rows, report slots.Report) {
	t.Helper()
	moves, primaries := 0, 0
	for s := range next.Count() {
		for _, row := range next {
			if row[s] != none && !slices.ContainsFunc(prev, func(r []uint16) bool { return r[s] == row[s] }) {
				moves++
			}
		}
		if next[0][s] != none && (len(prev) == 0 || prev[0][s] != next[0][s]) {
			primaries++
		}
	}
	if moves != report.Moves || primaries != report.PrimaryMoves || report.Moves < report.Bound || report.PrimaryMoves+report.PrimaryMissing < report.PrimaryBound {
		t.Fatalf("moved %d copies and %d primaries, report %+v", moves, primaries, report)
	}
}

func TestUpdateLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		count := rapid.IntRange(60, 200).Draw(t, "count")
		replicas := rapid.IntRange(1, 5).Draw(t, "replicas")
		kinds := rapid.IntRange(0, 5).Draw(t, "zones")
		weight := rapid.SampledFrom([]uint32{0, 1, 1, 2, 5})
		var f fleet
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			weights, zones := make([]uint32, n), cycle(n, kinds)
			for i := range weights {
				weights[i] = weight.Draw(t, "weight")
				if kinds > 0 && rapid.IntRange(0, 9).Draw(t, "elsewhere") == 0 {
					zones[i] = uint16(rapid.IntRange(0, kinds-1).Draw(t, "zone"))
				}
			}
			report := f.change(t, weights, zones, count, replicas)
			if report.ZonesRelaxed != (report.PerZone > 1) || replicas == 1 && report.Moves != report.Bound {
				t.Fatalf("report %+v", report)
			}
			again := f.change(t, weights, zones, count, replicas)
			if again.Moves != 0 || again.PrimaryMoves != 0 {
				t.Fatalf("a second plan moves %+v", again)
			}
			checkOrder(t, f.rows, weights, rapid.Uint64().Draw(t, "hash"))
		}
	})
}

// checkOrder: the order begins with the slot's rows, names each owner once, and a
// shorter list is the beginning of a longer one.
func checkOrder(t rapid.TB, rows slots.Rows, weights []uint32, h uint64) {
	t.Helper()
	table := mustNew(t, len(weights), rows)
	owners := 0
	for _, w := range weights {
		if w > 0 {
			owners++
		}
	}
	all := table.AppendReplicas([]int{-7}, h, 1<<20)[1:]
	sorted := slices.Sorted(slices.Values(all))
	if len(slices.Compact(sorted)) != owners || len(all) != owners || table.Len() != len(weights) || table.Size() != rows.Count() {
		t.Fatalf("order %v of %d owners", all, owners)
	}
	for j := range min(len(rows), owners) {
		if all[j] != int(rows[j][table.Slot(h)]) {
			t.Fatalf("order %v, row %d has %d", all, j, rows[j][table.Slot(h)])
		}
	}
	if want := append(all, -1)[0]; table.Locate(h) != want {
		t.Fatalf("Locate = %d, order %v", table.Locate(h), all)
	}
	for n := range owners + 1 {
		if got := table.AppendReplicas(nil, h, n); !slices.Equal(got, all[:n]) {
			t.Fatalf("%d replicas %v, order %v", n, got, all)
		}
	}
}

// Whatever the change, no flow that meets the quotas moves fewer copies: checked
// against a slow minimum-cost flow on the whole network.
func TestMovesAreFewest(t *testing.T) {
	beyond := 0
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.IntRange(2, 6).Draw(t, "zones")
		n := rapid.IntRange(kinds, 12).Draw(t, "nodes")
		count := rapid.IntRange(36, 60).Draw(t, "count")
		zones, apart := cycle(n, kinds), cycle(n, kinds)
		if kinds == 6 { // no zones: as if every node had one of its own
			zones, apart = nil, cycle(n, n)
		}
		var f fleet
		for range 4 {
			replicas := rapid.IntRange(1, kinds).Draw(t, "replicas")
			weights := make([]uint32, n)
			for i := range weights {
				weights[i] = rapid.Uint32Range(0, 3).Draw(t, "weight")
			}
			prev := f.rows
			report := f.change(t, weights, zones, count, replicas)
			if prev == nil || report.ZonesRelaxed || report.Copies < replicas {
				continue
			}
			if least := fewestMoves(prev, f.rows, apart); report.Moves != least {
				t.Fatalf("%d moves, %d are enough", report.Moves, least)
			}
			if report.Moves > report.Bound {
				beyond++
			}
		}
	})
	t.Logf("%d updates in which zones and distinct nodes force more than sum max(0, q - old)", beyond)
}

// Three hundred random changes without replicas move exactly the bound.
func TestThreeHundredChanges(t *testing.T) {
	_, weights := names(100)
	f := &fleet{}
	f.change(t, weights, nil, slots.DefaultCount, 1)
	moved, bound, h := 0, 0, uint64(1)
	for range 300 {
		h = h*6364136223846793005 + 1442695040888963407
		weights[h>>32%100] = uint32(h>>60) % 4
		r := f.change(t, weights, nil, slots.DefaultCount, 1)
		moved, bound = moved+r.Moves, bound+r.Bound
		if r.PrimaryMoves != r.Moves || r.PrimaryMissing != 0 {
			t.Fatalf("report %+v", r)
		}
	}
	if moved != bound {
		t.Errorf("moved %d, bound %d", moved, bound)
	}
	t.Logf("%.4f key spaces moved", float64(moved)/slots.DefaultCount)
}

func TestReplicasDoNotAllocate(t *testing.T) {
	ids, weights := names(100)
	table := mustNew(t, 100, mustBuild(t, ids, weights, cycle(100, 4), slots.DefaultCount, 3))
	dst := make([]int, 0, 100)
	for _, n := range []int{1, 3, 10, 100} {
		if got := testing.AllocsPerRun(100, func() { dst = table.AppendReplicas(dst[:0], 77, n) }); got != 0 {
			t.Errorf("%d replicas: %v allocations", n, got)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1, 2, 0}, uint8(3), uint8(2), uint8(2))
	f.Add([]byte{255, 255}, uint8(1), uint8(1), uint8(0))
	f.Add([]byte{}, uint8(0), uint8(16), uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, n, width, kinds uint8) {
		if width == 0 || len(raw)/int(width) > 300 {
			return
		}
		count := len(raw) / int(width)
		var rows slots.Rows
		for j := range int(width) {
			row := make([]uint16, count)
			for s := range row {
				if row[s] = uint16(raw[j*count+s]); raw[j*count+s] == 255 {
					row[s] = none
				}
			}
			rows = append(rows, row)
		}
		ids, weights := names(int(n))
		zones := cycle(int(n), int(kinds))
		if _, _, err := slots.Update(rows, ids, weights, zones, count, int(width)); err == nil {
			(&fleet{rows: rows}).change(t, weights, zones, count, int(width))
		}
		if table, err := slots.New(int(n), rows); err == nil {
			for _, o := range table.AppendReplicas(nil, 1<<62, 300) {
				if o < 0 || o >= int(n) {
					t.Fatalf("replica %d of %d nodes", o, n)
				}
			}
		}
	})
}
