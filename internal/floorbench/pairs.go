package floorbench

import (
	"errors"
	"runtime"
	"slices"
	"time"
)

// Figures are what a lookup costs, as Measure finds it.
type Figures struct {
	// Ratio is the median over all pairs of subject / floor.
	Ratio float64
	// Key and FloorKey are the medians in nanoseconds a key.
	Key, FloorKey float64
	// Allocs is the number of heap allocations a key.
	Allocs float64
}

// Measure runs pass and the floor in turn, pairs times, as Ratio does in a
// benchmark, for programs. It fails if the pass finds no node names.
func Measure(keys []string, pass Pass, pairs int) (Figures, error) {
	p, err := warm(keys, pass)
	if err != nil {
		return Figures{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range pairs {
		p.run()
	}
	f := p.figures()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pass(keys)
	runtime.ReadMemStats(&after)
	// Rounded down to whole thousandths: what the runtime allocates meanwhile.
	f.Allocs = float64((after.Mallocs-before.Mallocs)*1000/uint64(len(keys))) / 1000
	return f, nil
}

// pairs collects the times of passes over keys, in nanoseconds a key.
type pairs struct {
	keys          []string
	floor, pass   Pass
	sum           int // keeps the passes from being optimised away
	ratios        []float64
	subject, base []float64
}

// warm runs one pass of each before the clock starts: caches, page faults.
func warm(keys []string, pass Pass) (*pairs, error) {
	const room = 1 << 12 // pairs; so that measuring does not allocate
	p := &pairs{
		keys: keys, floor: Floor(), pass: pass,
		ratios: make([]float64, 0, room), subject: make([]float64, 0, room), base: make([]float64, 0, room),
	}
	if p.floor(keys) == 0 || p.pass(keys) == 0 {
		return nil, errors.New("floorbench: a pass found no node names")
	}
	return p, nil
}

// run times one pair. The thread must be locked to the goroutine.
func (p *pairs) run() {
	t0 := ThreadTime()
	p.sum += p.floor(p.keys)
	t1 := ThreadTime()
	p.sum += p.pass(p.keys)
	t2 := ThreadTime()
	f, s := perKey(t1-t0, p.keys), perKey(t2-t1, p.keys)
	p.ratios = append(p.ratios, s/f)
	p.base = append(p.base, f)
	p.subject = append(p.subject, s)
}

func perKey(d time.Duration, keys []string) float64 {
	return float64(max(1, d)) / float64(len(keys))
}

func (p *pairs) figures() Figures {
	return Figures{Ratio: median(p.ratios), Key: median(p.subject), FloorKey: median(p.base)}
}

// median sorts x and returns its middle value.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
