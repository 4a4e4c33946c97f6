package shadow_test

import (
	"fmt"

	"github.com/shardd/shardd/migrate"
	"github.com/shardd/shardd/sdk/shadow"
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
