package pickers

import "sync"

// scan is the picker that everybody writes first.
type scan struct {
	mu     sync.Mutex
	flight []int
}

func newScan(n int) (Loop, func(), error) {
	s := &scan{flight: make([]int, n)}
	return func(_ uint64, requests, work int) {
		for range requests {
			i := s.pick()
			if work > 0 {
				spin(work)
			}
			s.done(i)
		}
	}, none, nil
}

func (s *scan) pick() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := 0
	for i, f := range s.flight {
		if f < s.flight[best] {
			best = i
		}
	}
	s.flight[best]++
	return best
}

func (s *scan) done(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight[i]--
}
