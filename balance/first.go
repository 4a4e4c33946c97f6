package balance

import (
	"errors"
	"time"
)

// First picks from the first picker that has an eligible node: a zone of its
// own before the others, say. An error other than ErrNoNode ends the search;
// with nobody left it returns the last picker's error, ErrNoNode without any.
//
// It does not probe the nodes of an empty tier: that is health's task, which
// makes the tier's next picker when a node is well again.
func First(now time.Duration, seed uint64, exclude []*Node, tiers ...Picker) (Ticket, error) {
	err := ErrNoNode
	for _, p := range tiers {
		var t Ticket
		if t, err = p.Pick(now, seed, exclude); err == nil || !errors.Is(err, ErrNoNode) {
			return t, err
		}
	}
	return Ticket{}, err
}
