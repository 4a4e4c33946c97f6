package placement_test

import (
	"testing"

	"github.com/shardd/shardd/placement/placementtest"
	"github.com/shardd/shardd/topology"
)

func TestLaws(t *testing.T) {
	ring := topology.Spec{Algorithm: topology.Ring, VNodes: 32}
	jump := topology.Spec{Algorithm: topology.Jump}
	back := topology.Spec{Algorithm: topology.Jump, JumpVariant: topology.JumpBack, JumpUnit: 3}
	hrw := topology.Spec{Algorithm: topology.Rendezvous}
	hrwTable := topology.Spec{Algorithm: topology.Rendezvous, RendezvousTable: 2048}
	maglev := topology.Spec{Algorithm: topology.Maglev, TableSize: 509}
	slots := topology.Spec{Algorithm: topology.Slots, SlotCount: 256}
	tests := []struct {
		name string
		spec topology.Spec
		r    uint32
		zone bool
		size int // of the large cluster, where a table limits it
	}{
		{name: "ring", spec: ring},
		{name: "ring in zones", spec: ring, r: 3, zone: true},
		{name: "jump", spec: jump},
		{name: "jumpback", spec: back, r: 2},
		{name: "jump in zones", spec: jump, r: 3, zone: true},
		{name: "rendezvous", spec: hrw},
		{name: "rendezvous in zones", spec: hrw, r: 3, zone: true},
		{name: "rendezvous table", spec: hrwTable, size: 60},
		{name: "maglev", spec: maglev, size: 500},
		{name: "maglev in zones", spec: maglev, r: 3, zone: true, size: 500},
		{name: "slots", spec: slots, size: 250},
		{name: "slots replicated", spec: slots, r: 2, size: 100},
		{name: "slots in zones", spec: slots, r: 3, zone: true, size: 100},
		{name: "slots in too few zones", spec: slots, r: 5, zone: true, size: 100},
		{name: "ring in too few zones", spec: ring, r: 5, zone: true},
	}
	for _, tt := range tests {
		tt.spec.Replicas, tt.spec.ZoneAware = tt.r, tt.zone
		s := placementtest.Native(tt.name, tt.spec)
		s.Large = tt.size
		placementtest.Run(t, s)
	}
}
