package balance

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

var benchSizes = []int{10, 100, 1000, 10000}

func benchSet(tb testing.TB, n int, weight func(i int) float64) *Set {
	tb.Helper()
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Node: NewNode(fmt.Sprint("n", i), 0), Weight: weight(i)}
	}
	set, err := NewSet(members)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func one(int) float64      { return 1 }
func uneven(i int) float64 { return float64(1 + i%7) }
func must[P any](p P, err error) P {
	if err != nil {
		panic(err)
	}
	return p
}

// benchPickDone measures Pick and Done, at each size.
func benchPickDone(b *testing.B, weight func(int) float64, make func(*Set) Picker) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := make(benchSet(b, n, weight))
			b.ReportAllocs()
			seed := uint64(0)
			for b.Loop() {
				seed++
				t, _ := p.Pick(time.Duration(seed), seed, nil)
				t.Done(time.Duration(seed), Outcome{Result: Success})
			}
		})
	}
}

func BenchmarkRandom(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker { return NewRandom(s) })
}

func BenchmarkWeightedRandom(b *testing.B) {
	benchPickDone(b, uneven, func(s *Set) Picker { return NewRandom(s) })
}

func BenchmarkP2C(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker { return must(NewP2C(s, nil)) })
}

func BenchmarkWeightedP2C(b *testing.B) {
	benchPickDone(b, uneven, func(s *Set) Picker { return must(NewP2C(s, nil)) })
}

func BenchmarkP2CErrors(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker {
		return must(NewP2C(s, &InFlight{Errors: ErrorLoad{Each: 10}}))
	})
}

func BenchmarkLeastRequest(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker { return must(NewLeastRequest(s, Choices{Replace: true})) })
}

func BenchmarkLeastRequestDistinct(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker { return must(NewLeastRequest(s, Choices{})) })
}

func BenchmarkGoLeft(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker { return must(NewGoLeft(s, 2, nil)) })
}

func BenchmarkFullScan(b *testing.B) {
	benchPickDone(b, one, func(s *Set) Picker { return must(NewFullScan(s, nil)) })
}

// BenchmarkBareCount is P2C's choice with a count that is raised and lowered:
// what the slots, which make Done count once, cost is P2C minus this.
func BenchmarkBareCount(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := must(NewP2C(benchSet(b, n, one), nil))
			seed := uint64(0)
			for b.Loop() {
				seed++
				c := bareP2C(p, seed)
				c.node.flight.Add(1)
				c.node.flight.Add(-1)
			}
		})
	}
}

//go:noinline
func bareP2C(p *P2C, seed uint64) *candidate {
	dice := splitmixAt(seed)
	a, b := p.set.pair(&dice, nil)
	if b.node.flight.Load() < a.node.flight.Load() {
		return b
	}
	return a
}

// BenchmarkCores measures throughput of one core and of two on the same picker:
// "x-one-core" is the ratio, within one run. work is what a request does
// besides.
func BenchmarkCores(b *testing.B) {
	policies := map[string]func(*Set) Picker{
		"p2c":   func(s *Set) Picker { return must(NewP2C(s, nil)) },
		"least": func(s *Set) Picker { return must(NewLeastRequest(s, Choices{Replace: true})) },
	}
	for name, make := range policies {
		for _, n := range []int{10, 100, 1000} {
			for _, work := range []time.Duration{0, time.Microsecond} {
				b.Run(fmt.Sprintf("%s/n=%d/work=%v", name, n, work), func(b *testing.B) {
					benchCores(b, make(benchSet(b, n, one)), work)
				})
			}
		}
	}
}

func benchCores(b *testing.B, p Picker, work time.Duration) {
	const picks = 20_000
	spins := spinsFor(work)
	loop := func(seed uint64) {
		for range picks {
			seed++
			t, _ := p.Pick(0, seed, nil)
			spin(spins)
			t.Done(0, Outcome{Result: Success})
		}
	}
	best := [3]float64{}
	for b.Loop() {
		for cores := 1; cores <= 2; cores++ {
			start, done := time.Now(), make(chan bool, cores)
			for c := range cores {
				go func() { loop(uint64(c) << 40); done <- true }()
			}
			for range cores {
				<-done
			}
			best[cores] = max(best[cores], float64(cores*picks)/time.Since(start).Seconds())
		}
	}
	b.ReportMetric(best[2]/best[1], "x-one-core")
	b.ReportMetric(1e9/best[1], "ns/pick")
	b.ReportMetric(0, "ns/op")
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
	const n = 1_000_000
	fastest := time.Hour
	for range 10 {
		start := time.Now()
		spin(n)
		fastest = min(fastest, time.Since(start))
	}
	return int(float64(d) / float64(fastest) * n)
}

func BenchmarkDraw(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := benchSet(b, n, uneven)
			dice := splitmixAt(1)
			for b.Loop() {
				s.any(&dice)
			}
		})
	}
}
