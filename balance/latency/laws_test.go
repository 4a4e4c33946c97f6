package latency

import (
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func p2c(cost balance.Cost, err error) func(s *balance.Set) (balance.Picker, error) {
	return func(s *balance.Set) (balance.Picker, error) {
		if err != nil {
			return nil, err
		}
		return balance.NewP2C(s, cost)
	}
}

func TestLaws(t *testing.T) {
	errs := balance.ErrorLoad{Each: 10}
	policies := map[string]balancetest.Make{
		"peak-finagle": p2c(NewPeakEWMA(PeakConfig{})),
		"peak-tower":   p2c(NewPeakEWMA(PeakConfig{Default: 30 * time.Millisecond})),
		"peak-brpc":    p2c(NewPeakEWMA(PeakConfig{Default: 30 * time.Millisecond, ByWeight: true, ErrorCap: 30 * time.Second, Errors: errs})),
		"squared":      p2c(NewSquaredEWMA(SquaredConfig{Errors: errs})),
		"queue":        p2c(NewServerQueue(QueueConfig{})),
		"kratos":       func(s *balance.Set) (balance.Picker, error) { return NewSuccess(s, Kratos()) },
		"go-zero":      func(s *balance.Set) (balance.Picker, error) { return NewSuccess(s, GoZero()) },
	}
	for name, make := range policies {
		var o balancetest.Options
		if name != "queue" {
			o.Skip = []string{balancetest.Even} // they learn from latency
		}
		t.Run(name, func(t *testing.T) { balancetest.Run(t, make, o) })
	}
}
