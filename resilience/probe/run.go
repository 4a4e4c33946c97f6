package probe

import (
	"context"
	"sync"
	"time"
)

// Run probes the nodes of the set until ctx ends, and then waits for the probes
// under way; it returns ctx's error. clock gives now, check is one probe: it must
// return when its context ends, which is after Timeout, and nil means that the
// node is well. well is told, by the probe's goroutine, of each node that has left
// the set; it must be quick. One Run a set.
func (s *Set[K]) Run(ctx context.Context, clock func() time.Duration, check func(context.Context, K) error, well func(K)) error {
	var running sync.WaitGroup
	defer running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due []Probe[K]
	for {
		due = s.Due(due[:0], clock())
		for _, p := range due {
			running.Go(func() { s.run(ctx, clock, p, check, well) })
		}
		if wait, ok := s.Next(clock()); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-s.wake:
		}
	}
}

func (s *Set[K]) run(ctx context.Context, clock func() time.Duration, p Probe[K], check func(context.Context, K) error, well func(K)) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	good := false
	defer func() { // also when check panics
		if p.Done(clock(), good) {
			well(p.Key)
		}
	}()
	good = check(ctx, p.Key) == nil
}
