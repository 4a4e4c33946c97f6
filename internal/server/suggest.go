package server

import (
	"fmt"

	"github.com/shardd/shardd/maglev"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// mostTried bounds the size of a mapping that is built only to see how even it
// is: points of a ring, entries of a table. 2^19 points take some 50 ms.
const mostTried = 1 << 19

// balanceHint names the setting that brings the fullest node of a fresh cluster
// with these nodes to mostPeak, found by building it: the least doubling that
// does. Changing it moves keys; the plan says how many.
func balanceHint(t *topology.Topology) string {
	spec := t.Spec()
	var name string
	var was uint32
	switch spec.Algorithm {
	case topology.Ring:
		name, was = "ring.vnodes", spec.VNodes
	case topology.Maglev:
		name, was = "maglev.table_size", spec.TableSize
	case topology.Slots:
		name, was = "slots.count", spec.SlotCount
	default:
		return "set bounded_load"
	}
	if size, peak := reach(t); size > 0 {
		return fmt.Sprintf("%s: %d in place of %d would bring it to %.2f; see what that moves with migrate plan; or set bounded_load", name, size, was, peak)
	}
	return fmt.Sprintf("raise %s, which is %d, though no size that was tried reaches %.2f; or set bounded_load", name, was, mostPeak)
}

// reach returns the least doubling of the size at which no node is over
// mostPeak, and the peak there; 0 = none within mostTried.
func reach(t *topology.Topology) (size uint32, peak float64) {
	d := t.Draft()
	d.Version, d.Parent, d.Objects = topology.Version{Epoch: 1, Seq: 1}, topology.Digest{}, nil
	for {
		var entries uint64
		size, entries = double(&d)
		if entries > mostTried {
			return 0, 0
		}
		table, err := placement.Update(nil, d)
		if err != nil { // over a limit of the algorithm
			return 0, 0
		}
		if peak = table.Peak(); peak <= mostPeak {
			return size, peak
		}
	}
}

// double doubles the size in d, and returns it and what a mapping of it takes.
func double(d *topology.Draft) (size uint32, entries uint64) {
	switch d.Spec.Algorithm {
	case topology.Ring:
		d.Spec.VNodes *= 2
		weight := uint64(0)
		for _, n := range d.Nodes {
			weight += uint64(n.OwnerWeight())
		}
		return d.Spec.VNodes, uint64(d.Spec.VNodes) * weight
	case topology.Maglev:
		d.Spec.TableSize = maglev.NextPrime(2 * d.Spec.TableSize)
		return d.Spec.TableSize, uint64(d.Spec.TableSize)
	}
	d.Spec.SlotCount *= 2
	return d.Spec.SlotCount, uint64(d.Spec.SlotCount)
}
