package wrr

import (
	"math"
	"time"

	"github.com/shardd/shardd/balance"
)

// MaxExpanded is the longest list that Expanded makes.
const MaxExpanded = 1 << 20

// Expanded goes through a list in which a node occurs as often as its weight
// says, all its copies in a row: 5:1:1 is a a a a a b c. O(1).
//
// It is here for comparison and for what already works that way: Smooth has the
// same shares without the bursts (a prefix of 20:10:5:1 is off by up to 8.9
// picks here and by 0.67 there).
type Expanded struct {
	set  *balance.Set
	list []int32
	turn *counter
}

// NewExpanded returns an expanded round robin over set, starting at turn start.
// Weights must be whole numbers whose sum, divided by their greatest common
// divisor, is at most MaxExpanded; others are refused with ErrInvalid.
func NewExpanded(set *balance.Set, start uint32) (*Expanded, error) {
	return newExpanded(set, newCounter(start))
}

func newExpanded(set *balance.Set, turn *counter) (*Expanded, error) {
	e := &Expanded{set: set.Observed(nil), turn: turn}
	var divisor, sum uint64
	for k := range set.Live() {
		m := set.Member(set.LiveIndex(k))
		if m.Weight != math.Trunc(m.Weight) {
			return nil, balance.Invalidf("wrr: weight %v of %s is not a whole number; use Smooth or EDF", m.Weight, m.Node.ID())
		}
		divisor = gcd(divisor, uint64(m.Weight))
		sum += uint64(m.Weight)
	}
	if divisor == 0 {
		return e, nil
	}
	if sum/divisor > MaxExpanded {
		return nil, balance.Invalidf("wrr: the weights add up to %d turns, more than %d; use Smooth or EDF", sum/divisor, MaxExpanded)
	}
	for k := range set.Live() {
		i := set.LiveIndex(k)
		for range uint64(set.Member(i).Weight) / divisor {
			e.list = append(e.list, int32(i))
		}
	}
	return e, nil
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (e *Expanded) next() int { return int(e.list[e.turn.next()%uint32(len(e.list))]) }

// Pick returns the node whose turn it is.
func (e *Expanded) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	if len(exclude) == 0 && len(e.list) > 0 {
		return e.set.Take(e.next(), now), nil
	}
	return turns(e.set, e.next, now, seed, exclude)
}

// Next returns an expanded round robin over set that goes on counting.
func (e *Expanded) Next(set *balance.Set) (balance.Picker, error) {
	n, err := newExpanded(set, e.turn)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Set returns the set the picker was made of.
func (e *Expanded) Set() *balance.Set { return e.set }
