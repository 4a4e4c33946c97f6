package balance

import (
	"slices"
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// FullScan looks at every node and picks the cheapest; ties are broken at random
// by weight. O(n).
//
// With one dispatcher that sees the true queues this is the best there is (join
// the shortest queue). With several, or with stale loads, it is the worst: all
// of them send to the same node at once; use P2C there. Source: Envoy's
// FULL_SCAN.
type FullScan struct {
	chooser
	plain bool // equal weights, requests in flight alone
}

// NewFullScan returns a full scan over set. cost nil is requests in flight by
// weight.
func NewFullScan(set *Set, cost Cost) (*FullScan, error) {
	return newFullScan(newChooser(set, cost, nil))
}

func newFullScan(c chooser, err error) (*FullScan, error) {
	if err != nil {
		return nil, err
	}
	return &FullScan{chooser: c, plain: c.cost == nil && c.set.equal}, nil
}

// Next returns a full scan over set with the same cost.
func (f *FullScan) Next(set *Set) (Picker, error) { return newFullScan(f.next(set)) }

// Pick returns the cheapest node.
func (f *FullScan) Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	dice := splitmix.Source(seed)
	if f.plain && len(exclude) == 0 && len(f.set.live) > 0 {
		return f.pickPlain(&dice).take(now), nil
	}
	var best *candidate
	var least, tied float64
	for i := range f.set.live {
		c := &f.set.live[i]
		if len(exclude) != 0 && slices.Contains(exclude, c.node) {
			continue
		}
		x := f.of(c, now)
		switch {
		case best == nil || x < least:
			best, least, tied = c, x, c.weight
		case x == least: // a reservoir: replaces with probability w / sum of the tied
			if tied += c.weight; unit(&dice)*tied < c.weight {
				best = c
			}
		}
	}
	if best == nil {
		return Ticket{}, f.set.none(exclude)
	}
	return best.take(now), nil
}

// pickPlain is the loop of Pick for equal weights and requests in flight.
func (f *FullScan) pickPlain(dice *splitmix.Source) *candidate {
	live := f.set.live
	best, least, tied := &live[0], live[0].node.flight.Load(), uint64(1)
	for i := 1; i < len(live); i++ {
		switch x := live[i].node.flight.Load(); {
		case x < least:
			best, least, tied = &live[i], x, 1
		case x == least:
			if tied++; dice.Below(tied) == 0 {
				best = &live[i]
			}
		}
	}
	return best
}

// Among returns the cheapest of the members named by index, the first one on a
// tie: the replicas of a key, say, in order of preference. Members that may not
// be picked are passed over; ErrNoNode or ErrExcluded if none is left.
func (f *FullScan) Among(now time.Duration, members []int, exclude []*Node) (Ticket, error) {
	var best *candidate
	least := 0.0
	for _, i := range members {
		c := &f.set.all[i]
		if c.barred() || slices.Contains(exclude, c.node) {
			continue
		}
		if x := f.of(c, now); best == nil || x < least {
			best, least = c, x
		}
	}
	if best == nil {
		return Ticket{}, f.set.none(exclude)
	}
	return best.take(now), nil
}
