package pickers

import (
	"runtime"
	"slices"
	"time"

	"github.com/shardd/shardd/bench/internal/peertable"
	"github.com/shardd/shardd/internal/floorbench"
)

// Config is how thoroughly policies are measured.
type Config struct {
	// Pairs is the number of interleaved pairs, policy and the least, that a
	// figure is the median of.
	Pairs int
	// Pass is about how long a pass of a pair takes.
	Pass time.Duration
	// Rounds is the number of rounds of one goroutine and of two, each of about
	// Round. 0 leaves them out.
	Rounds int
	Round  time.Duration
	// Work is what a request does in the last column, besides.
	Work time.Duration
}

// Measure returns the figures of the policies at each number of nodes, told to
// progress as they come.
func Measure(subjects []Subject, sizes []int, c Config, progress func(peertable.Picker)) []peertable.Picker {
	spins := c.spins()
	var list []peertable.Picker
	for _, s := range subjects {
		for _, n := range s.sizes(sizes) {
			p := peertable.Picker{Subject: s.Name, Ours: s.Ours, Nodes: n, Clock: s.Clock, Note: s.Note}
			if err := c.measure(&p, s, n, spins); err != nil {
				p.Left = err.Error()
			}
			progress(p)
			list = append(list, p)
		}
	}
	return list
}

// sizes are those asked for, or the only one if the largest is not below it by
// more than a tenth.
func (s Subject) sizes(asked []int) []int {
	if s.Only == 0 {
		return asked
	}
	if slices.Max(asked)*10 < s.Only*9 {
		return nil
	}
	return []int{s.Only}
}

func (c Config) measure(p *peertable.Picker, s Subject, n, spins int) error {
	loop, end, err := s.New(n)
	if err != nil {
		return err
	}
	defer end()
	least, _, err := newLeast(n)
	if err != nil {
		return err
	}
	requests := c.requests(loop)
	c.pairs(p, loop, least, requests)
	p.Allocs = allocs(loop, requests)
	p.Two = c.two(loop, c.round(p.Pick), 0)
	if c.Work > 0 {
		p.Worked = c.two(loop, c.round(p.Pick+float64(c.Work)), spins)
	}
	return nil
}

// round is how many requests of that many nanoseconds make a round.
func (c Config) round(nanos float64) int { return max(4, int(float64(c.Round)/nanos)) }

// requests is how many take about one pass.
func (c Config) requests(loop Loop) int {
	for n := 64; ; n *= 4 {
		start := time.Now()
		loop(0, n, 0)
		if d := time.Since(start); d > c.Pass/16 {
			return max(64, int(float64(n)*float64(c.Pass)/float64(d)))
		}
	}
}

// pairs measures passes of loop and of the least, in turn, by the time of the
// thread.
func (c Config) pairs(p *peertable.Picker, loop, least Loop, requests int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ratios, nanos []float64
	for i := range c.Pairs {
		first := uint64(i * requests)
		t0 := floorbench.ThreadTime()
		least(first, requests, 0)
		t1 := floorbench.ThreadTime()
		loop(first, requests, 0)
		t2 := floorbench.ThreadTime()
		base, ours := float64(max(1, t1-t0)), float64(t2-t1)
		ratios = append(ratios, ours/base)
		nanos = append(nanos, ours/float64(requests))
	}
	p.Ratio, p.Pick = middle(ratios), middle(nanos)
}

func middle(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// allocs is the number of heap allocations a request, to a hundredth.
func allocs(loop Loop, requests int) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loop(1<<30, requests, 0)
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs-before.Mallocs)*100/uint64(requests)) / 100
}

// spins is how many turns of spin take Work on this machine.
func (c Config) spins() int {
	if c.Work == 0 {
		return 0
	}
	const n = 1_000_000
	fastest := time.Hour
	for range 10 {
		start := time.Now()
		spin(n)
		fastest = min(fastest, time.Since(start))
	}
	return int(float64(c.Work) / float64(fastest) * n)
}
