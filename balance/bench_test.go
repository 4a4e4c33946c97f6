package balance

import (
	"fmt"
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
// what tickets, which make Done count once, cost is P2C minus this.
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
