package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shardd/shardd/topology"
)

// The JSON form is what "migrate plan -o json" prints and stores keep.
func TestReportJSON(t *testing.T) {
	spec := specOf("slots:4096")
	r := movement(t, first(t, spec, someNodes(3)), after(t, first(t, spec, someNodes(3)), spec, someNodes(4)))
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(got)+"\n")
	var back Report
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("report read back (-want +got):\n%s", d)
	}
}

func TestFirstVersion(t *testing.T) {
	for _, spec := range allFive() {
		table := first(t, spec, someNodes(4))
		r := movement(t, nil, table)
		if r.Cause != CauseCreated || r.Ratio != 0 || r.Minimum != 0 || r.Excess != 0 || r.Method != MethodNone || r.Interval != nil {
			t.Errorf("%s: first version is reported as %+v", spec.Algorithm, r.Summary)
		}
		total := 0.0
		for _, n := range r.Nodes {
			total += n.After
		}
		if len(r.Nodes) != 4 || math.Abs(total-1) > 1e-12 {
			t.Errorf("%s: first version: shares %+v", spec.Algorithm, r.Nodes)
		}
	}
}

// From no owners nothing moves; to no owners everything leaves.
func TestEmptyVersions(t *testing.T) {
	for _, spec := range allFive() {
		none := first(t, spec, nil)
		some := after(t, none, spec, someNodes(2))
		if r := movement(t, none, some); r.Ratio != 0 || r.Minimum != 0 || r.Cause != CauseAdded {
			t.Errorf("%s: from no nodes: %+v, cause %q", spec.Algorithm, r.Summary, r.Cause)
		}
		if r := movement(t, some, after(t, some, spec, nil)); r.Ratio != 1 || r.Minimum != 1 || r.Nodes[0].Out != r.Nodes[0].Before {
			t.Errorf("%s: to no nodes: %+v", spec.Algorithm, r)
		}
		if r := movement(t, none, after(t, none, spec, nil)); r.Ratio != 0 || r.Minimum != 0 {
			t.Errorf("%s: nothing to nothing: %+v", spec.Algorithm, r.Summary)
		}
	}
}

// Addresses, labels, states that own alike and load bounds move no key and keep
// the mapping digest.
func TestDetailsMoveNothing(t *testing.T) {
	for _, spec := range []string{"ring", "jump", "rendezvous", "maglev:251", "slots:1024", "ring r3 zones", "rendezvous r3 zones", "slots:1024 r3 zones"} {
		t.Run(spec, func(t *testing.T) {
			nodes := zonedNodes(7, 3)
			a := first(t, specOf(spec), nodes)
			for i := range nodes {
				nodes[i].Addr, nodes[i].State = fmt.Sprintf("10.0.0.%d:1", i), topology.StateDown
			}
			nodes = append(nodes, topology.Node{ID: "spare", Weight: 3, State: topology.StateJoining})
			other := specOf(spec)
			other.BoundedLoad = 1.25
			b := after(t, a, other, nodes)
			r := movement(t, a, b)
			if a.Digest() != b.Digest() || r.Ratio != 0 || r.Interval != nil || r.Cause != CauseDetails || r.BetweenUnchanged != 0 {
				t.Errorf("digests %s and %s, report %+v, cause %q", a.Digest(), b.Digest(), r.Summary, r.Cause)
			}
		})
	}
}

// After a change of algorithm, parameters or hash, keys that move between
// unchanged nodes are remapped; otherwise they are a fault of the algorithm.
func TestRemapped(t *testing.T) {
	tests := []struct{ from, to, cause string }{
		{"ring", "maglev:2039", CauseAlgorithm},
		{"ring", "ring:100", CauseParameters},
		{"ring", "ring crc16", CauseKeyHash},
		{"ring", "ring r2", CauseReplicas},
		{"jump", "jumpback", CauseParameters},
		{"jump", "jump:2", CauseParameters},
		{"rendezvous", "rendezvous:512", CauseParameters},
	}
	for _, tt := range tests {
		a := first(t, specOf(tt.from), someNodes(8))
		r := movement(t, a, after(t, a, specOf(tt.to), someNodes(8)))
		if r.Cause != tt.cause || r.BetweenUnchanged != 0 {
			t.Errorf("%s -> %s: cause %q, between unchanged %v", tt.from, tt.to, r.Cause, r.BetweenUnchanged)
		}
		if tt.cause != CauseReplicas && !within(r.Remapped, r.Ratio, 1e-12) {
			t.Errorf("%s -> %s: remapped %v of %v", tt.from, tt.to, r.Remapped, r.Ratio)
		}
	}
	// Two tables that were each built from nothing: same spec, no fault hidden.
	a, b := first(t, specOf("maglev:251"), someNodes(8)), first(t, specOf("maglev:251"), someNodes(9))
	if r := movement(t, a, b); r.BetweenUnchanged == 0 || r.Remapped != 0 || r.Optimal {
		t.Errorf("a table built anew is reported as %+v", r.Summary)
	}
}

// A change of one node is exactly the least for all five, within the integers
// where they count; weights and zones of several at once add up too.
func TestOneNodeIsTheLeast(t *testing.T) {
	specs := []string{"ring", "jump", "jump:3", "jumpback", "rendezvous", "rendezvous:4096", "maglev:2039", "slots:4096", "ring crc16", "rendezvous crc16", "jump crc16"}
	rapid.Check(t, func(rt *rapid.T) {
		spec := specOf(rapid.SampledFrom(specs).Draw(rt, "spec"))
		nodes := zonedNodes(rapid.IntRange(2, 12).Draw(rt, "n"), 2)
		a := first(t, spec, nodes)
		i := rapid.IntRange(0, len(nodes)-1).Draw(rt, "node")
		switch rapid.SampledFrom([]string{"add", "remove", "reweight", "drain"}).Draw(rt, "change") {
		case "add":
			nodes = append(nodes, topology.Node{ID: "new", Weight: 2})
		case "remove":
			nodes = slices.Delete(nodes, i, i+1)
		case "reweight":
			nodes[i].Weight = rapid.Uint32Range(0, 6).Draw(rt, "weight")
		case "drain":
			nodes[i].State = topology.StateDraining
		}
		r := movement(t, a, after(t, a, spec, nodes))
		if !within(r.Ratio, r.MinimumRealised, 1e-9) || r.BetweenUnchanged != 0 {
			rt.Fatalf("%+v moves %v, least %v, between unchanged %v", spec, r.Ratio, r.MinimumRealised, r.BetweenUnchanged)
		}
		if counted := r.Method != MethodFormula; r.Optimal != counted {
			rt.Fatalf("%+v: optimal %v by method %s", spec, r.Optimal, r.Method)
		}
		checkReport(rt, r)
	})
}

// checkReport checks what holds for every exact report.
func checkReport(t interface{ Fatalf(string, ...any) }, r Report) {
	var in, out, before, after, flows float64
	for _, n := range r.Nodes {
		if !within(n.Before+n.In-n.Out, n.After, 1e-12) {
			t.Fatalf("node %s: before %v + in %v - out %v is not after %v", n.ID, n.Before, n.In, n.Out, n.After)
		}
		in, out, before, after = in+n.In, out+n.Out, before+n.Before, after+n.After
	}
	for _, f := range r.Flows {
		flows += f.Share
	}
	if !within(in, r.Ratio, 1e-12) || !within(out, r.Ratio, 1e-12) || !within(flows, r.Ratio, 1e-12) || !within(before, 1, 1e-12) || !within(after, 1, 1e-12) {
		t.Fatalf("ratio %v: in %v, out %v, flows %v, before %v, after %v", r.Ratio, in, out, flows, before, after)
	}
}

// Rings may move less than the weights ask for, by the luck of their arcs: the
// ratio is then below the minimum, and printed so.
func TestRatioBelowMinimum(t *testing.T) {
	below := 0
	for n := range 20 {
		a := first(t, specOf("ring"), someNodes(10+n))
		r := movement(t, a, after(t, a, specOf("ring"), someNodes(11+n)))
		if r.Ratio < r.Minimum {
			below++
			if r.Excess >= 0 {
				t.Errorf("%d nodes: ratio %v below minimum %v, excess %v", 10+n, r.Ratio, r.Minimum, r.Excess)
			}
		}
	}
	if below == 0 {
		t.Error("no ring of 20 was lucky: the test sees nothing")
	}
}

func TestFlowsAreCut(t *testing.T) {
	a, b := first(t, specOf("ring:40"), someNodes(60)), first(t, specOf("ring:41"), someNodes(61))
	all, err := MovementWith(a, b, MovementOptions{MaxFlows: -1})
	if err != nil {
		t.Fatal(err)
	}
	few, err := MovementWith(a, b, MovementOptions{MaxFlows: 10})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all.Flows[:10], few.Flows); d != "" || few.FlowsOmitted != len(all.Flows)-10 {
		t.Errorf("flows (-want +got), %d omitted of %d:\n%s", few.FlowsOmitted, len(all.Flows), d)
	}
	if !slices.IsSortedFunc(all.Flows, func(x, y Flow) int { return int(math.Copysign(1, y.Share-x.Share)) }) {
		t.Error("flows are not sorted, largest first")
	}
}

// A list of keys is counted as it is, copies included, also where the hash
// tag decides.
func TestMovementKeys(t *testing.T) {
	keys := fieldKeys()[:20_000]
	for _, pair := range [][2]string{{"ring", "ring"}, {"ring", "maglev:251"}, {"ring r3", "ring r3"}, {"rendezvous r2", "jump r3"}, {"ring", "ring {}"}, {"ring r2", "ring"}} {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			a, b := first(t, specOf(pair[0]), someNodes(5)), first(t, specOf(pair[1]), someNodes(6))
			k := MovementKeys(a, b, slices.Values(keys))
			r := movement(t, a, b)
			if r.Conditional == "" && !within(k.Ratio, r.Ratio, .02) || k.Total != len(keys) {
				t.Errorf("%d keys, ratio %v, report %v", k.Total, k.Ratio, r.Ratio)
			}
			in := 0
			for _, n := range k.Nodes {
				if n.Before+n.In-n.Out != n.After {
					t.Errorf("node %+v does not add up", n)
				}
				in += n.In
			}
			if in != k.Copies || k.Moved > k.Copies {
				t.Errorf("in %d, copies %d, moved %d", in, k.Copies, k.Moved)
			}
		})
	}
	table := first(t, specOf("ring"), someNodes(3))
	if k := MovementKeys(nil, table, slices.Values(keys)); k.Moved != 0 || k.Ratio != 0 || k.Total != len(keys) || len(k.Nodes) != 3 {
		t.Errorf("first version: %+v", k)
	}
	if k := MovementKeys(table, first(t, specOf("ring"), nil), slices.Values(keys)); k.Moved != len(keys) || k.Ratio != 1 {
		t.Errorf("to no nodes: %+v", k)
	}
}

func TestMovementToNothing(t *testing.T) {
	if _, err := Movement(nil, nil); !errors.Is(err, errNoTarget) {
		t.Errorf("movement to no table: %v", err)
	}
}

// The price of any change of weights under rendezvous is at most 2d/(1+d).
func TestHRWBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "n")
		s := hrwMovement(rosterOf(drawWeights(t, n, "w"), drawWeights(t, n, "v")), -1)
		if bound := 2 * s.least / (1 + s.least); s.moved > bound+1e-12 || s.moved < s.least-1e-12 {
			t.Fatalf("moved %v, least %v, bound %v", s.moved, s.least, bound)
		}
	})
}

// Copies that nobody takes, with fewer replicas than before, are flows to nobody,
// so that each node's flows add up to what it gives and takes.
func TestFlowsToNobody(t *testing.T) {
	a := first(t, specOf("ring:40 r3"), someNodes(5))
	for _, to := range []struct {
		spec string
		n    int
	}{{"ring:40", 5}, {"ring:40 r2", 6}, {"maglev:251", 4}, {"jump", 5}, {"ring:40 r3", 2}} {
		r, err := MovementWith(a, after(t, a, specOf(to.spec), someNodes(to.n)), MovementOptions{MaxFlows: -1})
		if err != nil {
			t.Fatal(err)
		}
		in, out := map[string]float64{}, map[string]float64{}
		for _, f := range r.Flows {
			in[f.To] += f.Share
			out[f.From] += f.Share
		}
		for _, n := range r.Nodes {
			if !within(in[n.ID], n.In, 1e-9) || !within(out[n.ID], n.Out, 1e-9) {
				t.Errorf("%s: node %s takes %v in flows of %v, gives %v of %v", to.spec, n.ID, in[n.ID], n.In, out[n.ID], n.Out)
			}
		}
		if in[""] == 0 {
			t.Errorf("%s: nobody drops a copy", to.spec)
		}
	}
}
