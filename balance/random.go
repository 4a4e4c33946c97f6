package balance

import (
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// Random picks by weight and looks at nothing. O(1).
//
// It needs no state and no agreement, but the longest of n queues grows as
// 1/(1-load) of the mean; P2C costs 10 ns more and keeps it at ln ln n.
type Random struct{ set *Set }

// NewRandom returns a random picker over set.
func NewRandom(set *Set) *Random { return &Random{set: set.Observed(nil)} }

// Pick draws a node by weight.
func (r *Random) Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	dice := splitmix.Source(seed)
	if len(exclude) == 0 && len(r.set.live) > 0 {
		return r.set.any(&dice).take(now), nil
	}
	c := r.set.draw(&dice, exclude, nil)
	if c == nil {
		return Ticket{}, r.set.none(exclude)
	}
	return c.take(now), nil
}

// Next returns a random picker over set; it cannot fail.
func (r *Random) Next(set *Set) (Picker, error) { return NewRandom(set), nil }

// Set returns the set the picker was made of.
func (r *Random) Set() *Set { return r.set }
