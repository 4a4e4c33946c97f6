package placement_test

import (
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// oracles calls fn with an oracle for each mapping, of nodes of which it asks all or the
// first.
func oracles(t *testing.T, foreign bool, fn func(*oracle)) {
	for name, spec := range oracleSpecs() {
		if spec.Compat.Mode != "" && !foreign {
			continue
		}
		for _, first := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := newOracle(t, spec, 60)
				o.first, o.loose = first, true
				fn(o)
			})
		}
	}
}

func (o *oracle) publish(nodes []topology.Node) {
	o.t.Helper()
	o.take(placement.UpdateWith(o.at, o.draft(nodes), placement.UpdateOptions{Tenure: true}))
}

func (o *oracle) begin(nodes []topology.Node, threshold uint64) {
	o.t.Helper()
	x := topology.Transition{ID: 3, Kind: topology.TransitionNone, Thresholds: []uint64{threshold}}
	table, err := placement.Begin(o.at, o.draft(nodes), x)
	o.take(table, err)
}

func (o *oracle) step(nodes []topology.Node, threshold uint64) {
	o.t.Helper()
	table, err := placement.Step(o.at, o.draft(nodes), threshold)
	o.take(table, err)
}

func (o *oracle) settle(nodes []topology.Node) {
	o.t.Helper()
	table, err := placement.Settle(o.at, o.draft(nodes))
	o.take(table, err)
}

const most = 15 << 60

// A node that gets keys by steps and goes down meanwhile has had some of them: who stands
// in when the steps are over missed what was written there.
func TestSettleWhileDown(t *testing.T) {
	for _, back := range []bool{false, true} {
		for _, weights := range [][2]uint32{{0, 2}, {1, 3}} {
			oracles(t, false, func(o *oracle) {
				small, large := stepNodes(1, 2, 1, weights[0]), stepNodes(1, 2, 1, weights[1])
				before, after, over, under := small, large, uint64(most), uint64(1<<60)
				if back {
					before, after, over, under = large, small, under, over
				}
				o.publish(before)
				o.begin(after, under)
				o.step(after, over)
				o.step(after, under)
				o.step(after, over)
				before[3].State, after[3].State = topology.StateDown, topology.StateDown
				o.step(after, over)
				o.step(after, under)
				o.settle(large)
				before[3].State, after[3].State = topology.StateActive, topology.StateActive
				o.publish(large)
			})
		}
	}
}

// A node that is at another address is another server, and again when it is back: both
// missed what went to the other. What is first on other nodes stays.
func TestAddresses(t *testing.T) {
	oracles(t, true, func(o *oracle) {
		nodes, swapped := stepNodes(1, 2, 1, 3), stepNodes(1, 2, 1, 3)
		for i := range nodes {
			nodes[i].Addr = "10.0.0." + string(rune('1'+i)) + ":1"
			swapped[i].Addr = nodes[i].Addr
		}
		swapped[0].Addr, swapped[1].Addr = nodes[1].Addr, nodes[0].Addr
		o.publish(nodes)
		was := o.at
		o.publish(swapped)
		for _, h := range o.hs {
			i := o.at.Locate(h)
			if then, now := was.FirstSince(h, i), o.at.FirstSince(h, i); o.spec.Compat.Mode == "" && (then != now) != (i < 2) {
				o.t.Errorf("%s has hash %x since %s, before %s", o.at.Topology().Node(i).ID, h, now, then)
			}
		}
		o.publish(nodes)
		grown := append(swapped[:0:0], swapped...)
		grown[0].Weight = 4
		o.publish(grown)
		o.publish(nodes)
	})
}

// And while owners change in steps.
func TestAddressesInSteps(t *testing.T) {
	oracles(t, false, func(o *oracle) {
		nodes := stepNodes(1, 2, 1, 3)
		after, swapped := stepNodes(3, 2, 1, 3, 2), stepNodes(3, 2, 1, 3, 2)
		for _, pair := range [][2]int{{0, 1}, {3, 4}} {
			a, b := pair[0], pair[1]
			swapped[a].Addr, swapped[b].Addr = after[b].Addr, after[a].Addr
		}
		o.publish(nodes)
		o.begin(after, most)
		o.step(swapped, most)
		o.step(swapped, 1<<60)
		o.step(after, 1<<60)
		o.step(swapped, most)
		o.step(after, most)
		o.settle(swapped)
		o.publish(after)
	})
}
