// Package budget says how many retries the requests of a window pay for.
//
// The semantics, by name, since three systems use the word for three things:
// a share of the requests in a window, with a floor and a clamp.
//
//	allowed = min(Max, max(Min, floor(Share * requests)))
//
// requests = first attempts counted by Request in the last Window; a retry or
// hedge is admitted by Retry while the retries of the same Window, this one
// included, are at most allowed. Retries are not requests: they earn nothing.
//
// Law: over any window, load <= (1 + Share) * requests while
// Share * requests >= Min. Admission is exact among goroutines within a tenth of
// the window; two that meet at the border of two tenths may exceed it by one each.
//
// Cost: Request is one atomic add (6 ns), Retry about 30 atomic loads and a
// compare-and-swap (40 ns). No lock, no allocation.
//
// Source: the idea is in "Site Reliability Engineering", ch. 21 ("Handling
// Overload"). The default share of 0.2 is common to Finagle, Envoy and
// failsafe-go; the floor of 3 is Envoy's and failsafe-go's, there counted in
// flight, here per window. docs/algorithms/resilience.md compares them.
//
// What it does not do: it does not know which errors may be retried (package
// retry), does not wait, and keeps no balance beyond the window: credit of a
// quiet minute cannot be spent in a second.
package budget

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/shardd/shardd/resilience/internal/window"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("budget: bad config")

// Defaults of Config.
const (
	DefaultShare  = 0.2
	DefaultMin    = 3
	DefaultWindow = 10 * time.Second
)

// Config says how much may be retried. The zero Config is the default.
type Config struct {
	// Share is the retries per request, usually under 1; 0 means DefaultShare
	// (0.2), a negative number means none: only the floor is left.
	Share float64
	// Min is the floor: retries a window allows whatever the requests, for
	// clients with few of them; 0 means DefaultMin (3), negative means none.
	Min int
	// Max is the clamp: retries a window allows at most. It bounds the burst
	// at the start of an outage, when a whole window's credit is unspent;
	// 0 means no clamp.
	Max int
	// Window is the time both counts look back, exact to a tenth; 0 means
	// DefaultWindow (10 s), which is Finagle's. A shorter one bounds bursts
	// better, a longer one is fairer to clients with few requests.
	Window time.Duration
}

// Budget counts requests and retries. Make one with New for everything that one
// client sends to one service; it must not be copied. Its methods may be called
// by any number of goroutines.
type Budget struct {
	share    float64
	min, max uint64
	w        *window.Window
}

// New returns a budget. The error wraps ErrConfig.
func New(c Config) (*Budget, error) {
	if math.IsNaN(c.Share) || math.IsInf(c.Share, 0) {
		return nil, fmt.Errorf("%w: share %v: want a number, 0 for the default, negative for none", ErrConfig, c.Share)
	}
	if c.Max < 0 || c.Window < 0 {
		return nil, fmt.Errorf("%w: max %d, window %v: want 0 or more", ErrConfig, c.Max, c.Window)
	}
	if c.Share == 0 {
		c.Share = DefaultShare
	}
	if c.Min == 0 {
		c.Min = DefaultMin
	}
	if c.Max == 0 {
		c.Max = math.MaxInt32
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	return &Budget{
		share: max(0, c.Share), min: uint64(max(0, c.Min)), max: uint64(c.Max), w: window.New(c.Window),
	}, nil
}

// Request counts a first attempt that begins at now.
func (b *Budget) Request(now time.Duration) { b.w.Add(now, window.A) }

// Retry reports whether a retry or hedge may begin at now, and counts it if so.
func (b *Budget) Retry(now time.Duration) bool {
	requests, _ := b.w.Sums(now)
	return b.w.TryAdd(now, window.B, b.allowed(requests))
}

// Refund gives back a retry that Retry admitted and that was not sent, because
// the caller gave up while it waited. More refunds than retries change nothing.
func (b *Budget) Refund(now time.Duration) { b.w.Undo(now, window.B) }

// Stats is what a budget holds at one time.
type Stats struct {
	Requests uint64 // first attempts in the window
	Retries  uint64 // retries and hedges admitted in the window
	Allowed  uint64 // retries the window allows in all
}

// Stats returns the counts at now, one after another, not as of one instant.
func (b *Budget) Stats(now time.Duration) Stats {
	requests, retries := b.w.Sums(now)
	return Stats{requests, retries, b.allowed(requests)}
}

func (b *Budget) allowed(requests uint64) uint64 {
	// A share of 0.1 of 1,000 is 100, although 0.1 is not a binary fraction:
	// the nudge is far under one retry.
	share := uint64(min(b.share*float64(requests)+1e-9, math.MaxUint32))
	return min(b.max, max(b.min, share))
}
