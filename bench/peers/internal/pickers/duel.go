package pickers

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// two is the throughput of two goroutines on one picker over that of one: the
// twentieth part of the rounds that is the best on each side, because another
// program on the machine can only make a round worse. It is 0 on a machine with
// one core, or if the two never ran at the same time.
//
// The goroutines have a core each and begin and end a round together, or the
// round does not count: so it measures what sharing costs also on a machine that
// does other work.
func (c Config) two(loop Loop, requests, work int) float64 {
	if runtime.NumCPU() < 2 || c.Rounds == 0 {
		return 0
	}
	f := func(first uint64) { loop(first, requests, work) }
	var alone []time.Duration
	for r := range c.Rounds {
		start := time.Now()
		f(uint64(r) << 20)
		alone = append(alone, time.Since(start))
	}
	both := duel(c.Rounds, f)
	if len(both) == 0 {
		return 0
	}
	slices.Sort(alone)
	slices.Sort(both)
	return 2 * float64(alone[len(alone)/20]) / float64(both[len(both)/20])
}

// lane is what one goroutine of a duel tells the other, on lines of its own.
type lane struct {
	_          [64]byte
	barriers   atomic.Int64 // how many it has reached
	begun, end atomic.Int64
	_          [64]byte
}

// duel runs f on two pinned goroutines at once and returns the times of those
// rounds that both were there for, from the first begin to the last end.
func duel(rounds int, f func(first uint64)) []time.Duration {
	var took []time.Duration
	var lanes [2]lane
	origin := time.Now()
	meet := func(me int, barrier int64) {
		lanes[me].barriers.Store(barrier)
		for lanes[1-me].barriers.Load() < barrier {
		}
	}
	done := make(chan bool, 2)
	for me := range 2 {
		go func() {
			pin(me)
			for r := range rounds {
				meet(me, int64(2*r+1))
				lanes[me].begun.Store(int64(time.Since(origin)))
				f(uint64(me)<<40 + uint64(r)<<20)
				lanes[me].end.Store(int64(time.Since(origin)))
				meet(me, int64(2*r+2))
				if d, ok := together(&lanes[0], &lanes[1]); ok && me == 0 {
					took = append(took, d)
				}
			}
			done <- true
		}()
	}
	<-done
	<-done
	return took
}

// together returns how long a round took, and whether the two were beside each
// other from its beginning to its end: they began within 2 µs and ended within a
// fifth of it.
func together(a, b *lane) (time.Duration, bool) {
	begun, ended := span(a.begun.Load(), b.begun.Load()), span(a.end.Load(), b.end.Load())
	all := max(a.end.Load(), b.end.Load()) - min(a.begun.Load(), b.begun.Load())
	return time.Duration(all), begun < 2000 && ended < all/5
}

func span(a, b int64) int64 { return max(a, b) - min(a, b) }
