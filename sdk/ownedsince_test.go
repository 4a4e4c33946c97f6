package sdk_test

import (
	"fmt"
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk"
	"github.com/shardd/shardd/topology"
)

// record publishes the next version with a record of tenures, as a controller does.
func (l *line) record(spec topology.Spec, nodes ...topology.Node) *topology.Topology {
	l.t.Helper()
	d := topology.Draft{Cluster: "cache", ID: l.id, History: l.hist, Version: topology.Version{Epoch: l.epoch, Seq: 1}, Spec: spec, Nodes: nodes}
	if l.table != nil {
		d.Version.Seq = l.table.Topology().Version().Seq + 1
	}
	return l.next(placement.UpdateWith(l.table, d, placement.UpdateOptions{Tenure: true}))
}

// The stale-cache fence: a node that left and came back serves nothing that it
// stored before, in a client that was there and in one that is new; what it stores
// from then on it serves.
func TestOwnedSinceFencesStaleCaches(t *testing.T) {
	for _, algorithm := range topology.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			l := newLine(t)
			spec := topology.Spec{Algorithm: algorithm}
			four := nodes(4)
			caches := map[string]map[string]topology.Version{} // node -> key -> stored with
			c, f := start(t)
			use := func(c *sdk.Client) (hits int, last sdk.Route) {
				t.Helper()
				for i := range 300 {
					key := fmt.Sprint(i)
					r, err := c.Route(key)
					if err != nil {
						t.Fatal(err)
					}
					since := r.OwnedSince()
					if stored, ok := caches[r.ID()][key]; ok && stored.Compare(since) >= 0 {
						hits++
					}
					if caches[r.ID()] == nil {
						caches[r.ID()] = map[string]topology.Version{}
					}
					caches[r.ID()][key] = since
					last = r
				}
				return hits, last
			}
			mustGive(t, f, l.record(spec, four...))
			use(c)
			if hits, _ := use(c); hits != 300 {
				t.Fatalf("%d of 300 hits in a cache that nobody changed", hits)
			}
			mustGive(t, f, l.record(spec, four[:3]...))
			use(c)
			mustGive(t, f, l.record(spec, four...))
			late, lf := start(t)
			mustGive(t, lf, l.table.Topology())
			for i := range 300 {
				key := fmt.Sprint(i)
				r, _ := c.Route(key)
				other, _ := late.Route(key)
				if r.OwnedSince() != other.OwnedSince() {
					t.Fatalf("two clients disagree: %s and %s", r.OwnedSince(), other.OwnedSince())
				}
				if stored, ok := caches["node-003"][key]; ok && r.ID() == "node-003" && stored.Compare(r.OwnedSince()) >= 0 {
					t.Fatalf("%s is served as stored before the node left: %s, now since %s", key, stored, r.OwnedSince())
				}
			}
			hits, _ := use(late)
			if again, _ := use(c); again != 300 || hits < 150 {
				t.Fatalf("%d hits after the return, then %d", hits, again)
			}
			// What stands in for a node that is down does so since it went down; what stands
			// in by this client's word alone has nothing that can be told to be new.
			four[0].State = topology.StateDown
			c.PrepareOwnedSince()
			down := l.record(spec, four...)
			mustGive(t, f, down)
			for i := range 300 {
				if r, _ := c.Route(fmt.Sprint(i)); r.Detour() && r.OwnedSince() != down.Version() || r.FirstSince() != r.OwnedSince() {
					t.Fatalf("a detour since %s, as the first since %s", r.OwnedSince(), r.FirstSince())
				}
			}
			c.SetHealth("node-001", false)
			for i := range 300 {
				if r, _ := c.Route(fmt.Sprint(i)); r.Owner().ID != "node-000" && (r.Owner().ID == "node-001") != r.OwnedSince().IsZero() {
					t.Fatalf("a detour of %s since %s", r.Owner().ID, r.OwnedSince())
				}
			}
		})
	}
	if (sdk.Route{}).OwnedSince() != (topology.Version{}) || (sdk.Route{}).FirstSince() != (topology.Version{}) {
		t.Fatal("the zero route is somebody's")
	}
}
