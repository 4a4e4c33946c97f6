package sim

import (
	"strconv"

	"github.com/shardd/shardd/balance"
)

// NewSet returns a set of n nodes that no other client shares, with weight 1, or
// the weights given.
func NewSet(n int, weights ...float64) (*balance.Set, error) {
	members := make([]balance.Member, n)
	for i := range members {
		members[i] = balance.Member{Node: balance.NewNode(strconv.Itoa(i), 0), Weight: 1}
		if i < len(weights) {
			members[i].Weight = weights[i]
		}
	}
	return balance.NewSet(members)
}
