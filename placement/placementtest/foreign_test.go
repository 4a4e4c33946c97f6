package placementtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/shardd/shardd/placement/placementtest"
	"github.com/shardd/shardd/topology"
)

// modulo is the placement of clients without consistent hashing: the key's
// hash modulo a list in which each node stands once for each unit of weight.
type modulo []string

func newModulo(_ placementtest.Mapping, nodes []topology.Node) (placementtest.Mapping, error) {
	var m modulo
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b topology.Node) int { return strings.Compare(a.ID, b.ID) })
	for _, n := range sorted {
		for range n.OwnerWeight() {
			m = append(m, n.ID)
		}
	}
	return m, nil
}

func (m modulo) Owner(key string) string { return strings.Join(m.Replicas(key, 1), "") }

func (m modulo) Replicas(key string, n int) []string {
	var list []string
	for i := range m {
		id := m[(xxhash.Sum64String(key)+uint64(i))%uint64(len(m))]
		if len(list) < n && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

func subject() placementtest.Subject {
	return placementtest.Subject{Name: "modulo", Next: newModulo, Moves: true, Replicas: 2, Large: 1000}
}

// A mapping that is not of this module obeys the laws that it claims.
func TestForeign(t *testing.T) { placementtest.Run(t, subject()) }

func ExampleRun() {
	var t *testing.T // the test's own
	placementtest.Run(t, placementtest.Native("ring", topology.Spec{Algorithm: topology.Ring, Replicas: 2}))
}
