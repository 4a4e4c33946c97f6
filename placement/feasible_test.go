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

// TestCheckAtTheEdge: where shares are about an entry, Check and Update agree,
// and nothing that Check takes for granted is refused.
func TestCheckAtTheEdge(t *testing.T) {
	refused := 0
	for _, spec := range []string{"maglev:13", "slots:13", "slots:13 r2", "slots:13 zones", "rendezvous:256", "jump", "ring:1"} {
		var prev *Table
		for w := uint32(1); w < 40; w++ {
			nodes := zonedNodes(4, 2)
			nodes[w%4].Weight = w
			nodes[(w+1)%4].Weight = w / 3
			d := topology.Declared{Cluster: draft(1, specOf(spec), nodes).Cluster, Spec: specOf(spec), Nodes: nodes}
			next, want := Update(prev, draft(uint64(w), d.Spec, nodes))
			if got := Check(prev.topology(), d); (got == nil) != (want == nil) {
				t.Errorf("%s, weight %d: Check says %v, Update %v", spec, w, got, want)
			}
			if want == nil {
				prev = next
			} else {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no case was refused")
	}
}
