package prequal

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a node's half: it knows the requests in flight there, from all
// clients, and estimates the latency at that number: the median of recent
// latencies of requests that began at about the same one.
//
// Begin and End cost an atomic and a short lock of one class; a probe is
// answered by Load without touching the requests.
type Server struct {
	rif     atomic.Int64
	classes [classes]class
}

const (
	classes = 40 // of RIF: 0..7 each for itself, then four an octave
	samples = 32 // latencies kept a class
)

type class struct {
	mu   sync.Mutex
	ring [samples]time.Duration
	n    int // samples ever
}

// NewServer returns the state of a node that has served nothing.
func NewServer() *Server { return new(Server) }

// classOf returns the class of a RIF.
func classOf(rif int64) int {
	if rif < 8 {
		return int(max(0, rif))
	}
	c, step := 8, int64(2)
	for lo := int64(8); c+4 <= classes; lo, step = 2*lo, 2*step {
		if rif < 2*lo {
			return c + int((rif-lo)/step)
		}
		c += 4
	}
	return classes - 1
}

// Begin counts a request and returns the requests in flight before it; give
// them to End.
func (s *Server) Begin() int64 { return s.rif.Add(1) - 1 }

// End ends a request that began with rif others and took latency.
func (s *Server) End(rif int64, latency time.Duration) {
	s.rif.Add(-1)
	c := &s.classes[classOf(rif)]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring[c.n%samples] = latency
	c.n++
}

// Load answers a probe: the requests in flight, and the median latency of
// recent requests that began with about as many; where there are none, of those
// in the nearest class below or above; 0 before the first.
func (s *Server) Load() (rif int, latency time.Duration) {
	n := s.rif.Load()
	at := classOf(n)
	for d := range classes {
		for _, c := range []int{at - d, at + d} {
			if c < 0 || c >= classes {
				continue
			}
			if m, ok := s.classes[c].median(); ok {
				return int(n), m
			}
		}
	}
	return int(n), 0
}

func (c *class) median() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(c.n, samples)
	if n == 0 {
		return 0, false
	}
	ring := c.ring
	kept := ring[:n]
	slices.Sort(kept)
	return kept[n/2], true
}
