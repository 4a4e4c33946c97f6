package shadow_test

import (
	"fmt"

	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/placement"
	"github.com/shardd/shardd/sdk/shadow"
	"github.com/shardd/shardd/shardtest"
	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// Today's mapping is a foreign one; how many requests would tomorrow's move?
func Example() {
	const nodes = "nodes: [{id: a, addr: '10.0.0.1:11211'}, {id: b, addr: '10.0.0.2:11211'}, {id: c, addr: '10.0.0.3:11211'}]\n"
	today, err := clusterfile.Parse("today.yaml", []byte("cluster: cache\ncompat: {mode: ketama}\n"+nodes))
	if err != nil {
		fmt.Println(err)
		return
	}
	tomorrow, err := clusterfile.Parse("tomorrow.yaml", []byte("cluster: cache\nalgorithm: rendezvous\n"+nodes))
	if err != nil {
		fmt.Println(err)
		return
	}
	old, _ := migrate.Next(nil, today)
	new, _ := migrate.Next(old, tomorrow)

	s := shadow.New(old, new)
	for i := range 3000 { // beside each request
		s.Observe(fmt.Sprintf("user:%d", i%1000))
	}
	f := s.Figures()
	fmt.Printf("%d of %d requests would move\n", f.Moved, f.Requests)
	for _, n := range f.Nodes {
		fmt.Println(n.ID, n.Before, "->", n.After, "in", n.In, "out", n.Out)
	}
	// Output:
	// 2016 of 3000 requests would move
	// a 1110 -> 1014 in 651 out 747
	// b 924 -> 1020 in 708 out 612
	// c 966 -> 966 in 657 out 657
}

// The program goes on by what it has, and its requests are shown to the mapping
// that it is to get.
func ExampleClient() {
	plane := shardtest.New(exampleTB{}, "a", "b", "c")
	today := plane.Client()
	defer today.Close()
	from := plane.Topology()
	to := plane.Add(topology.Node{ID: "d", Weight: 1})
	before, err := placement.New(from)
	if err != nil {
		fmt.Println(err)
		return
	}
	after, err := placement.New(to)
	if err != nil {
		fmt.Println(err)
		return
	}

	var moves []shadow.Move
	log := shadow.WithMoves(func(m shadow.Move) { moves = append(moves, m) })
	client := shadow.Wrap(today, shadow.New(before, after, log))
	for k := range 100 {
		if _, err := client.Route(fmt.Sprint("user:", k)); err != nil {
			fmt.Println(err)
			return
		}
	}
	f := client.Shadow().Figures()
	fmt.Println(f.Requests, "requests,", f.Moved, "would move; the first:", moves[0].Key, "from", moves[0].From, "to", moves[0].To)
	// Output: 100 requests, 33 would move; the first: user:2 from a to d
}

// exampleTB stands for *testing.T, which examples do not have.
type exampleTB struct{}

func (exampleTB) Helper()                   {}
func (exampleTB) Cleanup(func())            {}
func (exampleTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
