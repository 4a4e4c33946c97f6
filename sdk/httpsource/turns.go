package httpsource

import (
	"slices"
	"time"
)

// Pauses between two tries.
const (
	leastPause = 100 * time.Millisecond // after the first round that failed
	mostPause  = time.Second
	spread     = 500 * time.Millisecond // of clients that lost a server together
)

// turns decides which server is tried next, and when. A server that worked is
// tried again first, for its stream may just have been cut, after a pause that
// spreads the clients that it had; then the others follow, with a pause only
// after each full round. It has no clock of its
// own.
type turns struct {
	now      int         // index of the server whose turn it is
	failures int         // in a row
	barred   []time.Time // until when each server asked to be left alone
	chance   func() float64
}

func newTurns(servers int, chance func() float64) *turns {
	return &turns{now: int(chance() * float64(servers)), barred: make([]time.Time, servers), chance: chance}
}

// server returns the index of the server to try.
func (t *turns) server() int { return t.now }

// ended is told that the try has ended: whether the server had worked for a
// while before that, and how long it asked to be left alone. It returns how long
// to wait until server is to be tried.
func (t *turns) ended(worked bool, retryAfter time.Duration, now time.Time) time.Duration {
	t.bar(t.now, retryAfter, now)
	if worked {
		t.failures = 0
	} else {
		t.failures++
		t.now = (t.now + 1) % len(t.barred)
	}
	wait := t.skipBarred(now)
	switch {
	case worked:
		wait = max(wait, time.Duration(t.chance()*float64(spread)))
	case t.failures%len(t.barred) == 0:
		wait = max(wait, t.pause())
	}
	return wait
}

// bar has the server left alone for as long as it asked, and a little longer, so
// that the clients which it sent away together do not come back together.
func (t *turns) bar(server int, retryAfter time.Duration, now time.Time) {
	if retryAfter > 0 {
		retryAfter += time.Duration(t.chance() * float64(min(retryAfter, spread)))
	}
	t.barred[server] = now.Add(retryAfter)
}

// rival returns the next server after that whose turn it is that may be asked
// and is not among asked.
func (t *turns) rival(asked []int, now time.Time) (server int, ok bool) {
	for i := range t.barred {
		n := (t.now + i) % len(t.barred)
		if !t.barred[n].After(now) && !slices.Contains(asked, n) {
			return n, true
		}
	}
	return 0, false
}

// failed notes that a server failed beside another one.
func (t *turns) failed(server int, retryAfter time.Duration, now time.Time) {
	t.failures++
	t.bar(server, retryAfter, now)
}

// took makes server the one whose turn it is.
func (t *turns) took(server int) { t.now = server }

// skipBarred moves on to the first server that may be asked, or the one that
// may be soonest, and returns how long that is from now.
func (t *turns) skipBarred(now time.Time) time.Duration {
	best := t.now
	for i := range t.barred {
		n := (t.now + i) % len(t.barred)
		if !t.barred[n].After(now) {
			t.now = n
			return 0
		}
		if t.barred[n].Before(t.barred[best]) {
			best = n
		}
	}
	t.now = best
	return t.barred[best].Sub(now)
}

// pause doubles with the rounds that failed, up to mostPause, and is spread over
// its upper half.
func (t *turns) pause() time.Duration {
	d := leastPause
	for rounds := t.failures / len(t.barred); rounds > 1 && d < mostPause; rounds-- {
		d *= 2
	}
	d = min(d, mostPause)
	return d/2 + time.Duration(t.chance()*float64(d/2))
}
