package balance

import (
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// Among is a Picker that can also choose among few of its candidates: the
// replicas of a key. The choosers over a cost are.
type Among interface {
	Picker
	// PickAmong is Pick among the members of the set whose indices are given;
	// those that may not be picked are passed over. O(len(among)). Errors:
	// ErrNoNode.
	PickAmong(now time.Duration, seed uint64, among []int) (Ticket, error)
}

// PickAmong picks the cheapest of the members whose indices are given, by weight;
// among equals by chance, the k-th with probability 1/k.
func (c *chooser) PickAmong(now time.Duration, seed uint64, among []int) (Ticket, error) {
	dice := splitmix.Source(seed)
	var best *candidate
	least, ties := 0.0, uint64(1)
	for _, i := range among {
		k := &c.set.all[i]
		if k.barred() {
			continue
		}
		switch x := c.of(k, now); {
		case best == nil || x < least:
			best, least, ties = k, x, 1
		case x == least:
			if ties++; dice.Below(ties) == 0 {
				best = k
			}
		}
	}
	if best == nil {
		return Ticket{}, ErrNoNode
	}
	return best.take(now), nil
}
