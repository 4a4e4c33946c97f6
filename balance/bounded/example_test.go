package bounded_test

import (
	"fmt"

	"github.com/shardd/shardd/balance/bounded"
)

// Eight requests for one key, with three nodes in the key's order of preference:
// each goes to the first that is under its cap.
func Example() {
	group := bounded.NewGroup(bounded.Options{})
	var members []bounded.Member
	for range 3 {
		members = append(members, bounded.Member{Node: group.NewNode(), Weight: 1})
	}
	set, err := group.NewSet(members, 1.25)
	if err != nil {
		fmt.Println(err)
		return
	}
	group.Use(set)
	for range 8 {
		for i := range set.Len() { // the order of preference
			if set.Admit(i, 1) {
				fmt.Print(i, " ")
				break
			}
		}
	}
	fmt.Println("total", group.Total(), "cap", set.Cap(0, 1))
	set.Node(0).Release(1)
	// Output: 0 1 0 1 0 1 2 0 total 8 cap 4
}
