package latency

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func bench(b *testing.B, make func(*balance.Set) (balance.Picker, error)) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p, err := make(balancetest.NewSet(b, balancetest.Equal(n)...))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			now := time.Duration(0)
			for b.Loop() {
				now += 10 * time.Microsecond
				tk, _ := p.Pick(now, uint64(now), nil)
				now += 10 * time.Microsecond
				tk.Done(now, balance.Outcome{Result: balance.Success})
			}
		})
	}
}

func BenchmarkPeakEWMA(b *testing.B) {
	bench(b, p2c(NewPeakEWMA(PeakConfig{Default: 30 * ms})))
}

func BenchmarkPeakEWMAErrors(b *testing.B) {
	bench(b, p2c(NewPeakEWMA(PeakConfig{Default: 30 * ms, Errors: balance.ErrorLoad{Each: 10}})))
}

func BenchmarkSquaredEWMA(b *testing.B) { bench(b, p2c(NewSquaredEWMA(SquaredConfig{}))) }

func BenchmarkServerQueue(b *testing.B) { bench(b, p2c(NewServerQueue(QueueConfig{}))) }

func BenchmarkSuccess(b *testing.B) {
	bench(b, func(s *balance.Set) (balance.Picker, error) { return NewSuccess(s, Kratos()) })
}
