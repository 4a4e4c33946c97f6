package balance

import (
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// MaxChoices is the largest number of choices of LeastRequest and GoLeft, as in
// gRPC's proposal A48.
const MaxChoices = 10

// Choices configures LeastRequest.
type Choices struct {
	// D is the number of nodes drawn, 2 to MaxChoices; 0 means 2.
	D int
	// Replace draws with replacement, as Envoy's LEAST_REQUEST and gRPC's
	// least_request_experimental do: the same node may be drawn twice. With two
	// nodes the busier one then still gets a quarter.
	Replace bool
	// Cost is compared; nil is requests in flight by weight.
	Cost Cost
}

// LeastRequest draws d nodes by weight and picks the cheapest; the first drawn
// wins a tie. O(d).
//
// The longest queue is ln ln n / ln d: more than two choices gain little, and
// with stale loads they lose (see the page on stale information). Source: Azar
// et al. 1994; gRPC A48; Envoy's N_CHOICES.
type LeastRequest struct {
	chooser
	d       int
	replace bool
}

// NewLeastRequest returns a picker of the least among c.D over set. D out of
// range is refused with ErrInvalid.
func NewLeastRequest(set *Set, c Choices) (*LeastRequest, error) {
	if c.D == 0 {
		c.D = 2
	}
	if c.D < 2 || c.D > MaxChoices {
		return nil, Invalidf("balance: %d choices; give 2 to %d", c.D, MaxChoices)
	}
	ch, err := newChooser(set, c.Cost, nil)
	if err != nil {
		return nil, err
	}
	return &LeastRequest{chooser: ch, d: c.D, replace: c.Replace}, nil
}

// Next returns a picker of the same kind over set.
func (l *LeastRequest) Next(set *Set) (Picker, error) {
	ch, err := l.next(set)
	if err != nil {
		return nil, err
	}
	return &LeastRequest{chooser: ch, d: l.d, replace: l.replace}, nil
}

// Pick returns the cheapest of d.
func (l *LeastRequest) Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	dice := splitmix.Source(seed)
	live := l.set.live
	if len(exclude) != 0 || len(live) == 0 || !l.replace {
		return l.pickDistinct(now, &dice, exclude)
	}
	best := l.set.any(&dice)
	if l.cost == nil && l.set.equal {
		return l.pickPlain(now, &dice, best), nil
	}
	least := l.of(best, now)
	for range l.d - 1 {
		c := l.set.any(&dice)
		if x := l.of(c, now); x < least {
			best, least = c, x
		}
	}
	return best.take(now), nil
}

// pickPlain is the loop of Pick for equal weights and requests in flight.
func (l *LeastRequest) pickPlain(now time.Duration, dice *splitmix.Source, best *candidate) Ticket {
	live := l.set.live
	least := best.node.flight.Load()
	for k := 1; k < l.d && least > 0; k++ { // nobody has less than nothing; see P2C
		c := &live[dice.Below(uint64(len(live)))]
		if x := c.node.flight.Load(); x < least {
			best, least = c, x
		}
	}
	return best.take(now)
}

// pickDistinct draws without replacement, or fewer than d if there are fewer.
// With an exclude list, draws with replacement are made this way too.
func (l *LeastRequest) pickDistinct(now time.Duration, dice *splitmix.Source, exclude []*Node) (Ticket, error) {
	var drawn [MaxChoices]*candidate
	var best *candidate
	least := 0.0
	for k := range min(l.d, len(l.set.live)) {
		c := l.set.draw(dice, exclude, drawn[:k])
		if c == nil {
			break
		}
		drawn[k] = c
		if x := l.of(c, now); best == nil || x < least {
			best, least = c, x
		}
	}
	if best == nil {
		return Ticket{}, l.set.none(exclude)
	}
	return best.take(now), nil
}
