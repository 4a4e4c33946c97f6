package prequal

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/internal/splitmix"
)

// Picker follows the best of the recent probes.
type Picker struct {
	cfg     Config
	set     *balance.Set
	pool    *pool
	queries atomic.Uint64
	probed  atomic.Uint64
}

// New returns a picker over set with an empty pool: until two probes have been
// answered it picks at random by weight. Settings out of range are refused with
// balance.ErrInvalid.
func New(set *balance.Set, cfg Config) (*Picker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	return newPicker(set, cfg), nil
}

func newPicker(set *balance.Set, cfg Config) *Picker {
	p := &Picker{cfg: cfg, pool: &pool{slots: make([]atomic.Pointer[answer], cfg.Pool)}}
	var o balance.Observer
	if cfg.Errors.Each > 0 {
		o = p
	}
	p.set = set.Observed(o)
	return p
}

// Next returns a picker over set; answers of nodes that stay remain in the pool.
func (p *Picker) Next(set *balance.Set) (balance.Picker, error) {
	n := newPicker(set, p.cfg)
	n.pool.carry(p.pool, set.From(p.set))
	n.queries.Store(p.queries.Load())
	n.probed.Store(p.probed.Load())
	return n, nil
}

// Set returns the set the picker was made of.
func (p *Picker) Set() *balance.Set { return p.set }

// Observe counts errors, if they are to be counted.
func (p *Picker) Observe(i int, _, now time.Duration, o balance.Outcome) {
	p.cfg.Errors.Note(p.set.Node(i), now, o)
}

// rule returns the rule as it is now: with RIFOnly everything is hot.
func (p *Picker) rule() rule {
	r := rule{hot: -1, linear: p.cfg.Linear}
	if !p.cfg.RIFOnly {
		r.hot = p.pool.hot.Load()
	}
	return r
}

// Pick returns the best node in the pool, or a random one if the pool has less
// than two. Call Probes after it.
func (p *Picker) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	dice := splitmix.Source(seed)
	query := p.queries.Add(1) - 1
	first := int(dice.Below(uint64(len(p.pool.slots))))
	best, slot, usable := p.pool.choose(first, now, p.cfg.MaxAge, p.rule(), func(i int) bool {
		m := p.set.Member(i)
		return m.Weight == 0 || m.Down || slices.Contains(exclude, m.Node) || p.failing(m.Node, now)
	})
	p.remove(query)
	if usable < 2 {
		i, err := p.set.Draw(&dice, exclude)
		if err != nil {
			return balance.Ticket{}, err
		}
		return p.set.Take(i, now), nil
	}
	best.rif.Add(1)
	if best.limited && best.left.Add(-1) <= 0 {
		p.pool.drop(slot, best)
	}
	return p.set.Take(best.member, now), nil
}

// failing tells whether recent errors weigh as much as a request in flight: a
// node that fails fast answers probes well.
func (p *Picker) failing(n *balance.Node, now time.Duration) bool {
	e := p.cfg.Errors
	return e.Each > 0 && e.Of(n, now)-float64(n.InFlight()) >= 1
}

// remove takes out the answers that are due with this query, the oldest and the
// worst in turn.
func (p *Picker) remove(query uint64) {
	done := uint64(math.Floor(float64(query) * p.cfg.Remove))
	for k := range spread(query, p.cfg.Remove) {
		if (done+uint64(k))%2 == 0 {
			p.pool.removeOldest()
		} else {
			p.pool.removeWorst(p.rule())
		}
	}
}

// Probes appends the indices of the members to probe now, after a query, to dst:
// random ones by weight, all different. Nodes that were probed too often to
// little effect are the caller's business.
func (p *Picker) Probes(seed uint64, dst []int) []int {
	dice := splitmix.Source(seed)
	first := len(dst)
	count := min(spread(p.probed.Add(1)-1, p.cfg.Probes), p.set.Live())
	for tries := 0; len(dst)-first < count && tries < 16*count; tries++ {
		i, err := p.set.Draw(&dice, nil)
		if err != nil {
			return dst
		}
		if !slices.Contains(dst[first:], i) {
			dst = append(dst, i)
		}
	}
	return dst
}

// Report takes the answer of member i to a probe: its requests in flight, and
// the latency it expects with them. Answers that are negative are passed over.
func (p *Picker) Report(i int, now time.Duration, rif int, latency time.Duration) {
	if rif < 0 || latency < 0 {
		return
	}
	a := &answer{member: i, latency: latency, at: now}
	a.rif.Store(int64(rif))
	if b := p.cfg.reuse(max(1, p.set.Live())); b > 0 {
		a.limited = true
		a.left.Store(int64(max(1, spread(p.pool.count(), b))))
	}
	p.pool.add(a, p.cfg.Quantile)
}

// count numbers the reports.
func (p *pool) count() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports++
	return p.reports - 1
}
