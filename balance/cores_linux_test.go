package balance

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardd/shardd/internal/floorbench"
)

// BenchmarkCores compares the throughput of two cores on one picker with that of
// one core. An iteration is a round of each; "x-one-core" is the ratio of the
// best rounds and "x-median" that of the middle ones. work is what a request does
// besides its pick and Done.
//
// The two goroutines have a processor each and begin and end a round together, or
// the round does not count: so it measures sharing, also on a machine that does
// other work.
//
//	go test -run '^$' -bench Cores -benchtime 300x ./balance
func BenchmarkCores(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("wants two processors")
	}
	policies := []struct {
		name string
		make func(*Set) Picker
	}{
		{"p2c", func(s *Set) Picker { return must(NewP2C(s, nil)) }},
		{"least", func(s *Set) Picker { return must(NewLeastRequest(s, Choices{Replace: true})) }},
	}
	for _, policy := range policies {
		for _, n := range []int{10, 100, 1000} {
			for _, work := range []time.Duration{0, time.Microsecond} {
				b.Run(fmt.Sprintf("%s/n=%d/work=%v", policy.name, n, work), func(b *testing.B) {
					benchCores(b, policy.make(benchSet(b, n, one)), work)
				})
			}
		}
	}
}

func benchCores(b *testing.B, p Picker, work time.Duration) {
	picks := 2000
	if work > 0 {
		picks = 200
	}
	spins := spinsFor(work)
	loop := func(seed uint64) {
		for range picks {
			seed++
			t, _ := p.Pick(0, seed, nil)
			spin(spins)
			t.Done(0, Outcome{Result: Success})
		}
	}
	var alone []time.Duration
	for range 3 * b.N {
		start := time.Now()
		loop(0)
		alone = append(alone, time.Since(start))
	}
	b.ResetTimer()
	both := floorbench.Duel(b.N, func(core, round int) { loop(uint64(core)<<40 + uint64(round)<<20) })
	b.ReportMetric(0, "ns/op")
	if len(both) == 0 {
		return
	}
	slices.Sort(alone)
	slices.Sort(both)
	ratio := func(q int) float64 { // of quantile 1/q
		return 2 * float64(alone[len(alone)/q]) / float64(both[len(both)/q])
	}
	b.ReportMetric(float64(len(both)), "rounds")
	b.ReportMetric(ratio(20), "x-one-core")
	b.ReportMetric(2*float64(alone[len(alone)/20])/float64(both[len(both)/2]), "x-median")
	b.ReportMetric(float64(alone[len(alone)/20])/float64(picks), "ns/pick")
}

var spinSink atomic.Uint64

//go:noinline
func spin(n int) {
	x := uint64(n)
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 42 {
		spinSink.Add(1)
	}
}

// spinsFor returns how many turns of spin take d on this machine.
func spinsFor(d time.Duration) int {
	if d == 0 {
		return 0
	}
	const n = 100_000
	fastest := time.Hour
	for range 100 {
		start := time.Now()
		spin(n)
		fastest = min(fastest, time.Since(start))
	}
	return int(float64(d) / float64(fastest) * n)
}
