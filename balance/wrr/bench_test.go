package wrr

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func bench(b *testing.B, weight func(i int) float64, make func(*balance.Set) (balance.Picker, error)) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			weights := balancetest.Equal(n)
			for i := range weights {
				weights[i] = weight(i)
			}
			p, err := make(balancetest.NewSet(b, weights...))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			k := uint64(0)
			for b.Loop() {
				k++
				tk, _ := p.Pick(time.Duration(k), k, nil)
				tk.Done(time.Duration(k), balance.Outcome{Result: balance.Success})
			}
		})
	}
}

func oneToSeven(i int) float64 { return float64(1 + i%7) }

// odd has a period that is too long to be computed as a whole.
func odd(i int) float64 { return float64(1009 + i*37%991) }

func BenchmarkRoundRobin(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewRoundRobin(s, 0), nil })
}

func BenchmarkExpanded(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewExpanded(s, 0) })
}

func BenchmarkSmooth(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewSmooth(s, SmoothConfig{}) })
}

func BenchmarkSmoothLongPeriod(b *testing.B) {
	bench(b, odd, func(s *balance.Set) (balance.Picker, error) { return NewSmooth(s, SmoothConfig{}) })
}

func BenchmarkEDF(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewEDF(s), nil })
}

func BenchmarkStride(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewStride(s, 0), nil })
}

func BenchmarkReported(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) {
		p := NewReported(s, ReportedConfig{Blackout: -1}, 0)
		for i := range s.Len() {
			p.Report(i, 0, Load{QPS: oneToSeven(i), Utilization: 1})
		}
		return p, nil
	})
}

func BenchmarkLeastConn(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewLeastConn(s), nil })
}

func BenchmarkWeightedLeast(b *testing.B) {
	bench(b, oneToSeven, func(s *balance.Set) (balance.Picker, error) { return NewWeightedLeast(s, WeightedLeastConfig{}) })
}
