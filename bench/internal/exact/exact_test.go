package exact

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shardd/shardd/bench/internal/page"
	"github.com/shardd/shardd/topology"
)

// Tables of one width, and names that do not repeat.
func TestBlocks(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Blocks() {
		if seen[b.Page+b.Name] {
			t.Errorf("%s %s is there twice", b.Page, b.Name)
		}
		seen[b.Page+b.Name] = true
		if b.Name != "changes" && b.Name != "zones" { // the others take longer
			continue
		}
		table, err := b.Table()
		if err != nil {
			t.Errorf("%s %s: %v", b.Page, b.Name, err)
		}
		if len(table.Rows) == 0 {
			t.Errorf("%s %s is empty", b.Page, b.Name)
		}
		for _, r := range table.Rows {
			if len(r) != len(table.Header) {
				t.Errorf("%s %s: %d cells under %d heads", b.Page, b.Name, len(r), len(table.Header))
			}
		}
	}
}

// What the packages promise, in the figures of the pages.
func TestMovementLaws(t *testing.T) {
	f := func(spec topology.Spec, replace float64) {
		t.Helper()
		r, err := changes(spec, 20)
		if err != nil {
			t.Fatal(err)
		}
		if r.needless != 0 || math.Abs(r.realised-1) > 1e-9 {
			t.Errorf("%s: needless %v, %v of the realised minimum", spec.Algorithm, r.needless, r.realised)
		}
		if got := r.of[3]; math.Abs(got-replace) > .2 {
			t.Errorf("%s: replacing costs %.2f of the minimum, want about %v", spec.Algorithm, got, replace)
		}
	}
	f(topology.Spec{Algorithm: topology.Ring}, 1.9)
	f(topology.Spec{Algorithm: topology.Rendezvous}, 1.9)
	f(topology.Spec{Algorithm: topology.Jump}, 1)
	f(topology.Spec{Algorithm: topology.Maglev}, 1)
	f(topology.Spec{Algorithm: topology.Slots}, 1)
}

func TestFilledAnewMovesMore(t *testing.T) {
	r, err := filledAnew(65537, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range r.of[:3] {
		if x < 1.4 || x > 1.7 {
			t.Errorf("change %d moves %.2f of the minimum; a Maglev table of 65537 and 100 nodes moves about 1.55", i, x)
		}
	}
	if r.needless < .5 || r.needless > .7 {
		t.Errorf("needless %.3f", r.needless)
	}
}

func TestZonesAreAtTheBound(t *testing.T) {
	table, err := SlotsZones()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		for i, cell := range row[1:] {
			if moves, bound, _ := strings.Cut(cell, " of "); moves != bound {
				t.Errorf("%s, %s: %s", row[0], table.Header[i+1], cell)
			}
		}
	}
}

// The counters of steps find the package's buckets, at the laws' cost.
func TestJumpWork(t *testing.T) {
	for _, n := range []int{1, 2, 10, 16, 17} {
		steps, values, err := jumpWork(n)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(steps-harmonic(n)) > .02 || values < 1 || values > 5./3+.01 {
			t.Errorf("%d buckets: %.3f steps, H_n = %.3f; %.3f values", n, steps, harmonic(n), values)
		}
	}
}

func TestSampledLooksRandom(t *testing.T) {
	row := sampled("x", 10, hashes(100_000), func(h uint64) int { return int(h % 10) })
	if ratio, err := strconv.ParseFloat(row[len(row)-1], 64); err != nil || math.Abs(ratio-1) > .08 {
		t.Errorf("row %v", row)
	}
	row = sampled("x", 10, hashes(100_000), func(h uint64) int { return int(h % 11 % 10) })
	if ratio, err := strconv.ParseFloat(row[len(row)-1], 64); err != nil || ratio < 2 {
		t.Errorf("a node with a double share: %v", row)
	}
}

func TestCompare(t *testing.T) {
	before, ids := []uint16{0, 0, 1, 1, 2, 2}, []string{"a", "b", "c"}
	after, next := []uint16{0, 1, 0, 0, 2, 0}, []string{"a", "c", "d"} // b leaves, d comes
	got := compare(before, ids, after, next, "b")
	want := difference{moved: 5, unchanged: 2, least: 3}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(difference{})); d != "" {
		t.Error(d)
	}
}

func TestLeastMove(t *testing.T) {
	got := leastMove([]string{"a", "b"}, []uint32{1, 1}, []string{"a", "b", "c"}, []uint32{1, 1, 2})
	if math.Abs(got-.5) > 1e-12 {
		t.Errorf("leastMove = %v, want .5", got)
	}
}

// Curves rise or fall as their laws say.
func TestCurves(t *testing.T) {
	measured, law, err := RendezvousCurve()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range measured {
		if p.X != law[i].X || math.Abs(p.Y/law[i].Y-1) > .25 {
			t.Errorf("%v slots: cv %.4f, law %.4f", p.X, p.Y, law[i].Y)
		}
	}
	peaks, err := SlotsCurve(1 << 14)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peaks {
		if p.Y < 1 || p.Y > 1+p.X/16384 {
			t.Errorf("%v nodes: peak %.4f", p.X, p.Y)
		}
	}
}

func TestFigures(t *testing.T) {
	var table page.Table
	table.Add(f(1.2345, 2), percent(.01234, 1), count(65537))
	if d := cmp.Diff([][]string{{"1.23", "1.2 %", "65537"}}, table.Rows); d != "" {
		t.Error(d)
	}
	if got := harmonic(4); math.Abs(got-25./12) > 1e-12 {
		t.Errorf("harmonic(4) = %v", got)
	}
	if got := multinomialPeak(1000, 1_000_000); math.Abs(got-1.102) > .003 {
		t.Errorf("multinomialPeak = %v, want about 1.102", got)
	}
}
