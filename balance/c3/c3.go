package c3

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
	"github.com/shardd/shardd/internal/splitmix"
)

// ErrLimited says that every eligible node is at its rate limit. Wait for
// Picker.Wait and pick again, or shed the request.
var ErrLimited = errors.New("c3: all nodes are at their rate limit")

// Config configures a Picker; the zero value is the paper's score without rate
// control, for one client.
type Config struct {
	// Alpha is the weight of the newest reply in the averages, above 0 to 1; 0
	// means 0.9 (the authors'; Elasticsearch: 0.3).
	Alpha float64
	// Clients is how many clients send to the same nodes; 0 means 1.
	Clients int
	// Exponent is the power of the queue length; 0 means 3.
	Exponent float64
	// Default is the response time assumed of a node that has not answered yet
	// while it is busy; 0 means 30 ms. While it is idle it is sent a request next,
	// so that it gets one probe and no flood.
	Default time.Duration
	// Stale is the age at which what is known of a node no longer counts, so that
	// it is probed again; 0 means 10 s, below 0 never. C3 itself hears of slow
	// replicas by the shadow reads of its store.
	Stale time.Duration
	// Choices is how many nodes are drawn and ranked; 0 ranks all.
	Choices int
	// Rate switches rate control on; nil is off.
	Rate *Rate
	// Errors lets recent errors count as outstanding requests; the zero value is
	// off.
	Errors balance.ErrorLoad
}

func (c *Config) fill() error {
	if !(c.Alpha >= 0 && c.Alpha <= 1) || c.Clients < 0 || !(c.Exponent >= 0 && c.Exponent <= 10) ||
		c.Default < 0 || c.Choices < 0 || !(c.Errors.Each >= 0) || c.Errors.Decay < 0 {
		return balance.Invalidf("c3: Config%+v: Alpha must be in [0, 1], Exponent in [0, 10] and nothing negative", *c)
	}
	if c.Alpha == 0 {
		c.Alpha = 0.9
	}
	if c.Exponent == 0 {
		c.Exponent = 3
	}
	if c.Default == 0 {
		c.Default = 30 * time.Millisecond
	}
	if c.Stale == 0 {
		c.Stale = 10 * time.Second
	}
	c.Clients = max(1, c.Clients)
	return nil
}

// Picker ranks by C3's score.
type Picker struct {
	cfg   Config
	rate  rate
	set   *balance.Set
	state []*state
}

// state is what is known of a node; it outlives pickers. The averages are bits
// of float64; NaN, which no sample is, stands for none yet.
type state struct {
	response atomic.Uint64 // nanoseconds
	service  atomic.Uint64 // nanoseconds
	queue    atomic.Uint64
	heard    atomic.Int64 // time of the last reply
	_        [64 - 4*8]byte
	limit    limiter
}

// New returns a picker over set. Settings out of range are refused with
// balance.ErrInvalid.
func New(set *balance.Set, cfg Config) (*Picker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	p := &Picker{cfg: cfg}
	if cfg.Rate != nil {
		var err error
		if p.rate, err = cfg.Rate.fill(); err != nil {
			return nil, err
		}
	}
	p.bind(set, nil, nil)
	return p, nil
}

func (p *Picker) bind(set *balance.Set, was []*state, from []int) {
	p.state = make([]*state, set.Len())
	for i := range p.state {
		if from != nil && from[i] >= 0 {
			p.state[i] = was[from[i]]
			continue
		}
		s := new(state)
		for _, a := range []*atomic.Uint64{&s.response, &s.service, &s.queue} {
			a.Store(math.Float64bits(math.NaN()))
		}
		s.limit.init(p.rate)
		p.state[i] = s
	}
	p.set = set.Observed(p)
}

// Next returns a picker over set; nodes that stay keep their averages and rates.
func (p *Picker) Next(set *balance.Set) (balance.Picker, error) {
	n := &Picker{cfg: p.cfg, rate: p.rate}
	n.bind(set, p.state, set.From(p.set))
	return n, nil
}

// Set returns the set the picker was made of.
func (p *Picker) Set() *balance.Set { return p.set }

// maxRanked bounds how many nodes that are at their limit a pick passes over.
const maxRanked = 8

// Pick returns the node with the smallest score that is below its rate limit.
func (p *Picker) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	dice := splitmix.Source(seed)
	var buf [maxRanked + 1]int // at their limit
	full := buf[:0]
	for len(full) < maxRanked {
		i, err := p.best(now, dice, exclude, full)
		if err != nil {
			return balance.Ticket{}, err
		}
		if i < 0 {
			return balance.Ticket{}, ErrLimited
		}
		if !p.limited() || p.state[i].limit.admit(now, p.rate) {
			return p.set.Take(i, now), nil
		}
		full = append(full, i)
	}
	return p.pickAny(now, exclude)
}

func (p *Picker) limited() bool { return p.cfg.Rate != nil }

// pickAny takes the first node in the order of the set that its limit admits.
func (p *Picker) pickAny(now time.Duration, exclude []*balance.Node) (balance.Ticket, error) {
	for k := range p.set.Live() {
		i := p.set.LiveIndex(k)
		if !slices.Contains(exclude, p.set.Node(i)) && p.state[i].limit.admit(now, p.rate) {
			return p.set.Take(i, now), nil
		}
	}
	return balance.Ticket{}, ErrLimited
}

// best returns the index with the smallest score that is not full, ties at
// random; -1 if all are full.
func (p *Picker) best(now time.Duration, dice splitmix.Source, exclude []*balance.Node, full []int) (int, error) {
	if p.cfg.Choices > 0 && p.cfg.Choices < p.set.Live() {
		return p.bestDrawn(now, &dice, exclude, full)
	}
	best, least, tied, seen := -1, 0.0, uint64(0), false
	for k := range p.set.Live() {
		i := p.set.LiveIndex(k)
		if len(exclude) != 0 && slices.Contains(exclude, p.set.Node(i)) {
			continue
		}
		seen = true
		if slices.Contains(full, i) {
			continue
		}
		switch x := p.Score(i, now); {
		case best < 0 || x < least:
			best, least, tied = i, x, 1
		case x == least:
			if tied++; dice.Below(tied) == 0 {
				best = i
			}
		}
	}
	if !seen {
		return -1, p.set.None(exclude)
	}
	return best, nil
}

// bestDrawn is best among Choices draws.
func (p *Picker) bestDrawn(now time.Duration, dice *splitmix.Source, exclude []*balance.Node, full []int) (int, error) {
	best, least := -1, 0.0
	for range p.cfg.Choices {
		i, err := p.set.Draw(dice, exclude)
		if err != nil {
			return -1, err
		}
		if slices.Contains(full, i) {
			continue
		}
		if x := p.Score(i, now); best < 0 || x < least {
			best, least = i, x
		}
	}
	return best, nil
}

// Score returns member i's score in nanoseconds. Where only response times are
// known it is R * q^3.
func (p *Picker) Score(i int, now time.Duration) float64 {
	s := p.state[i]
	response := load(&s.response)
	if response != response || p.stale(s, now) {
		if p.set.Node(i).InFlight() == 0 {
			return 1
		}
		response = or(response, float64(p.cfg.Default))
	}
	service := or(load(&s.service), response)
	queue := or(load(&s.queue), 0)
	q := 1 + p.cfg.Errors.Of(p.set.Node(i), now)*float64(p.cfg.Clients) + queue
	power := q * q * q
	if p.cfg.Exponent != 3 {
		power = math.Pow(q, p.cfg.Exponent)
	}
	return response - service + power*service
}

// stale tells whether the last reply is too old to count.
func (p *Picker) stale(s *state, now time.Duration) bool {
	heard := time.Duration(s.heard.Load())
	return p.cfg.Stale > 0 && (decay.Elapsed(heard, now) > p.cfg.Stale || decay.Elapsed(now, heard) > p.cfg.Stale)
}

func load(a *atomic.Uint64) float64 { return math.Float64frombits(a.Load()) }

// or returns x, or def for NaN.
func or(x, def float64) float64 {
	if x != x {
		return def
	}
	return x
}

// Observe takes what a reply tells; Ignored outcomes are passed over.
func (p *Picker) Observe(i int, start, now time.Duration, o balance.Outcome) {
	p.cfg.Errors.Note(p.set.Node(i), now, o)
	if o.Result == balance.Ignored {
		return
	}
	s := p.state[i]
	took := max(1, float64(decay.Elapsed(start, now)))
	s.heard.Store(int64(now))
	p.average(&s.response, took)
	if o.Service > 0 {
		p.average(&s.service, min(float64(o.Service), took))
	}
	if o.HasQueue && o.Queue >= 0 && o.Queue < 1e12 {
		p.average(&s.queue, o.Queue)
	}
	if p.limited() {
		s.limit.answered(now, p.rate)
	}
}

func (p *Picker) average(a *atomic.Uint64, x float64) {
	for {
		old := a.Load()
		next := p.cfg.Alpha*x + (1-p.cfg.Alpha)*or(math.Float64frombits(old), x)
		if a.CompareAndSwap(old, math.Float64bits(next)) {
			return
		}
	}
}

// Wait returns how long it takes until some eligible node may be sent to; 0
// without rate control.
func (p *Picker) Wait(now time.Duration) time.Duration {
	if !p.limited() || p.set.Live() == 0 {
		return 0
	}
	least := time.Duration(math.MaxInt64)
	for k := range p.set.Live() {
		least = min(least, p.state[p.set.LiveIndex(k)].limit.wait(now, p.rate))
	}
	return least
}
