package capacity_test

import (
	"fmt"
	"time"

	"github.com/shardd/shardd/migrate/capacity"
)

// How the same fleet does after it lost a node.
func ExampleOutlook() {
	l := capacity.Load{Rate: 3000, Service: 5 * time.Millisecond, ServiceCV2: 1, ArrivalCV2: 1}
	for _, n := range []int{17, 16, 15} {
		o, err := l.Outlook(n)
		if err != nil {
			panic(err)
		}
		if o.P99 == nil {
			fmt.Printf("%d nodes at %.0f %%: does not keep up\n", o.Nodes, 100*o.Utilisation)
			continue
		}
		fmt.Printf("%d nodes at %.0f %%: %.0f %% wait, p99 %.1f ms\n", o.Nodes, 100*o.Utilisation, 100*o.Waiting, 1000**o.P99)
	}
	// Output:
	// 17 nodes at 88 %: 52 % wait, p99 9.9 ms
	// 16 nodes at 94 %: 73 % wait, p99 21.5 ms
	// 15 nodes at 100 %: does not keep up
}
