package balance

import (
	"time"

	"github.com/shardd/shardd/internal/splitmix"
)

// P2C draws two different nodes by weight and picks the cheaper one; the first
// drawn wins a tie, so that idle nodes are picked by weight. O(1).
//
// With n nodes at utilisation u the expected longest queue is ln ln n / ln 2
// instead of about ln n / ln(1/u) (Mitzenmacher 1996; Vvedenskaya, Dobrushin,
// Karpelevich 1996): nearly all of what a full scan gains, and it does not herd
// when loads are stale. Source of the rule: Finagle's P2CPick, tower's
// p2c::Balance.
type P2C struct {
	chooser
	plain bool // equal weights, requests in flight alone
}

// NewP2C returns a P2C picker over set. cost nil is requests in flight by
// weight; see package latency for others.
func NewP2C(set *Set, cost Cost) (*P2C, error) { return newP2C(newChooser(set, cost, nil)) }

func newP2C(c chooser, err error) (*P2C, error) {
	if err != nil {
		return nil, err
	}
	return &P2C{chooser: c, plain: c.cost == nil && c.set.equal}, nil
}

// Next returns a P2C picker over set with the same cost.
func (p *P2C) Next(set *Set) (Picker, error) { return newP2C(p.next(set)) }

// Pick returns the cheaper one of two.
func (p *P2C) Pick(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	live := p.set.live
	if len(exclude) != 0 || len(live) < 2 || !p.plain {
		return p.pickByCost(now, seed, exclude)
	}
	// Both draws from one word: 32 bits each are biased by n/2^32 at most.
	draw := splitmix.Mix(seed + splitmix.Golden)
	i := draw >> 32 * uint64(len(live)) >> 32
	j := draw & (1<<32 - 1) * uint64(len(live)-1) >> 32
	if j >= i {
		j++
	}
	a, b := &live[i], &live[j]
	// Nobody has less than nothing: not looking at b then leaves its line to the
	// core that wrote it (BenchmarkCores: 1.4 times the throughput of two cores).
	if least := a.node.flight.Load(); least > 0 && b.node.flight.Load() < least {
		a = b
	}
	return a.take(now), nil
}

func (p *P2C) pickByCost(now time.Duration, seed uint64, exclude []*Node) (Ticket, error) {
	dice := splitmix.Source(seed)
	a, b := p.set.pair(&dice, exclude)
	if b == nil {
		if a == nil {
			return Ticket{}, p.set.none(exclude)
		}
		return a.take(now), nil
	}
	// A cost may change when it is read (Peak EWMA decays): the first drawn is
	// asked first.
	if ca, cb := p.of(a, now), p.of(b, now); cb < ca {
		a = b
	}
	return a.take(now), nil
}

// pair draws two different candidates by weight; the second, or both, are nil
// if there are not as many.
func (s *Set) pair(dice *splitmix.Source, exclude []*Node) (a, b *candidate) {
	if len(exclude) == 0 && len(s.live) > 1 {
		a = s.any(dice)
		for range maxDraws {
			if b = s.any(dice); b != a {
				return a, b
			}
		}
		others := [1]*candidate{a}
		return a, s.scan(dice, nil, others[:])
	}
	if a = s.draw(dice, exclude, nil); a == nil || len(s.live) == 1 {
		return a, nil
	}
	others := [1]*candidate{a}
	return a, s.draw(dice, exclude, others[:])
}
