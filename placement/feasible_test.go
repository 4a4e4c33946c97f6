package placement

import (
	"errors"
	"testing"

	"github.com/shardd/shardd/topology"
)

// TestCheck: what Update would refuse is refused beforehand, with the same error.
func TestCheck(t *testing.T) {
	prev := first(t, specOf("ring"), someNodes(3))
	for _, spec := range []string{"maglev:3", "slots:7", "rendezvous:256", "maglev:1048573 crc16", "ring", "jump", "rendezvous", "maglev", "pond"} {
		nodes := someNodes(3)
		nodes[1].Weight = 300_000
		if spec == "ring" || spec == "jump" {
			nodes[1].Weight = 10
		}
		d := topology.Declared{Cluster: prev.topo.Cluster(), Spec: specOf(spec), Nodes: nodes}
		for _, p := range []*Table{nil, prev} {
			_, want := Update(p, draft(2, d.Spec, nodes))
			got := Check(p.topology(), d)
			if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
				t.Errorf("%s: Check says %v, Update %v", spec, got, want)
			}
			var field *topology.FieldError
			if got != nil && !errors.As(got, &field) {
				t.Errorf("%s: %v has no path", spec, got)
			}
		}
	}
}
