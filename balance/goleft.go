package balance

import (
	"slices"
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// GoLeft splits the nodes into d groups in the order of the set, draws one node
// from each and picks the cheapest; the leftmost group wins a tie. Weights other
// than 0 do not change the draws. O(d).
//
// The asymmetry makes it better than d choices: the largest of n bins holds
// ln ln n / (d ln phi_d) + O(1) of n balls, phi_2 = 1.6180, phi_3 = 1.8393, phi_4
// = 1.9276 (Vöcking, "How Asymmetry Helps Load Balancing", FOCS 1999). The gain
// is small at any real n, and the left group is a little busier for ever.
type GoLeft struct {
	chooser
	d int
}

// NewGoLeft returns an always-go-left picker with d groups, 2 to MaxChoices (0
// means 2), over set. With fewer than d nodes there are as many groups as
// nodes. cost nil is requests in flight by weight.
func NewGoLeft(set *Set, d int, cost Cost) (*GoLeft, error) {
	if d == 0 {
		d = 2
	}
	if d < 2 || d > MaxChoices {
		return nil, Invalidf("balance: %d groups; give 2 to %d", d, MaxChoices)
	}
	c, err := newChooser(set, cost, nil)
	if err != nil {
		return nil, err
	}
	return &GoLeft{chooser: c, d: d}, nil
}

// Next returns a picker of the same kind over set.
func (g *GoLeft) Next(set *Set) (Picker, error) {
	c, err := g.next(set)
	if err != nil {
		return nil, err
	}
	return &GoLeft{chooser: c, d: g.d}, nil
}

// Pick returns the cheapest of one node a group.
func (g *GoLeft) Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	dice := splitmix.Source(seed)
	n, d := len(g.set.live), min(g.d, len(g.set.live))
	var best *candidate
	least := 0.0
	for k := range d {
		lo, hi := k*n/d, (k+1)*n/d
		c := &g.set.live[lo+int(dice.Below(uint64(hi-lo)))]
		if len(exclude) != 0 && slices.Contains(exclude, c.node) {
			continue
		}
		if x := g.of(c, now); best == nil || x < least {
			best, least = c, x
		}
	}
	if best == nil { // all of the drawn are excluded
		best = g.set.draw(&dice, exclude, nil)
	}
	if best == nil {
		return Ticket{}, g.set.none(exclude)
	}
	return best.take(now), nil
}
