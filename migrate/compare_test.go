package migrate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

func TestCompare(t *testing.T) {
	p := plan(t, topology.Spec{Algorithm: topology.Ring, VNodes: 40}, []uint32{1, 1, 1, 1}, []uint32{1, 1, 1, 1, 1})
	c, err := Compare(p.From, p.To)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range c.Rows {
		names = append(names, r.Algorithm)
		if r.Movement == nil {
			t.Errorf("%s: refused: %s", r.Algorithm, r.Note)
			continue
		}
		if math.Abs(r.Movement.Minimum-0.2) > 1e-9 || r.PeakBefore < 1 || r.PeakAfter < 1 {
			t.Errorf("%s: %+v, %+v", r.Algorithm, r, r.Movement)
		}
		switch r.Algorithm {
		case "jump", "rendezvous", "maglev", "slots":
			if math.Abs(r.Movement.Excess) > 1e-3 || r.Movement.BetweenUnchanged != 0 {
				t.Errorf("%s moves more than it must: %+v", r.Algorithm, r.Movement)
			}
		case Modulo:
			if math.Abs(r.Movement.Ratio-0.8) > 1e-9 || math.Abs(r.Movement.BetweenUnchanged-0.6) > 1e-9 {
				t.Errorf("modulo 4 to 5: %+v, want 0.8 moved, 0.6 of it between unchanged nodes", r.Movement)
			}
		}
		if r.Planned != (r.Algorithm == "ring") {
			t.Errorf("%s: planned is %t", r.Algorithm, r.Planned)
		}
	}
	if diff := cmp.Diff([]string{"ring", "jump", "rendezvous", "maglev", "slots", "modulo"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.Report.Summary, *c.Rows[0].Movement); diff != "" {
		t.Errorf("the row of the plan is not the plan (-want +got):\n%s", diff)
	}
}

// TestCompareChangeOfAlgorithm: no row is the plan then, and each compares its
// own algorithm with itself.
func TestCompareChangeOfAlgorithm(t *testing.T) {
	from := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring, VNodes: 40}, 1, 1, 1))
	to := mustNext(t, from, declared(topology.Spec{Algorithm: topology.Slots, SlotCount: 4096}, 1, 1, 1, 1))
	c, err := Compare(Side{Name: "a", Table: from}, Side{Name: "b", Table: to})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Rows {
		if r.Planned {
			t.Errorf("%s: planned", r.Algorithm)
		}
		if r.Algorithm != Modulo && (r.Movement.Ratio > 0.35 || r.Movement.Remapped != 0) {
			t.Errorf("%s: %+v", r.Algorithm, r.Movement)
		}
	}
}

// TestCompareForeign: the foreign mapping of a side has the first row.
func TestCompareForeign(t *testing.T) {
	nginx := topology.Spec{Compat: topology.Foreign{Mode: topology.ModeNginx}}
	from := mustNext(t, nil, declared(nginx, 1, 1, 1))
	to := mustNext(t, from, declared(nginx, 1, 1, 1, 1))
	native := mustNext(t, from, declared(topology.Spec{Algorithm: topology.Ring}, 1, 1, 1, 1))
	for _, target := range []*placement.Table{to, native} {
		c, err := Compare(Side{Name: "a", Table: from}, Side{Name: "b", Table: target})
		if err != nil {
			t.Fatal(err)
		}
		row := c.Rows[0]
		if row.Algorithm != "nginx" || row.Planned != (target == to) || row.Movement.BetweenUnchanged != 0 || row.Movement.Ratio < .2 || row.Movement.Ratio > .3 {
			t.Errorf("%+v, %+v", row, row.Movement)
		}
		if len(c.Rows) != 7 || c.Rows[1].Algorithm != "ring" {
			t.Errorf("%d rows", len(c.Rows))
		}
	}
}

// TestCompareRefusedRow: an algorithm that cannot hold the nodes says so.
func TestCompareRefusedRow(t *testing.T) {
	spec := topology.Spec{Algorithm: topology.Rendezvous}
	p := plan(t, spec, []uint32{1, 1}, []uint32{1, 1_000_000})
	c, err := Compare(p.From, p.To)
	if err != nil {
		t.Fatal(err)
	}
	ring := c.Rows[0]
	if ring.Movement != nil || !strings.Contains(ring.Note, "ring points") {
		t.Errorf("got %+v", ring)
	}
	if c.Rows[5].Note == "" || c.Rows[5].PeakAfter < 100_000 {
		t.Errorf("modulo with weights: %+v", c.Rows[5])
	}
}

// TestModulo compares the closed form with counting.
func TestModulo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := func(label string) topology.Declared {
			d := topology.Declared{Cluster: "c", Spec: topology.Spec{Algorithm: topology.Rendezvous}}
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 1, 10, rapid.ID[int]).Draw(t, label) {
				d.Nodes = append(d.Nodes, topology.Node{ID: fmt.Sprintf("n%02d", i), Weight: rapid.Uint32Range(1, 2).Draw(t, "weight")})
			}
			return d
		}
		from, to := mustNext(t, nil, gen("before")).Topology(), mustNext(t, nil, gen("after")).Topology()
		got := moduloRow(from, to).Movement
		n, m := from.Len(), to.Len()
		moved, needless := 0, 0
		for x := range n * m {
			a, b := from.Node(x%n), to.Node(x%m)
			if a.ID == b.ID {
				continue
			}
			moved++
			same := func(id string) bool {
				i, j := from.Index(id), to.Index(id)
				return i >= 0 && j >= 0 && from.Node(i).Weight == to.Node(j).Weight
			}
			if same(a.ID) && same(b.ID) {
				needless++
			}
		}
		want := placement.Summary{Ratio: float64(moved) / float64(n*m), BetweenUnchanged: float64(needless) / float64(n*m)}
		if math.Abs(got.Ratio-want.Ratio) > 1e-12 || math.Abs(got.BetweenUnchanged-want.BetweenUnchanged) > 1e-12 {
			t.Fatalf("%d to %d nodes: got %+v, counted %+v", n, m, got, want)
		}
		if got.MinimumRealised > got.Ratio+1e-12 {
			t.Fatalf("ratio %g below the minimum %g of its own shares", got.Ratio, got.MinimumRealised)
		}
	})
}

func TestModuloWithoutOwners(t *testing.T) {
	some := mustNext(t, nil, declared(topology.Spec{Algorithm: topology.Ring}, 1, 1))
	none := mustNext(t, some, declared(topology.Spec{Algorithm: topology.Ring}, 0, 0))
	if r := moduloRow(some.Topology(), none.Topology()); r.Movement != nil || !strings.Contains(r.Note, "without owners") {
		t.Errorf("got %+v", r)
	}
}
