package balance

import (
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// RandomTwo is nginx's "random two least_conn": two different nodes drawn by
// weight; the second one unless it has more requests in flight by weight. O(1).
//
// It is P2C but for ties, which go to the second draw. That is not by weight: of
// two idle nodes with weights 9 and 1 the light one is drawn second, and picked,
// nine times in ten. Use P2C; this is for those who come from nginx. Source:
// ngx_http_upstream_random_module.c, since 1.15.1.
type RandomTwo struct{ chooser }

// NewRandomTwo returns a random-two picker over set. cost nil is requests in
// flight by weight.
func NewRandomTwo(set *Set, cost Cost) (*RandomTwo, error) {
	return newRandomTwo(newChooser(set, cost, nil))
}

func newRandomTwo(c chooser, err error) (*RandomTwo, error) {
	if err != nil {
		return nil, err
	}
	return &RandomTwo{c}, nil
}

// Next returns a random-two picker over set with the same cost.
func (r *RandomTwo) Next(set *Set) (Picker, error) { return newRandomTwo(r.next(set)) }

// Pick returns one of two.
func (r *RandomTwo) Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	dice := splitmix.Source(seed)
	a, b := r.set.pair(&dice, exclude)
	if a == nil {
		return Ticket{}, r.set.none(exclude)
	}
	if b != nil && !(r.of(b, now) > r.of(a, now)) {
		a = b
	}
	return a.take(now), nil
}
