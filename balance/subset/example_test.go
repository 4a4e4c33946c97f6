package subset_test

import (
	"fmt"
	"slices"

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
