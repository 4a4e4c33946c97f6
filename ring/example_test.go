package ring_test

import (
	"fmt"

	"github.com/shardd/shardd/ring"
)

// The owner of a hash, and who is next; node b owns twice as much.
func ExampleNew() {
	r, err := ring.New([]string{"a", "b", "c"}, []uint32{1, 2, 1}, 160)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.NumPoints(), r.Locate(1<<40), r.AppendReplicas(nil, 1<<40, 2))
	// Output: 640 1 [1 2]
}

// Points of a foreign system: a hash belongs to the first point at or after it.
func ExamplePoint() {
	r, err := ring.FromPoints(2, []ring.Point{{Place: 100, Owner: 0}, {Place: 200, Owner: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Locate(100), r.Locate(101), r.Locate(201)) // the last wraps round
	// Output: 0 1 0
}
