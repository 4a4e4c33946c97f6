package placement_test

import (
	"fmt"

	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/rendezvous"
	"github.com/shardd/shardd/topology"
)

func nodes(ids ...string) []topology.Node {
	var list []topology.Node
	for _, id := range ids {
		list = append(list, topology.Node{ID: id, Weight: 1})
	}
	return list
}

func draft(seq uint64, list []topology.Node) topology.Draft {
	return topology.Draft{
		Cluster: "cache", ID: topology.ClusterID{1}, History: 1,
		Version: topology.Version{Epoch: 1, Seq: seq},
		Spec:    topology.Spec{Algorithm: topology.Maglev, TableSize: 251},
		Nodes:   list,
	}
}

// A fourth node is added to a table of three: exactly its quota moves.
func Example() {
	three, err := placement.Update(nil, draft(1, nodes("a", "b", "c")))
	if err != nil {
		fmt.Println(err)
		return
	}
	four, err := placement.Update(three, draft(2, nodes("a", "b", "c", "d")))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := placement.Movement(three, four)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %.3f of the keys move by method %s, at least %.3f must; optimal: %v\n", r.Cause, r.Ratio, r.Method, r.Minimum, r.Optimal)
	for _, n := range r.Nodes {
		fmt.Printf("%s: %.3f -> %.3f\n", n.ID, n.Before, n.After)
	}
	// Output:
	// nodes added: 0.247 of the keys move by method table, at least 0.250 must; optimal: true
	// a: 0.335 -> 0.251
	// b: 0.335 -> 0.251
	// c: 0.331 -> 0.251
	// d: 0.000 -> 0.247
}

func ExampleTable_AppendReplicas() {
	d := draft(1, nodes("a", "b", "c", "d"))
	for i := range d.Nodes {
		d.Nodes[i].Zone = []string{"east", "west"}[i%2]
	}
	d.Spec = topology.Spec{Algorithm: topology.Rendezvous, Replicas: 2, ZoneAware: true}
	table, err := placement.Update(nil, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range table.AppendReplicas(nil, table.Hash("user:42"), 2) {
		n := table.Topology().Node(i)
		fmt.Println(n.ID, n.Zone)
	}
	// Output:
	// d west
	// a east
}

func update(prev *placement.Table, seq uint64, ids ...string) *placement.Table {
	table, err := placement.Update(prev, draft(seq, nodes(ids...)))
	if err != nil {
		panic(err)
	}
	return table
}

// Who hands how much to whom, the largest flows first.
func ExampleMovementWith() {
	from := update(nil, 1, "a", "b", "c")
	to := update(from, 2, "a", "b")
	r, err := placement.MovementWith(from, to, placement.MovementOptions{MaxFlows: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range r.Flows {
		fmt.Printf("%s -> %s: %.3f\n", f.From, f.To, f.Share)
	}
	s := r.Summary
	fmt.Printf("moved %.3f, minimum %.3f, needless %.3f\n", s.Ratio, s.Minimum, s.BetweenUnchanged)
	// Output:
	// c -> a: 0.167
	// c -> b: 0.163
	// moved 0.331, minimum 0.333, needless 0.000
}

// Which of my keys move: counted, not estimated.
func ExampleMovementKeys() {
	from := update(nil, 1, "a", "b", "c")
	to := update(from, 2, "a", "b", "c", "d")
	keys := func(yield func(string) bool) {
		for k := range 1000 {
			if !yield(fmt.Sprint("user:", k)) {
				return
			}
		}
	}
	r := placement.MovementKeys(from, to, keys)
	fmt.Println(r.Moved, "of", r.Total)
	for _, n := range r.Nodes {
		fmt.Println(n.ID, n.Before, "->", n.After, "in", n.In, "out", n.Out)
	}
	// Output:
	// 252 of 1000
	// a 323 -> 232 in 0 out 91
	// b 340 -> 262 in 0 out 78
	// c 337 -> 254 in 0 out 83
	// d 0 -> 252 in 252 out 0
}

// Node b is replaced by x: x gets b's entries, and nothing else moves.
func ExampleUpdateWith() {
	from := update(nil, 1, "a", "b", "c")
	o := placement.UpdateOptions{Replace: map[string]string{"b": "x"}}
	to, err := placement.UpdateWith(from, draft(2, nodes("a", "c", "x")), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := placement.Movement(from, to)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range r.Flows {
		fmt.Printf("%s -> %s: %.3f\n", f.From, f.To, f.Share)
	}
	// Output: b -> x: 0.335
}

// Whatever maps a hash to an index is a Placer: a table, and the algorithms alone.
func ExamplePlacer() {
	alone, err := rendezvous.New([]string{"a", "b", "c"}, []uint32{1, 1, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range []placement.Placer{update(nil, 1, "a", "b", "c"), alone} {
		owner := p.Locate(42)
		fmt.Println(p.Len(), p.AppendReplicas(nil, 42, 2)[0] == owner)
	}
	// Output:
	// 3 true
	// 3 true
}

// What is wrong with a mapping that somebody has: gomemcache's list is a modulo.
func ExampleWarnings() {
	d := draft(1, nodes("a", "b", "c"))
	for i := range d.Nodes {
		d.Nodes[i].Addr, d.Nodes[i].Position = fmt.Sprintf("10.0.0.%d:11211", i+1), uint32(i+1)
	}
	d.Spec = topology.Spec{Algorithm: topology.Compat, Compat: topology.Foreign{Mode: topology.ModeGomemcache}}
	table, err := placement.Update(nil, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	warnings := placement.Warnings(table)
	for _, w := range warnings {
		fmt.Println(w.Code+":", w.Message)
	}
	// Output: modulo: nodes are counted off: adding one to 3 moves 75.0 % of the keys, where 25.0 % would do
}

// Two mappings that know nothing of each other: the share that moves follows from
// the nodes' shares, and is counted on drawn hashes beside it.
func ExampleSample() {
	d := draft(1, nodes("a", "b", "c"))
	d.Spec = topology.Spec{Algorithm: topology.Rendezvous}
	from, err := placement.Update(nil, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	d.Version.Seq, d.Spec = 2, topology.Spec{Algorithm: topology.Ring}
	to, err := placement.Update(from, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := placement.MovementWith(from, to, placement.MovementOptions{SampleKeys: 50_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := r.Sample
	fmt.Printf("%s: %.3f; of %d hashes %.3f move, 95 %% in %.3f..%.3f\n", r.Method, r.Ratio, s.Keys, s.Ratio, s.Interval[0], s.Interval[1])
	// Output: independent: 0.667; of 50000 hashes 0.667 move, 95 % in 0.663..0.671
}
