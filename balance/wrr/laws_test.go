package wrr

import (
	"testing"
	"time"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func TestLaws(t *testing.T) {
	policies := map[string]balancetest.Make{
		"round-robin": func(s *balance.Set) (balance.Picker, error) { return NewRoundRobin(s, 0), nil },
		"expanded":    func(s *balance.Set) (balance.Picker, error) { return NewExpanded(s, 0) },
		"smooth":      func(s *balance.Set) (balance.Picker, error) { return NewSmooth(s, SmoothConfig{}) },
		"smooth-limits": func(s *balance.Set) (balance.Picker, error) {
			return NewSmooth(s, SmoothConfig{MaxFails: 10_000, MaxConns: 1000})
		},
		"edf":            func(s *balance.Set) (balance.Picker, error) { return NewEDF(s), nil },
		"stride":         func(s *balance.Set) (balance.Picker, error) { return NewStride(s, 0), nil },
		"reported":       func(s *balance.Set) (balance.Picker, error) { return NewReported(s, ReportedConfig{}, 0), nil },
		"least-conn":     func(s *balance.Set) (balance.Picker, error) { return NewLeastConn(s), nil },
		"weighted-least": func(s *balance.Set) (balance.Picker, error) { return NewWeightedLeast(s, WeightedLeastConfig{}) },
		"weighted-least-errors": func(s *balance.Set) (balance.Picker, error) {
			zero := 0.5
			return NewWeightedLeast(s, WeightedLeastConfig{Bias: &zero, Errors: balance.ErrorLoad{Each: 5, Decay: time.Second}})
		},
	}
	for name, make := range policies {
		var o balancetest.Options
		t.Run(name, func(t *testing.T) { balancetest.Run(t, make, o) })
	}
}
