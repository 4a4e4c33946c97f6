package subset

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/internal/decay"
	"github.com/shardd/shardd/internal/splitmix"
)

// ApertureConfig configures Aperture; the zero value is Finagle's code (its
// guide names 0.5, 2 and 5 s, which are older).
type ApertureConfig struct {
	// Low and High are the loads, in requests in flight a node, at which the
	// window narrows and widens by one; 0 means 0.875 and 1.125.
	Low, High float64
	// Smooth is the time over which the load is averaged; 0 means 15 s.
	Smooth time.Duration
	// Min and Max bound the window; 0 means 1 and all nodes.
	Min, Max int
	// Errors lets recent errors count as requests in flight; the zero value is off.
	Errors balance.ErrorLoad
}

// Aperture is P2C over the first nodes of a set, as many as keep the load near
// one request in flight a node. O(1).
//
// The order is the set's: give every client its own, or all of them widen onto
// the same nodes. Deterministic's or Random's with k of all nodes will do;
// Finagle places clients and nodes on a ring. Picks use two draws without regard
// to weight; weight 0 gets none.
//
// A client with few requests then talks to few nodes and sees their load well.
// What it does not see is the other clients: where windows overlap, load is as
// uneven as the overlap. Source: Finagle Aperture.scala, LoadBand.scala.
type Aperture struct {
	cfg   ApertureConfig
	set   *balance.Set
	state *window
}

// window is the controller's state, shared with successors.
type window struct {
	size   atomic.Int64
	flight atomic.Int64 // of this picker and its successors
	load   decay.Value  // averaged
}

// NewAperture returns an aperture over set that starts at Min nodes. Settings
// out of range are refused with balance.ErrInvalid.
func NewAperture(set *balance.Set, cfg ApertureConfig) (*Aperture, error) {
	if cfg.Low == 0 {
		cfg.Low = 0.875
	}
	if cfg.High == 0 {
		cfg.High = 1.125
	}
	if cfg.Smooth == 0 {
		cfg.Smooth = 15 * time.Second
	}
	cfg.Min = max(1, cfg.Min)
	if !(cfg.Low > 0 && cfg.Low < cfg.High && cfg.High < 1e9) || cfg.Smooth < 0 || cfg.Max < 0 ||
		cfg.Max > 0 && cfg.Max < cfg.Min || !(cfg.Errors.Each >= 0) || cfg.Errors.Decay < 0 {
		return nil, balance.Invalidf("subset: ApertureConfig%+v: want 0 < Low < High, Min <= Max and nothing negative", cfg)
	}
	a := &Aperture{cfg: cfg, state: new(window)}
	a.state.size.Store(int64(cfg.Min))
	a.set = set.Observed(a)
	return a, nil
}

// Next returns an aperture over set with the same window and load.
func (a *Aperture) Next(set *balance.Set) (balance.Picker, error) {
	n := &Aperture{cfg: a.cfg, state: a.state}
	n.set = set.Observed(n)
	return n, nil
}

// Set returns the set the picker was made of.
func (a *Aperture) Set() *balance.Set { return a.set }

// Size returns the number of nodes in the window.
func (a *Aperture) Size() int {
	most := a.set.Live()
	if a.cfg.Max > 0 {
		most = min(most, a.cfg.Max)
	}
	return max(min(int(a.state.size.Load()), most), min(a.cfg.Min, a.set.Live()))
}

// Pick returns the less loaded of two nodes in the window.
func (a *Aperture) Pick(now time.Duration, seed uint64, exclude []*balance.Node) (balance.Ticket, error) {
	dice := splitmix.Source(seed)
	n := a.Size()
	if n == 0 {
		return balance.Ticket{}, balance.ErrNoNode
	}
	first := int(dice.Below(uint64(n)))
	i := a.set.LiveIndex(first)
	if n > 1 {
		second := int(dice.Below(uint64(n - 1)))
		if second >= first {
			second++
		}
		if k := a.set.LiveIndex(second); a.worse(i, k, now, exclude) {
			i = k
		}
	}
	if len(exclude) != 0 && slices.Contains(exclude, a.set.Node(i)) {
		var err error
		if i, err = a.other(n, &dice, exclude); err != nil {
			return balance.Ticket{}, err
		}
	}
	return a.set.Take(i, now), nil
}

// worse tells whether k should be picked instead of i.
func (a *Aperture) worse(i, k int, now time.Duration, exclude []*balance.Node) bool {
	if len(exclude) != 0 {
		if slices.Contains(exclude, a.set.Node(k)) {
			return false
		}
		if slices.Contains(exclude, a.set.Node(i)) {
			return true
		}
	}
	return a.cfg.Errors.Of(a.set.Node(k), now) < a.cfg.Errors.Of(a.set.Node(i), now)
}

// other draws a node of the window that is not excluded, and any node if the
// window has none.
func (a *Aperture) other(n int, dice *splitmix.Source, exclude []*balance.Node) (int, error) {
	found, seen := -1, uint64(0)
	for k := range n {
		i := a.set.LiveIndex(k)
		if slices.Contains(exclude, a.set.Node(i)) {
			continue
		}
		if seen++; dice.Below(seen) == 0 {
			found = i
		}
	}
	if found >= 0 {
		return found, nil
	}
	return a.set.Draw(dice, exclude)
}

// Start counts a request and moves the window.
func (a *Aperture) Start(_ int, now time.Duration) { a.adjust(now, 1) }

// Observe counts a request's end and moves the window.
func (a *Aperture) Observe(i int, _, now time.Duration, o balance.Outcome) {
	a.cfg.Errors.Note(a.set.Node(i), now, o)
	a.adjust(now, -1)
}

// adjust is the load band: the average load a node above High widens the window
// by one, below Low narrows it by one.
func (a *Aperture) adjust(now time.Duration, by int64) {
	s := a.state
	load := s.load.Mean(now, a.cfg.Smooth, float64(max(0, s.flight.Add(by))))
	size := s.size.Load()
	n := int64(a.Size())
	switch perNode := load / float64(max(1, n)); {
	case perNode >= a.cfg.High:
		s.size.CompareAndSwap(size, n+1)
	case perNode <= a.cfg.Low:
		s.size.CompareAndSwap(size, max(1, n-1))
	}
}
