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

// Servers say in their replies what they hold, of all clients: the bound is then
// on the whole load, not on this client's share of it.
func ExampleView() {
	for _, view := range []bounded.View{bounded.Own, bounded.Reported} {
		group := bounded.NewGroup(bounded.Options{View: view})
		a, b := group.NewNode(), group.NewNode()
		set, err := group.NewSet([]bounded.Member{{Node: a, Weight: 1}, {Node: b, Weight: 1}}, 1.25)
		if err != nil {
			fmt.Println(err)
			return
		}
		group.Use(set)

		a.Count(1)
		a.Report(20, 1) // 20 more there, of other clients
		a.Release(1)
		fmt.Println(set.Load(0), set.Admit(0, 1), set.Admit(1, 1))
	}
	// Output:
	// 0 true true
	// 20 false true
}

// What a node's counters say after a refusal and a request over the cap.
func ExampleNodeStats() {
	group := bounded.NewGroup(bounded.Options{})
	a, b := group.NewNode(), group.NewNode()
	set, err := group.NewSet([]bounded.Member{{Node: a, Weight: 1}, {Node: b, Weight: 1}}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	group.Use(set)
	fmt.Println(set.Admit(0, 1), set.AdmitExact(0, 1)) // AdmitExact counts the refusal
	a.Force(1)                                         // all refused: it goes home over the cap

	stats := a.Stats()
	fmt.Println("picks", stats.Picks, "in flight", stats.InFlight, "refused", stats.Refused, "over", stats.Over)
	// Output:
	// true false
	// picks 2 in flight 2 refused 1 over 1
}

// A control loop that sees all loads publishes what each node turns away. Node 0
// has four times the mean; the others take what it turns away.
func ExampleSpill() {
	spill := bounded.Spill{Factor: 1.25}
	offered := []float64{40, 4, 4, 4, 4, 4} // by preference
	weights := []float64{1, 1, 1, 1, 1, 1}
	shares := make([]float64, len(offered))
	for range 12 {
		own, all := make([]float64, len(offered)), make([]float64, len(offered))
		for i, load := range offered {
			own[i] = load * (1 - shares[i])
			all[i] += own[i]
			for k := range all { // a key's next node is any of the others
				if k != i {
					all[k] += (load - own[i]) / 5
				}
			}
		}
		shares = spill.Next(shares, own, all, weights)
	}
	fmt.Printf("%.2f\n", shares)
	// Output: [0.72 0.00 0.00 0.00 0.00 0.00]
}
