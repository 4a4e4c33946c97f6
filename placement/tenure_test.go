package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/topology"
)

// tenures plays the fence that OwnedSince is for, with some keys: at each version
// every holder of a key stores it anew with what OwnedSince says, and whoever else
// has it has an old value. What a holder finds is a hit if it was stored with what
// OwnedSince says now, or later; no hit may be an old value.
type tenures struct {
	*stepper
	hs     []uint64
	stored []map[string]value            // by key: node -> what it has
	held   []map[string]topology.Version // by key: holder -> since when without a gap
	hits   int
}

type value struct{ stamp topology.Version }

func newTenures(t *testing.T, spec topology.Spec) *tenures {
	s := &tenures{stepper: &stepper{t: t, spec: spec}, hs: stepHashes()[:500]}
	s.held, s.stored = make([]map[string]topology.Version, len(s.hs)), make([]map[string]value, len(s.hs))
	for k := range s.stored {
		s.stored[k] = map[string]value{}
	}
	return s
}

// take goes on to a version and checks what it says of every key.
func (s *tenures) take(table *placement.Table, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.at = table
	for k := range s.hs {
		s.play(k)
	}
}

func (s *tenures) play(k int) {
	s.t.Helper()
	table, h, v := s.at, s.hs[k], s.at.Topology().Version()
	now := map[string]topology.Version{}
	for _, i := range table.AppendReplicas(nil, h, int(table.Topology().Spec().Replicas)) {
		id := table.Topology().Node(i).ID
		if now[id] = v; !s.held[k][id].IsZero() {
			now[id] = s.held[k][id]
		}
		since := table.OwnedSince(h, i)
		if since.IsZero() || since.Compare(v) > 0 {
			s.t.Fatalf("version %s: %s holds key %d since %q", v, id, k, since)
		}
		if has, there := s.stored[k][id]; there && has.stamp.Compare(since) >= 0 {
			s.hits++
			if s.held[k][id].IsZero() { // it did not hold it at the version before
				s.t.Fatalf("version %s: %s would serve an old value of key %d: stored at a tenure since %s, now since %s", v, id, k, has.stamp, since)
			}
		}
		s.stored[k][id] = value{stamp: since}
	}
	for i := range table.Len() {
		if _, holds := now[table.Topology().Node(i).ID]; !holds && !table.OwnedSince(h, i).IsZero() {
			s.t.Fatalf("version %s: %s holds a key that it does not", v, table.Topology().Node(i).ID)
		}
	}
	s.held[k] = now
}

func tenureSpecs() []topology.Spec {
	specs := []topology.Spec{{Algorithm: topology.Rendezvous, RendezvousTable: 1024}, {Algorithm: topology.Rendezvous, Replicas: 3, ZoneAware: true},
		{Algorithm: topology.Ring, Replicas: 2}, {Algorithm: topology.Slots, Replicas: 2, SlotCount: 512}, {Algorithm: topology.Maglev, TableSize: 1021, Replicas: 2}}
	for _, a := range topology.Algorithms() {
		specs = append(specs, topology.Spec{Algorithm: a, TableSize: 1021, SlotCount: 512})
	}
	return specs
}

// Whatever joins, leaves, comes back, grows and shrinks, at once or in steps: no
// key is said to be its owner's for longer than it is.
func TestOwnedSinceIsNeverTooEarly(t *testing.T) {
	for n, spec := range tenureSpecs() {
		t.Run(fmt.Sprintf("%s-%d", spec.Algorithm, n), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(n), 3))
			s := newTenures(t, spec)
			nodes := stepNodes(1, 2, 1, 2, 1, 1)
			s.take(placement.UpdateWith(nil, s.draft(nodes), placement.UpdateOptions{Tenure: true}))
			for range 40 {
				next := slices.Clone(nodes)
				for range 1 + rng.IntN(2) {
					i := rng.IntN(len(next))
					next[i].State = []topology.State{topology.StateActive, topology.StateActive, topology.StateDraining}[rng.IntN(3)]
					next[i].Weight = 1 + uint32(rng.IntN(3))
				}
				next[0].State = topology.StateActive
				if rng.IntN(3) > 0 {
					nodes = next
					s.take(placement.UpdateWith(s.at, s.draft(nodes), placement.UpdateOptions{Tenure: true}))
					continue
				}
				x := topology.Transition{ID: rng.Uint64() | 1, Kind: topology.TransitionNone, Thresholds: []uint64{1 << 62}}
				s.take(placement.Begin(s.at, s.draft(next), x))
				for rng.IntN(3) > 0 && s.at.Moving() { // up and down
					s.take(placement.Step(s.at, s.draft(next), rng.Uint64()))
				}
				if s.at.Moving() {
					if rng.IntN(2) > 0 {
						nodes = next
					}
					s.take(placement.Settle(s.at, s.draft(nodes)))
					continue
				}
				nodes = next
			}
			if s.hits < 40*len(s.hs)/4 {
				t.Errorf("only %d hits: the fence is no use", s.hits)
			}
		})
	}
}

// Tables of an earlier version that are put in force again move keys between nodes
// of which none gained or lost weight.
func TestOwnedSinceWithEarlierTables(t *testing.T) {
	for n, spec := range tenureSpecs() {
		t.Run(fmt.Sprintf("%s-%d", spec.Algorithm, n), func(t *testing.T) {
			s := newTenures(t, spec)
			nodes := stepNodes(1, 2, 1, 2, 1, 1)
			weigh := func(i int, w uint32) *topology.Topology {
				nodes = slices.Clone(nodes)
				nodes[i].Weight = w
				s.take(placement.UpdateWith(s.at, s.draft(nodes), placement.UpdateOptions{Tenure: true}))
				return s.at.Topology()
			}
			restore := func(old *topology.Topology) {
				d := s.draft(slices.Clone(old.Nodes()))
				d.Objects, d.Mapping, d.Parent = old.Objects(), old.Mapping(), s.at.Topology().Digest()
				if err := placement.Record(s.at, &d); err != nil {
					t.Fatal(err)
				}
				topo, err := topology.New(d)
				if err != nil {
					t.Fatal(err)
				}
				s.take(placement.New(topo))
			}
			s.take(placement.UpdateWith(nil, s.draft(nodes), placement.UpdateOptions{Tenure: true}))
			first := weigh(1, 2)
			if len(first.Refs()) == 0 {
				t.Skip("the mapping has no tables of its own")
			}
			weigh(1, 0)
			weigh(2, 3) // takes what the other one left
			weigh(1, 2)
			last := weigh(2, 1) // the same nodes, other tables
			if last.Mapping() == first.Mapping() {
				t.Fatal("the tables are the same")
			}
			for range 3 {
				restore(first)
				restore(last)
			}
		})
	}
}

// A node that leaves and comes back has its keys since it came back; nobody else's
// keys begin anew but those that went to and fro; a node that is added makes
// nobody else's begin anew.
func TestOwnedSinceAfterAFlap(t *testing.T) {
	for _, a := range topology.Algorithms() {
		t.Run(string(a), func(t *testing.T) {
			s := newTenures(t, topology.Spec{Algorithm: a, TableSize: 1021, SlotCount: 512})
			five, four := stepNodes(1, 1, 1, 1, 1), stepNodes(1, 1, 1, 1)
			with := placement.UpdateOptions{Tenure: true}
			s.take(placement.UpdateWith(nil, s.draft(five), with))
			was := make([]int, len(s.hs))
			for k, h := range s.hs {
				was[k] = s.at.Locate(h)
			}
			s.take(placement.UpdateWith(s.at, s.draft(stepNodes(1, 1, 1, 1, 1, 1)), with)) // 1.2: n5 joins
			first := topology.Version{Epoch: 1, Seq: 1}
			for k, h := range s.hs {
				if i := s.at.Locate(h); i == was[k] && s.at.OwnedSince(h, i) != first {
					t.Fatalf("a node that joins makes key %d its old owner's since %s", k, s.at.OwnedSince(h, i))
				}
			}
			six := append(five, stepNodes(1, 1, 1, 1, 1, 1)[5])
			s.take(placement.UpdateWith(s.at, s.draft(append(four, six[5])), with)) // 1.3: n4 leaves
			s.take(placement.UpdateWith(s.at, s.draft(six), with))                  // 1.4: and is back
			back := topology.Version{Epoch: 1, Seq: 4}
			for k, h := range s.hs {
				i := s.at.Locate(h)
				since, held := s.at.OwnedSince(h, i), s.held[k][s.at.Topology().Node(i).ID]
				if i == 4 && since != back {
					t.Fatalf("a key of the node that was away is its since %s", since)
				}
				if since != held {
					t.Fatalf("key %d is its owner's since %s, not since %s", k, held, since)
				}
			}
		})
	}
}

// Who stands in on the one side of a transition for a node that is down, and has the
// key on the other side, has missed what was written when the node was up again.
func TestOwnedSinceAroundStandIns(t *testing.T) {
	for _, a := range topology.Algorithms() {
		t.Run(string(a), func(t *testing.T) {
			o := newOracle(t, topology.Spec{Algorithm: a, TableSize: 251, SlotCount: 256}, 300)
			o.loose = true
			nodes, grown := stepNodes(1, 1, 1), stepNodes(1, 4, 1)
			o.take(placement.UpdateWith(nil, o.draft(nodes), placement.UpdateOptions{Tenure: true}))
			o.take(placement.Begin(o.at, o.draft(grown), topology.Transition{ID: 7, Kind: topology.TransitionNone, Thresholds: []uint64{1}}))
			for _, state := range []topology.State{topology.StateDown, topology.StateActive} {
				grown[0].State = state
				o.take(placement.Step(o.at, o.draft(grown), 1))
			}
			o.take(placement.Step(o.at, o.draft(grown), 1<<63))
			o.take(placement.Step(o.at, o.draft(grown), 1)) // back, and over again as one goes down
			grown[0].State = topology.StateDown
			o.take(placement.Step(o.at, o.draft(grown), 1<<63))
			o.take(placement.Settle(o.at, o.draft(grown)))
			// It drains, so it is up on the side before; that is taken back, and it is down.
			drains := slices.Clone(grown)
			drains[0].State = topology.StateDraining
			o.take(placement.Begin(o.at, o.draft(drains), topology.Transition{ID: 7, Kind: topology.TransitionNone, Thresholds: []uint64{1}}))
			o.take(placement.Settle(o.at, o.draft(grown)))
		})
	}
}

func TestTenureBeginsAnew(t *testing.T) {
	s := newTenures(t, topology.Spec{Algorithm: topology.Maglev, TableSize: 251})
	with := placement.UpdateOptions{Tenure: true}
	s.take(placement.UpdateWith(nil, s.draft(stepNodes(1, 1, 1)), with))
	d := s.draft(stepNodes(1, 1, 1))
	d.Version = topology.Version{Epoch: 2, Seq: 1}
	d.History = 2
	next, err := placement.UpdateWith(s.at, d, with)
	if err != nil || next.Topology().Tenure().Floor != d.Version || next.OwnedSince(s.hs[0], next.Locate(s.hs[0])) != d.Version {
		t.Fatalf("another epoch: %v, floor %s", err, next.Topology().Tenure().Floor)
	}
	plain, err := placement.Update(s.at, s.draft(stepNodes(1, 1, 2)))
	if err != nil || plain.Topology().Tenure() != nil || len(plain.Topology().Objects()) != 1 {
		t.Fatalf("recorded without being asked: %v", err)
	}
	if got := plain.OwnedSince(s.hs[0], plain.Locate(s.hs[0])); got != plain.Topology().Version() {
		t.Fatalf("without a record since %s", got)
	}
	x := topology.Transition{ID: 1, Kind: topology.TransitionNone, Thresholds: []uint64{1 << 63}}
	s.take(placement.Begin(s.at, s.draft(stepNodes(1, 1, 2)), x))
	draft := s.at.Topology().Draft()
	draft.Version = topology.Version{Epoch: 3, Seq: 1}
	if err := placement.Renew(&draft); err != nil {
		t.Fatal(err)
	}
	topo, err := topology.New(draft)
	if err != nil {
		t.Fatal(err)
	}
	table, err := placement.New(topo)
	if err != nil || table.Digest() != s.at.Digest() {
		t.Fatalf("renewed: %v", err)
	}
	for _, h := range s.hs {
		if got := table.OwnedSince(h, table.Locate(h)); got != draft.Version {
			t.Fatalf("after the store went back a key is its owner's since %s", got)
		}
	}
	many := topology.Draft{Spec: topology.Spec{Algorithm: topology.Ring}}
	s = newTenures(t, many.Spec)
	s.take(placement.UpdateWith(nil, s.draft(stepNodes(1, 1)), with))
	for i := range topology.MaxTenures + 20 {
		nodes := append(stepNodes(1, 1), topology.Node{ID: fmt.Sprint("x", i), Weight: 1})
		s.at, _ = placement.UpdateWith(s.at, s.draft(nodes), with)
	}
	if r := s.at.Topology().Tenure(); len(r.Nodes) > topology.MaxTenures || len(r.Nodes) < topology.MaxTenures/2 || r.Floor.Seq < 100 {
		t.Fatalf("%d nodes, floor %s", len(r.Nodes), r.Floor)
	}
	s = newTenures(t, topology.Spec{Algorithm: topology.Slots, SlotCount: 1024})
	s.hs = s.hs[:50]
	s.take(placement.UpdateWith(nil, s.draft(stepNodes(1, 1, 1)), with))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		s.take(placement.UpdateWith(s.at, s.draft(stepNodes(50+uint32(rng.IntN(3)), 50+uint32(rng.IntN(3)), 50)), with))
	}
	if n := len(s.at.Topology().Object(topology.KindSince).Nodes()); n > 255 {
		t.Fatalf("%d versions in a table", n)
	}
}
