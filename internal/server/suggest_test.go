package server_test

import (
	"strings"
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// TestSuggestedSetting: the setting that a warning names reaches what it says.
func TestSuggestedSetting(t *testing.T) {
	r, _ := withStore(t)
	for _, c := range []struct {
		spec topology.Spec
		want string
	}{
		{topology.Spec{Algorithm: topology.Ring, VNodes: 2}, "ring.vnodes: "},
		{topology.Spec{Algorithm: topology.Slots, SlotCount: 10}, "slots.count: "},
		{topology.Spec{Algorithm: topology.Maglev, TableSize: 13}, "maglev.table_size: "},
	} {
		d := declared(9)
		d.Spec = c.spec
		hint := ""
		for _, w := range r.put(d).Warnings {
			if w.Code == "imbalance" {
				hint = w.Hint
			}
		}
		if !strings.HasPrefix(hint, c.want) || !strings.Contains(hint, "in place of") {
			t.Errorf("%s: hint %q", c.spec.Algorithm, hint)
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(hint, c.want), " ")
		if got := peakAt(t, d, number); got > 1.25 {
			t.Errorf("%s: with %s it is %.3f", c.spec.Algorithm, number, got)
		}
	}
	if got := r.put(declared(9)); len(got.Warnings) > 0 && got.Warnings[0].Code == "imbalance" {
		t.Errorf("the defaults: %+v", got.Warnings)
	}
}

func peakAt(t *testing.T, d topology.Declared, number string) float64 {
	t.Helper()
	var size uint32
	for _, digit := range number {
		size = 10*size + uint32(digit-'0')
	}
	d.Spec.VNodes, d.Spec.SlotCount, d.Spec.TableSize = 0, 0, 0
	switch d.Spec.Algorithm {
	case topology.Ring:
		d.Spec.VNodes = size
	case topology.Slots:
		d.Spec.SlotCount = size
	default:
		d.Spec.TableSize = size
	}
	table, err := placement.Update(nil, topology.Draft{Cluster: d.Cluster, ID: topology.ClusterID{1}, History: 1, Version: topology.Version{Epoch: 1, Seq: 1}, Spec: d.Spec, Nodes: d.Nodes})
	if err != nil {
		t.Fatal(err)
	}
	return table.Peak()
}
