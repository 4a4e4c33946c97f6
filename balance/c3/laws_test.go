package c3

import (
	"testing"

	"github.com/shardd/shardd/balance"
	"github.com/shardd/shardd/balance/balancetest"
)

func TestLaws(t *testing.T) {
	policies := map[string]Config{
		"score":   {},
		"clients": {Clients: 100, Exponent: 2.5, Errors: balance.ErrorLoad{Each: 3}},
		"drawn":   {Choices: 2},
		"rate":    {Rate: &Rate{Initial: 1000}},
	}
	for name, cfg := range policies {
		t.Run(name, func(t *testing.T) {
			o := balancetest.Options{Skip: []string{balancetest.Even}}
			if cfg.Rate != nil { // limits refuse picks that these laws want
				o.Skip = append(o.Skip, balancetest.Barred, balancetest.Excluded, balancetest.Reached, balancetest.ClockJumps, balancetest.Repeatable, balancetest.NoAllocation)
			}
			balancetest.Run(t, func(s *balance.Set) (balance.Picker, error) { return New(s, cfg) }, o)
		})
	}
}
