package outlier

import (
	"math"
	"slices"
	"time"
)

func (d *Detector) lock() { d.mu.Lock() }

// unlock frees the mutex and then tells what happened under it.
func (d *Detector) unlock() {
	events := d.events
	d.events = nil
	d.mu.Unlock()
	for _, e := range events {
		d.c.OnChange(e)
	}
}

func (d *Detector) tell(e Event) {
	if d.c.OnChange != nil {
		d.events = append(d.events, e)
	}
}

func (d *Detector) tally(s State, by int) {
	switch s {
	case Up:
		d.up += by
	case Down:
		d.down += by
	}
}

// limit is floor(Limit * n); the nudge makes 0.29 * 100 the 29 that was meant.
func (d *Detector) limit() int {
	return int(math.Floor(d.c.Limit*float64(d.up+d.down) + 1e-9))
}

// eject takes n out if it is Up and the limit holds with it included.
func (d *Detector) eject(n *Node, now time.Duration, why Reason) bool {
	if n.index < 0 || n.status.Load() != uint32(Up) || d.ejected+d.down+1 > d.limit() {
		return false
	}
	n.times++
	n.since, n.until = now, min(d.c.Max, time.Duration(n.times)*d.c.Base)
	if d.c.Jitter > 0 {
		n.until += time.Duration(d.c.Rand() * float64(d.c.Jitter))
	}
	d.ejected++
	d.alarm() // first: if this leaves too few, panic is on before it is out
	n.status.Store(uint32(Up) | ejectedBit)
	d.tell(Event{n, true, why, now, n.until})
	return true
}

// restore ends n's ejection, if it is ejected, with a clean record.
func (d *Detector) restore(n *Node, now time.Duration, why Reason) {
	if !n.Ejected() {
		return
	}
	n.inARow.Store(0)
	n.good.Store(0)
	n.bad.Store(0)
	n.fresh = true
	n.status.Store(uint32(Up))
	d.ejected--
	d.alarm()
	d.tell(Event{Node: n, Reason: why, At: now})
}

// settle takes back, after a change of n or down, who has been out longest, until
// the law holds.
func (d *Detector) settle(now time.Duration) {
	for d.ejected > 0 && d.ejected+d.down > d.limit() {
		var first *Node
		for _, n := range d.nodes {
			if n.Ejected() && (first == nil || n.since < first.since) {
				first = n
			}
		}
		d.restore(first, now, MakeRoom)
	}
	d.alarm()
}

// alarm sets panic by what is left.
func (d *Detector) alarm() {
	n, left := d.up+d.down, d.up-d.ejected
	d.alarmed.Store(n > 0 && (left == 0 || float64(left)+1e-9 < d.c.Panic*float64(n)))
}

// Sweep takes back nodes whose time is over and, once an Interval, judges all.
// Call it about once a second; O(n).
func (d *Detector) Sweep(now time.Duration) {
	d.lock()
	defer d.unlock()
	for _, n := range d.nodes {
		if n.Ejected() && passed(n.since, now, n.until) {
			d.restore(n, now, TimeOver)
		}
	}
	if !d.started {
		d.started, d.judged = true, now
	}
	if passed(d.judged, now, d.c.Interval) {
		d.judged = now
		d.judge(now)
	}
}

// passed reports whether d has passed since then; a clock that went back by as
// much has passed too, so that nothing waits for it to come back.
func passed(then, now, d time.Duration) bool {
	elapsed := now - then
	return elapsed >= d || elapsed <= -d
}

// sample is a node's interval.
type sample struct {
	n      *Node
	total  int64
	share  float64 // of successes
	inARow int64
}

// judge ends an interval: counts are taken, old ejections forgotten, and the
// worst go first while the limit lasts.
func (d *Detector) judge(now time.Duration) {
	var rows, rated []sample
	for _, n := range d.nodes {
		good, bad := n.good.Swap(0), n.bad.Swap(0)
		if n.status.Load() != uint32(Up) {
			continue
		}
		if !n.fresh {
			n.times = max(0, n.times-1)
		}
		n.fresh = false
		s := sample{n: n, total: good + bad, inARow: n.inARow.Load()}
		if d.c.Consecutive > 0 && s.inARow >= int64(d.c.Consecutive) {
			rows = append(rows, s)
		}
		if s.total > 0 && s.total >= int64(d.c.MinRequests) {
			s.share = float64(good) / float64(s.total)
			rated = append(rated, s)
		}
	}
	slices.SortFunc(rows, func(a, b sample) int { return int(b.inARow - a.inARow) })
	for _, s := range rows {
		d.eject(s.n, now, Consecutive)
	}
	if len(rated) >= d.c.MinNodes {
		d.judgeShares(now, rated)
	}
}

func (d *Detector) judgeShares(now time.Duration, rated []sample) {
	slices.SortFunc(rated, func(a, b sample) int {
		switch {
		case a.share < b.share:
			return -1
		case a.share > b.share:
			return 1
		}
		return 0
	})
	least := -1.0
	if d.c.Stdev > 0 {
		mean, stdev := meanStdev(rated)
		least = mean - d.c.Stdev*stdev
	}
	for _, s := range rated {
		switch {
		case s.share < least:
			d.eject(s.n, now, SuccessRate)
		case d.c.FailureShare > 0 && 1-s.share >= d.c.FailureShare:
			d.eject(s.n, now, FailureShare)
		}
	}
}

// meanStdev is over the population, as in Envoy.
func meanStdev(rated []sample) (mean, stdev float64) {
	for _, s := range rated {
		mean += s.share / float64(len(rated))
	}
	for _, s := range rated {
		stdev += (s.share - mean) * (s.share - mean) / float64(len(rated))
	}
	return mean, math.Sqrt(stdev)
}
