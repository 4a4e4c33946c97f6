package placements

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/shardd/shardd/bench/internal/peertable"
	"github.com/shardd/shardd/bench/internal/shares"
	"github.com/shardd/shardd/internal/floorbench"
)

// Config is how thoroughly subjects are measured.
type Config struct {
	// Keys and Pairs are the distinct keys of a pass and the number of
	// interleaved pairs of passes that a speed is the median of.
	Keys, Pairs int
	// ExactKeys is the number of keys whose owners are compared.
	ExactKeys int
	// Slowest bounds the time of a build, and that of all single lookups of the
	// comparison; a size that would take longer is left out.
	Slowest time.Duration
	// Budget is the time to repeat a build or a change in.
	Budget time.Duration
}

// linearNanos is about what a linear lookup takes for each node.
const linearNanos = 1

// Measure returns the figures of the subjects at each number of nodes, told to
// progress as they come. Sizes ascend.
func Measure(subjects []Subject, sizes []int, c Config, progress func(peertable.Placement)) []peertable.Placement {
	var list []peertable.Placement
	for _, s := range subjects {
		var builds growth
		for _, n := range sizes {
			p := peertable.Placement{Subject: s.Name, Family: s.Family, Ours: s.Ours, Nodes: n, Note: s.Note}
			if err := c.measure(&p, s, n, &builds); err != nil {
				p.Left = err.Error()
			}
			progress(p)
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b peertable.Placement) int { return a.Nodes - b.Nodes })
	return list
}

func (c Config) measure(p *peertable.Placement, s Subject, n int, builds *growth) error {
	if s.MaxNodes > 0 && n > s.MaxNodes {
		return fmt.Errorf("%s", s.Why)
	}
	if t := builds.at(n); t > c.Slowest {
		return fmt.Errorf("building would take about %v, by the smaller sizes; the limit is %v", t.Round(time.Second), c.Slowest)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	names := floorbench.Names(n)
	m, speed, err := c.build(s, names)
	if err != nil {
		return err
	}
	builds.note(n, time.Duration(speed.Build*1e6))
	f, err := floorbench.Measure(floorbench.Keys(c.keys(s, n, c.Keys, 200_000_000)), m.Pass, c.Pairs)
	if err != nil {
		return err
	}
	speed.Key, speed.Ratio, speed.Allocs = f.Key, f.Ratio, f.Allocs
	// Before the changes that are timed, the number of which differs.
	if !s.Batch {
		if p.Exact, err = c.exact(s, m, names); err != nil {
			return err
		}
	}
	if err := c.changes(m, names, &speed); err != nil {
		return err
	}
	p.Speed = &speed
	return nil
}

// keys is the number of keys for n nodes: most, but for linear lookups no more
// than node steps in all.
func (c Config) keys(s Subject, n, most, steps int) int {
	if !s.Linear {
		return most
	}
	return min(most, steps/(n*linearNanos))
}

// build returns a new mapping, with how long that takes and what it leaves on
// the heap.
func (c Config) build(s Subject, names []string) (Instance, peertable.Speed, error) {
	before := heap()
	start := floorbench.ThreadTime()
	m, err := s.New(names)
	first := floorbench.ThreadTime() - start
	if err != nil {
		return nil, peertable.Speed{}, err
	}
	speed := peertable.Speed{Build: milliseconds(first), Bytes: max(0, heap()-before)}
	if first < c.Budget {
		d, err := c.median(func() error {
			_, err := s.New(names)
			return err
		})
		speed.Build = milliseconds(d)
		return m, speed, err
	}
	return m, speed, nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers let go
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// changes measures one removal and one addition, of the same node.
func (c Config) changes(m Instance, names []string, speed *peertable.Speed) error {
	name := names[len(names)/2]
	var adds []time.Duration
	removal, err := c.median(func() error {
		if err := m.Remove(name); err != nil {
			return err
		}
		// The addition that belongs to it has a clock of its own; median takes
		// its time off again.
		start := floorbench.ThreadTime()
		err := m.Add(name)
		adds = append(adds, floorbench.ThreadTime()-start)
		return err
	})
	slices.Sort(adds)
	speed.Add = milliseconds(adds[len(adds)/2])
	speed.Remove = max(0, milliseconds(removal)-speed.Add)
	return err
}

// median runs f until the budget is used up, at least once, and returns the
// median of the thread's time.
func (c Config) median(f func() error) (time.Duration, error) {
	var list []time.Duration
	for spent := time.Duration(0); spent < c.Budget || len(list) == 0; {
		start := floorbench.ThreadTime()
		if err := f(); err != nil {
			return 0, err
		}
		d := floorbench.ThreadTime() - start
		list = append(list, d)
		spent += max(d, time.Microsecond)
	}
	slices.Sort(list)
	return list[len(list)/2], nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// exact counts how the keys are spread, and which of them move when one node
// leaves and when another one comes after it. Both changes stay.
func (c Config) exact(s Subject, m Instance, names []string) (*peertable.Exact, error) {
	n := len(names)
	keys := floorbench.Keys(c.keys(s, n, c.ExactKeys, 2_000_000_000))
	leaves, comes := names[n/3], names[n/2]+"-b"
	full := owners(m, keys)
	if err := m.Remove(leaves); err != nil {
		return nil, err
	}
	less := owners(m, keys)
	if err := m.Add(comes); err != nil {
		return nil, err
	}
	after := owners(m, keys)
	counts := map[string]int{}
	for _, o := range full {
		counts[o]++
	}
	list := make([]int, n)
	for i, name := range names {
		list[i] = counts[name]
	}
	spread := shares.Of(list)
	removed, added := shares.Move(full, less, leaves), shares.Move(less, after, comes)
	least := 1 / float64(n)
	return &peertable.Exact{
		Keys: len(keys), Peak: spread.Peak, CV: shares.Without(spread.CV, shares.Noise(n, len(keys))),
		Remove: removed.Keys / least, Add: added.Keys / least,
		Needless: (removed.Needless + added.Needless) / (2 * least),
	}, nil
}

func owners(m Instance, keys []string) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = m.Owner(k)
	}
	return list
}

// growth predicts the time of a build from those of smaller sizes.
type growth struct {
	n    [2]int // the last two sizes
	time [2]time.Duration
}

func (g *growth) note(n int, d time.Duration) {
	g.n = [2]int{g.n[1], n}
	g.time = [2]time.Duration{g.time[1], d}
}

// at is the time for n nodes by the power law through the last two sizes, or
// in proportion to the square if there is but one; 0 if there is none.
func (g *growth) at(n int) time.Duration {
	power := 2.
	if g.n[0] > 0 && g.time[0] > 0 {
		power = max(1, math.Log(float64(g.time[1])/float64(g.time[0]))/math.Log(float64(g.n[1])/float64(g.n[0])))
	}
	if g.n[1] == 0 {
		return 0
	}
	return time.Duration(float64(g.time[1]) * math.Pow(float64(n)/float64(g.n[1]), power))
}
