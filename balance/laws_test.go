package balance_test

import (
	"testing"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func TestLaws(t *testing.T) {
	withErrors := func() balance.Cost { return &balance.InFlight{Errors: balance.ErrorLoad{Each: 10}} }
	policies := map[string]balancetest.Make{
		"random":      func(s *balance.Set) (balance.Picker, error) { return balance.NewRandom(s), nil },
		"p2c":         func(s *balance.Set) (balance.Picker, error) { return balance.NewP2C(s, nil) },
		"p2c-errors":  func(s *balance.Set) (balance.Picker, error) { return balance.NewP2C(s, withErrors()) },
		"random-two":  func(s *balance.Set) (balance.Picker, error) { return balance.NewRandomTwo(s, nil) },
		"full-scan":   func(s *balance.Set) (balance.Picker, error) { return balance.NewFullScan(s, nil) },
		"scan-errors": func(s *balance.Set) (balance.Picker, error) { return balance.NewFullScan(s, withErrors()) },
		"go-left":     func(s *balance.Set) (balance.Picker, error) { return balance.NewGoLeft(s, 2, nil) },
		"least": func(s *balance.Set) (balance.Picker, error) {
			return balance.NewLeastRequest(s, balance.Choices{Replace: true})
		},
		"least-3": func(s *balance.Set) (balance.Picker, error) {
			return balance.NewLeastRequest(s, balance.Choices{D: 3})
		},
		"least-10-errors": func(s *balance.Set) (balance.Picker, error) {
			return balance.NewLeastRequest(s, balance.Choices{D: 10, Cost: withErrors()})
		},
	}
	for name, make := range policies {
		t.Run(name, func(t *testing.T) {
			var o balancetest.Options
			if name == "go-left" { // an idle tie goes to the left group, always
				o.Skip = []string{balancetest.Reached, balancetest.Even}
			}
			balancetest.Run(t, make, o)
		})
	}
}
