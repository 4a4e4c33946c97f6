// Package ratelimit bounds what goes out by rate: a token bucket that lets
// bursts through, and a leaky bucket that spaces everything evenly. Both count
// in cost, an integer of the caller's unit (requests, bytes, tokens of a model);
// a cost of 1 everywhere limits requests.
//
//	Token   tokens = min(Burst, tokens + Rate * dt); admitted iff tokens >= cost
//	Leaky   level = max(0, level - Rate * dt); admitted iff level + cost <= Queue;
//	        it leaves after level/Rate, when what came before it has run out
//
// Law, over any time t: Token admits at most Burst + Rate * t, Leaky lets out at
// most one request more than Rate * t, and in order of admission. A now that is
// up to a second behind the largest one seen counts as that one; a clock that
// goes back further goes on from there, so that it gives nothing for free and
// stops nothing.
//
// Cost: about 100 ns, no allocation. Under both is
// golang.org/x/time/rate, which has a mutex; ours is around it, because that
// limiter counts time twice when calls reach it with times out of order. A
// refusal writes nothing.
//
// Source: the leaky bucket as a meter is the token bucket upside down
// (ITU-T I.371, "continuous-state leaky bucket"; J. Turner 1986): level = Burst
// - tokens. So the queue is made of the same limiter plus the wait level/Rate.
//
// When not to use it: to protect a server whose speed changes (limit by
// concurrency: package limit), or as a quota over a fleet of clients: each
// process counts for itself.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ErrConfig says that a Config cannot be used; the text says why.
var ErrConfig = errors.New("ratelimit: bad config")

// ErrLimited says that the rate is used up now: drop, go elsewhere, or come
// back later.
var ErrLimited = errors.New("ratelimit: limited")

// ErrCost says that a cost is not positive or larger than the bucket, so that it
// can never be admitted: split the request or enlarge the bucket.
var ErrCost = errors.New("ratelimit: cost does not fit the bucket")

// Config says how much may go.
type Config struct {
	// Rate is cost a second, more than 0.
	Rate float64
	// Bucket is, for Token, the largest burst, and for Leaky the most that may
	// wait (the longest wait is Bucket/Rate); in cost. 0 means one second's
	// worth, Rate rounded up.
	Bucket int
}

// bucket is an x/time/rate limiter that is told the time, in order.
type bucket struct {
	mu  sync.Mutex
	lim *rate.Limiter // guarded by mu: its own mutex is not enough, see the package comment
	c   Config

	now   time.Duration // largest time seen, shift included
	shift time.Duration // added to the caller's now since the clock went back
}

// slack is how far behind a now may be and still be the same clock, read a
// little earlier by a goroutine that came a little later.
const slack = time.Second

func (b *bucket) setUp(c Config) error {
	if !(c.Rate > 0) || math.IsInf(c.Rate, 0) {
		return fmt.Errorf("%w: rate %v: want more than 0", ErrConfig, c.Rate)
	}
	if c.Bucket == 0 {
		c.Bucket = int(min(math.Ceil(c.Rate), math.MaxInt32))
	}
	if c.Bucket < 0 {
		return fmt.Errorf("%w: bucket %d: want 1 or more, or 0 for a second's worth", ErrConfig, c.Bucket)
	}
	b.lim, b.c = rate.NewLimiter(rate.Limit(c.Rate), c.Bucket), c
	return nil
}

func (b *bucket) fits(cost int) error {
	if cost < 1 || cost > b.c.Bucket {
		return fmt.Errorf("%w: %d not in 1..%d", ErrCost, cost, b.c.Bucket)
	}
	return nil
}

// time moves the bucket's clock to now, never back, and returns it for the
// limiter, together with how far the caller's now is behind. b.mu is held.
func (b *bucket) time(now time.Duration) (at time.Time, behind time.Duration) {
	behind = b.now - (now + b.shift)
	if behind > slack {
		b.shift, behind = b.shift+behind, 0
	}
	b.now = max(b.now, now+b.shift)
	return time.Unix(0, 0).Add(b.now), max(0, behind)
}

// Token is a token bucket; it starts full. Make one with NewToken; it must not
// be copied. Its methods may be called by any number of goroutines.
type Token struct{ b bucket }

// NewToken returns a token bucket. The error wraps ErrConfig.
func NewToken(c Config) (*Token, error) {
	t := &Token{}
	if err := t.b.setUp(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Admit takes cost tokens at now. The error is ErrLimited or ErrCost; nothing is
// taken then.
func (t *Token) Admit(now time.Duration, cost int) error {
	if err := t.b.fits(cost); err != nil {
		return err
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if at, _ := t.b.time(now); !t.b.lim.AllowN(at, cost) {
		return ErrLimited
	}
	return nil
}

// Tokens returns the tokens there at now; negative while Wait has promised some.
func (t *Token) Tokens(now time.Duration) float64 {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	at, _ := t.b.time(now)
	return t.b.lim.TokensAt(at)
}

// Wait takes cost tokens, waiting for them as long as it must; clock gives now.
// The error is ErrCost, ErrLimited at once when ctx would end first, or ctx's;
// the tokens are given back then as far as nobody after it was promised them.
func (t *Token) Wait(ctx context.Context, clock func() time.Duration, cost int) error {
	if err := t.b.fits(cost); err != nil {
		return err
	}
	r, wait, err := t.reserve(ctx, clock(), cost)
	if err != nil {
		return err
	}
	if err := sleep(ctx, wait); err != nil {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		at, _ := t.b.time(clock())
		r.CancelAt(at)
		return err
	}
	return nil
}

func (t *Token) reserve(ctx context.Context, now time.Duration, cost int) (*rate.Reservation, time.Duration, error) {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	at, _ := t.b.time(now)
	r := t.b.lim.ReserveN(at, cost)
	wait := r.DelayFrom(at)
	if tooLong(ctx, wait) {
		r.CancelAt(at)
		return nil, 0, ErrLimited
	}
	return r, wait, nil
}

// Leaky is a leaky bucket used as a queue; it starts empty. Make one with
// NewLeaky; it must not be copied. Its methods may be called by any number of
// goroutines.
type Leaky struct{ b bucket }

// NewLeaky returns a leaky bucket. The error wraps ErrConfig.
func NewLeaky(c Config) (*Leaky, error) {
	l := &Leaky{}
	if err := l.b.setUp(c); err != nil {
		return nil, err
	}
	return l, nil
}

// Admit takes a place in the queue at now and returns how long to wait before
// going. The error is ErrLimited (the queue is full) or ErrCost; nothing is
// taken then. A caller that gives up while it waits keeps its place: what comes
// after it does not move up.
func (l *Leaky) Admit(now time.Duration, cost int) (wait time.Duration, err error) {
	if err := l.b.fits(cost); err != nil {
		return 0, err
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	at, behind := l.b.time(now)
	ahead := l.level(at)
	if !l.b.lim.AllowN(at, cost) {
		return 0, ErrLimited
	}
	// The wait counts from the caller's now, which may be behind the bucket's.
	return behind + time.Duration(ahead/l.b.c.Rate*float64(time.Second)), nil
}

// Level returns the cost in the queue at now, 0..Bucket.
func (l *Leaky) Level(now time.Duration) float64 {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	at, _ := l.b.time(now)
	return l.level(at)
}

func (l *Leaky) level(at time.Time) float64 {
	return max(0, float64(l.b.c.Bucket)-l.b.lim.TokensAt(at))
}

// Wait takes a place in the queue and waits until it is its turn; clock gives
// now. The error is ErrLimited or ErrCost at once, or ctx's.
func (l *Leaky) Wait(ctx context.Context, clock func() time.Duration, cost int) error {
	wait, err := l.Admit(clock(), cost)
	if err != nil {
		return err
	}
	return sleep(ctx, wait)
}

func tooLong(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < wait
}

func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
