package subset_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/subset"
)

// Four clients with three of twelve nodes each: every node has one client.
func ExampleDeterministic() {
	var all []int
	for client := range 4 {
		mine, err := subset.Deterministic(12, 3, client)
		if err != nil {
			panic(err)
		}
		all = append(all, mine...)
	}
	slices.Sort(all)
	fmt.Println(all)
	// Output: [0 1 2 3 4 5 6 7 8 9 10 11]
}

// The smallest free number goes to the next client.
func ExampleNumbers() {
	numbers, err := subset.NewNumbers(0)
	if err != nil {
		panic(err)
	}
	fmt.Println(numbers.Lease("client-a", 0), numbers.Lease("client-b", 0))
	numbers.Release("client-a")
	fmt.Println(numbers.Lease("client-c", 0))
	// Output:
	// 0 1
	// 0
}

// The window is as wide as the load: a client that has little under way talks to
// few nodes, one with much to more of them.
func ExampleAperture() {
	var members []balance.Member
	for k := range 20 {
		members = append(members, balance.Member{Node: balance.NewNode(fmt.Sprint("n", k), 0), Weight: 1})
	}
	set, err := balance.NewSet(members)
	if err != nil {
		panic(err)
	}
	aperture, err := subset.NewAperture(set, subset.ApertureConfig{Smooth: time.Second, Min: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println(aperture.Size())
	for k := range 100 { // none of them ends
		if _, err := aperture.Pick(time.Duration(k)*100*time.Millisecond, uint64(k), nil); err != nil {
			panic(err)
		}
	}
	fmt.Println(aperture.Size())
	// Output:
	// 2
	// 20
}
