package shardtest

import (
	"math"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// Begin publishes a version in which a change of owners begins to be made in steps: share
// of the keys, 0 to 1, that get another owner by edit have gone over to him, the others
// are where they were; sdk.Route.Other names the other one.
func (p *Plane) Begin(share float64, edit func(*topology.Declared)) *topology.Topology {
	p.t.Helper()
	return p.publish(func(head *topology.Topology) (*placement.Table, error) {
		x := topology.Transition{ID: 1 + head.Version().Seq, Kind: topology.TransitionNone, Thresholds: []uint64{threshold(share)}}
		return placement.Begin(p.table, following(head, edit), x)
	})
}

// Step publishes a version in which another share of those keys has gone over, more or
// less than before.
func (p *Plane) Step(share float64) *topology.Topology {
	p.t.Helper()
	return p.publish(func(head *topology.Topology) (*placement.Table, error) {
		return placement.Step(p.table, following(head, func(*topology.Declared) {}), threshold(share))
	})
}

// Finish publishes a version in which the change that Begin began is made.
func (p *Plane) Finish() *topology.Topology {
	p.t.Helper()
	return p.publish(func(head *topology.Topology) (*placement.Table, error) {
		return placement.Settle(p.table, following(head, func(*topology.Declared) {}))
	})
}

func threshold(share float64) uint64 {
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(max(0, share)*(1<<32)) << 32
}

// following is the draft of the version after head.
func following(head *topology.Topology, edit func(*topology.Declared)) topology.Draft {
	d := head.Draft()
	declared := topology.Declared{Cluster: d.Cluster, Spec: d.Spec, Nodes: d.Nodes}
	edit(&declared)
	return topology.Draft{Cluster: d.Cluster, ID: d.ID, History: d.History, Spec: declared.Spec, Nodes: declared.Nodes,
		Version: topology.Version{Epoch: d.Version.Epoch, Seq: d.Version.Seq + 1}}
}
